//! Lexer: splits a template into text and the tokens of its actions.

use core::fmt;

use super::error::TemplateError;
use crate::ParseError;
use crate::cursor::Cursor;
use crate::literal::{self, StringError, StringSyntax};
use crate::value::Value;

/// Segment of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Segment {
    /// Literal text.
    Text(String),
    /// Tokens between `{{` and `}}`. Comments are dropped.
    Action(Vec<Token>),
}

/// Token of an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    /// True if no whitespace precedes the token.
    pub(super) joined: bool,
    /// Byte offset in the template.
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Constant(Value),
    /// Identifier: a function or a keyword.
    Word(String),
    /// `.Name`.
    Field(String),
    /// `.` alone.
    Dot,
    /// `$name`, or `$` on its own.
    Variable(String),
    /// One of `( ) | , :=  =`.
    Mark(&'static str),
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenKind::Constant(value) => write!(f, "{value}"),
            TokenKind::Word(word) => f.write_str(word),
            TokenKind::Field(name) => write!(f, ".{name}"),
            TokenKind::Dot => f.write_str("."),
            TokenKind::Variable(name) => write!(f, "${name}"),
            TokenKind::Mark(mark) => f.write_str(mark),
        }
    }
}

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
/// Closing braces that trim the text after them. Whitespace precedes them.
const TRIMMING_CLOSE: &str = "-}}";
/// Whitespace that separates tokens and that `{{-` and `-}}` trim.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
const MARKS: [&str; 6] = ["(", ")", "|", ",", ":=", "="];

/// Splits a template into its segments.
pub(super) fn segments(template: &str) -> Result<Vec<Segment>, ParseError<TemplateError>> {
    let mut cursor = Cursor::new(template);
    let (mut segments, mut trims) = (Vec::new(), false);
    while let Some((text, inner)) = cursor.rest().split_once(OPEN) {
        cursor.move_to(inner);
        let start = cursor.at();
        // A minus sign trims only if whitespace separates it from the action.
        let trims_before = inner.strip_prefix('-').is_some_and(|after| after.starts_with(BLANKS));
        push_text(&mut segments, text, trims, trims_before);
        if trims_before {
            cursor.take("-");
        }
        let action = action(&mut cursor, trims_before).map_err(|error| ParseError::at(cursor.at(), error))?;
        trims = action.trims_after;
        match action.tokens {
            None => {}
            Some(tokens) if tokens.is_empty() => return Err(ParseError::at(start, TemplateError::Expected("a value"))),
            Some(tokens) => segments.push(Segment::Action(tokens)),
        }
    }
    push_text(&mut segments, cursor.rest(), trims, false);
    Ok(segments)
}

fn push_text(segments: &mut Vec<Segment>, text: &str, trims_start: bool, trims_end: bool) {
    let text = if trims_start { text.trim_start_matches(BLANKS) } else { text };
    let text = if trims_end { text.trim_end_matches(BLANKS) } else { text };
    if !text.is_empty() {
        segments.push(Segment::Text(text.to_owned()));
    }
}

/// Content of an action.
struct Action {
    /// `None` for a comment.
    tokens: Option<Vec<Token>>,
    /// True if the closing braces trim the text after them.
    trims_after: bool,
}

/// Takes an action up to and including its closing braces.
fn action(cursor: &mut Cursor<'_>, trims_before: bool) -> Result<Action, TemplateError> {
    // Only a trim marker and its whitespace may precede a comment.
    let rest = cursor.rest();
    let start = if trims_before { rest.trim_start_matches(BLANKS) } else { rest };
    if let Some(inner) = start.strip_prefix("/*") {
        return Ok(Action { tokens: None, trims_after: skip_comment(cursor, inner)? });
    }
    let mut tokens = Vec::new();
    loop {
        let joined = cursor.take_while(|next| BLANKS.contains(&next)).is_empty();
        if cursor.take(CLOSE) {
            return Ok(Action { tokens: Some(tokens), trims_after: false });
        }
        if !joined && cursor.take(TRIMMING_CLOSE) {
            return Ok(Action { tokens: Some(tokens), trims_after: true });
        }
        let at = cursor.at();
        tokens.push(Token { kind: token(cursor)?, joined, at });
    }
}

