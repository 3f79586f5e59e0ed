//! Lexer: splits a template into text and the tokens of its actions.

use core::fmt;

use super::error::TemplateError;
use crate::ParseError;
use crate::value::Value;

/// Segment of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
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
/// Whitespace that separates tokens and that `{{-` and `-}}` trim.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];
const MARKS: [&str; 6] = ["(", ")", "|", ",", ":=", "="];

/// Splits a template into its pieces.
pub(super) fn pieces(template: &str) -> Result<Vec<Piece>, ParseError<TemplateError>> {
    let mut pieces = Vec::new();
    let (mut at, mut trims) = (0, false);
    while let Some(open) = template[at..].find(OPEN).map(|open| at + open) {
        let inner = open + OPEN.len();
        // A minus sign trims only if whitespace separates it from the action.
        let trims_before = template[inner..].starts_with('-') && starts_blank(&template[inner + 1..]);
        push_text(&mut pieces, &template[at..open], trims, trims_before);
        let mut action =
            Action { text: template, at: inner + usize::from(trims_before), tokens: Vec::new(), is_comment: false };
        trims = action.read().map_err(|error| ParseError::at(action.at, error))?;
        at = action.at;
        match (action.tokens.is_empty(), action.is_comment) {
            (_, true) => {}
            (false, false) => pieces.push(Piece::Action(action.tokens)),
            (true, false) => return Err(ParseError::at(inner, TemplateError::Expected("a value"))),
        }
    }
    push_text(&mut pieces, &template[at..], trims, false);
    Ok(pieces)
}

fn push_text(pieces: &mut Vec<Piece>, text: &str, trims_start: bool, trims_end: bool) {
    let text = if trims_start { text.trim_start_matches(BLANKS) } else { text };
    let text = if trims_end { text.trim_end_matches(BLANKS) } else { text };
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

fn starts_blank(text: &str) -> bool {
    text.starts_with(BLANKS)
}

/// State of the lexer inside an action.
struct Action<'t> {
    text: &'t str,
    at: usize,
    tokens: Vec<Token>,
    is_comment: bool,
}