/// Moves after a comment, whose text starts with `inner`. Returns true if its closing braces trim the text after them.
fn skip_comment<'t>(cursor: &mut Cursor<'t>, inner: &'t str) -> Result<bool, TemplateError> {
    let (_, rest) = inner.split_once("*/").ok_or(TemplateError::Unclosed("a comment"))?;
    let trimmed = rest.trim_start_matches(BLANKS);
    let closed = rest.strip_prefix(CLOSE).map(|rest| (rest, false));
    let trims = || trimmed.strip_prefix(TRIMMING_CLOSE).filter(|_| trimmed.len() < rest.len());
    let closed = closed.or_else(|| trims().map(|rest| (rest, true)));
    let (rest, trims) = closed.ok_or(TemplateError::Unclosed("a comment"))?;
    cursor.move_to(rest);
    Ok(trims)
}

fn token(cursor: &mut Cursor<'_>) -> Result<TokenKind, TemplateError> {
    let first = cursor.peek().ok_or(TemplateError::Unclosed("an action"))?;
    if let Some(mark) = cursor.take_any(&MARKS) {
        return Ok(TokenKind::Mark(mark));
    }
    let starts_fraction = |rest: &str| rest[1..].starts_with(|next: char| next.is_ascii_digit());
    match first {
        '"' | '`' => string(cursor).map(|text| TokenKind::Constant(Value::Text(text))),
        '\'' => character(cursor),
        '$' => {
            cursor.take("$");
            Ok(TokenKind::Variable(word(cursor).to_owned()))
        }
        '.' if !starts_fraction(cursor.rest()) => {
            cursor.take(".");
            let name = word(cursor).to_owned();
            Ok(if name.is_empty() { TokenKind::Dot } else { TokenKind::Field(name) })
        }
        '0'..='9' | '.' | '+' | '-' => number(cursor),
        _ => match word(cursor) {
            "" => Err(TemplateError::Unexpected(first.to_string())),
            word => Ok(match literal::named_constant(word) {
                Some(value) => TokenKind::Constant(value),
                None => TokenKind::Word(word.to_owned()),
            }),
        },
    }
}

fn word<'t>(cursor: &mut Cursor<'t>) -> &'t str {
    cursor.take_while(|next| next.is_alphanumeric() || next == '_')
}

fn number(cursor: &mut Cursor<'_>) -> Result<TokenKind, TemplateError> {
    let rest = cursor.rest();
    let (mut end, mut before) = (0, ' ');
    for c in rest.chars() {
        // A sign is part of a number only at its start and in an exponent.
        let signs = matches!(c, '+' | '-') && (end == 0 || matches!(before, 'e' | 'E' | 'p' | 'P'));
        if !signs && !c.is_ascii_alphanumeric() && c != '.' && c != '_' {
            break;
        }
        (end, before) = (end + c.len_utf8(), c);
    }
    super::numbers::constant(cursor.take_bytes(end)).map(TokenKind::Constant)
}

fn string(cursor: &mut Cursor<'_>) -> Result<String, TemplateError> {
    literal::string(cursor, StringSyntax::Go).map_err(|error| match error {
        StringError::Unclosed => TemplateError::Unclosed("a string"),
        StringError::BadEscape => TemplateError::BadEscape,
    })
}

/// Takes a character constant. Its value is its code point.
fn character(cursor: &mut Cursor<'_>) -> Result<TokenKind, TemplateError> {
    let text = string(cursor)?;
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(character), None) => Ok(TokenKind::Constant(Value::Integer(i64::from(u32::from(character))))),
        _ => Err(TemplateError::Unexpected(format!("'{text}'"))),
    }
}