impl<'t> Action<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reads up to and including the closing braces. Returns true if they trim the following text.
    fn read(&mut self) -> Result<bool, TemplateError> {
        // Only a trim marker and its whitespace may precede a comment.
        let trims = self.text[..self.at].ends_with('-');
        let comment = if trims { self.rest().trim_start_matches(BLANKS) } else { self.rest() };
        if let Some(comment) = comment.strip_prefix("/*") {
            self.is_comment = true;
            return self.skip_comment(comment);
        }
        loop {
            let before = self.rest();
            let rest = before.trim_start_matches(BLANKS);
            let joined = before.len() == rest.len();
            self.at = self.text.len() - rest.len();
            if let Some(end) = rest.strip_prefix(CLOSE) {
                self.at = self.text.len() - end.len();
                return Ok(false);
            }
            if let Some(end) = rest.strip_prefix("-}}").filter(|_| !joined) {
                self.at = self.text.len() - end.len();
                return Ok(true);
            }
            let at = self.at;
            let kind = self.token()?;
            self.tokens.push(Token { kind, joined, at });
        }
    }

    fn skip_comment(&mut self, comment: &'t str) -> Result<bool, TemplateError> {
        let (_, rest) = comment.split_once("*/").ok_or(TemplateError::Unclosed("a comment"))?;
        let trimmed = rest.trim_start_matches(BLANKS);
        let closed = rest.strip_prefix(CLOSE).map(|rest| (rest, false));
        let trims = || trimmed.strip_prefix("-}}").filter(|_| trimmed.len() < rest.len());
        let closed = closed.or_else(|| trims().map(|rest| (rest, true)));
        let (rest, trims) = closed.ok_or(TemplateError::Unclosed("a comment"))?;
        self.at = self.text.len() - rest.len();
        Ok(trims)
    }

    fn token(&mut self) -> Result<TokenKind, TemplateError> {
        let rest = self.rest();
        let mut chars = rest.chars();
        let first = chars.next().ok_or(TemplateError::Unclosed("an action"))?;
        if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            self.at += mark.len();
            return Ok(TokenKind::Mark(mark));
        }
        match first {
            '"' | '`' | '\'' => self.quoted(first),
            '$' => {
                self.at += 1;
                Ok(TokenKind::Variable(self.word().to_owned()))
            }
            '.' if !chars.next().is_some_and(|next| next.is_ascii_digit()) => {
                self.at += 1;
                let name = self.word().to_owned();
                Ok(if name.is_empty() { TokenKind::Dot } else { TokenKind::Field(name) })
            }
            '0'..='9' | '.' | '+' | '-' => self.number(),
            _ => match self.word() {
                "" => Err(TemplateError::Unexpected(first.to_string())),
                "true" => Ok(TokenKind::Constant(Value::Bool(true))),
                "false" => Ok(TokenKind::Constant(Value::Bool(false))),
                "nil" => Ok(TokenKind::Constant(Value::Nil)),
                word => Ok(TokenKind::Word(word.to_owned())),
            },
        }
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Result<TokenKind, TemplateError> {
        let rest = self.rest();
        let (mut end, mut before) = (0, ' ');
        for c in rest.chars() {
            // A sign is part of a number only at its start and in an exponent.
            let signs = matches!(c, '+' | '-') && (end == 0 || matches!(before, 'e' | 'E' | 'p' | 'P'));
            if !signs && !c.is_ascii_alphanumeric() && c != '.' && c != '_' {
                break;
            }
            (end, before) = (end + c.len_utf8(), c);
        }
        self.at += end;
        super::numbers::constant(&rest[..end]).map(TokenKind::Constant)
    }

    /// Reads a string, or a character constant, whose value is its code point.
    fn quoted(&mut self, quote: char) -> Result<TokenKind, TemplateError> {
        let unclosed = TemplateError::Unclosed("a string");
        self.at += 1;
        let mut text = Vec::new();
        let mut chars = self.rest().char_indices();
        let end = loop {
            let (at, next) = chars.next().ok_or(unclosed.clone())?;
            match next {
                _ if next == quote => break at + 1,
                '\n' if quote != '`' => return Err(unclosed),
                '\\' if quote != '`' => unescape(&mut chars, quote, &mut text).ok_or(TemplateError::BadEscape)?,
                _ => text.extend_from_slice(next.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        };
        // The output is text, so a constant that is not valid UTF-8 is rejected. Go accepts it.
        let text = String::from_utf8(text).map_err(|_| TemplateError::BadEscape)?;
        self.at += end;
        if quote != '\'' {
            return Ok(TokenKind::Constant(Value::Text(text)));
        }
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(character), None) => Ok(TokenKind::Constant(Value::Integer(i64::from(u32::from(character))))),
            _ => Err(TemplateError::Unexpected(format!("'{text}'"))),
        }
    }
}

/// Decodes the escape sequence after a backslash, as Go does, and appends its value.
fn unescape(chars: &mut core::str::CharIndices<'_>, quote: char, text: &mut Vec<u8>) -> Option<()> {
    let (_, kind) = chars.next()?;
    let mut number = |digits: usize, radix: u32, first: u32| {
        let mut number = first;
        for _ in 0..digits {
            number = number.checked_mul(radix)?.checked_add(chars.next()?.1.to_digit(radix)?)?;
        }
        Some(number)
    };
    let plain = match kind {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        '\\' => kind,
        _ if kind == quote => kind,
        'u' => char::from_u32(number(4, 16, 0)?)?,
        'U' => char::from_u32(number(8, 16, 0)?)?,
        // Escapes of single bytes.
        'x' | '0'..='7' => {
            let byte = if kind == 'x' { number(2, 16, 0) } else { number(2, 8, kind.to_digit(8)?) };
            text.push(u8::try_from(byte?).ok()?);
            return Some(());
        }
        _ => return None,
    };
    text.extend_from_slice(plain.encode_utf8(&mut [0; 4]).as_bytes());
    Some(())
}
