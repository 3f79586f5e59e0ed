//! A template cut into text and the tokens of its actions.

use core::fmt;

use super::parse::Fault;
use crate::value::Value;

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    /// Text that is printed as it is.
    Text(String),
    /// What stands between `{{` and `}}`, comments left out.
    Action(Vec<Token>),
}

/// A token of an action.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// No blank stands before it.
    pub(super) joined: bool,
    /// Octets of the template before it.
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Constant(Value),
    /// A word: a function, a keyword.
    Word(String),
    /// `.Name`.
    Field(String),
    /// `.` alone.
    Dot,
    /// `$name`, or `$` alone.
    Variable(String),
    /// One of `( ) | , :=  =`.
    Mark(&'static str),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Constant(value) => write!(f, "{value}"),
            Kind::Word(word) => f.write_str(word),
            Kind::Field(name) => write!(f, ".{name}"),
            Kind::Dot => f.write_str("."),
            Kind::Variable(name) => write!(f, "${name}"),
            Kind::Mark(mark) => f.write_str(mark),
        }
    }
}

const OPEN: &str = "{{";
const CLOSE: &str = "}}";
const MARKS: [&str; 6] = ["(", ")", "|", ",", ":=", "="];

/// Cuts a template into its pieces.
pub(super) fn pieces(template: &str) -> Result<Vec<Piece>, (usize, Fault)> {
    let mut pieces = Vec::new();
    let (mut at, mut trims) = (0, false);
    while let Some(open) = template[at..].find(OPEN).map(|open| at + open) {
        let inner = open + OPEN.len();
        // A minus sign trims where a blank separates it from what is inside.
        let trims_before = template[inner..].starts_with('-') && starts_blank(&template[inner + 1..]);
        push_text(&mut pieces, &template[at..open], trims, trims_before);
        let mut action = Action { text: template, at: inner + usize::from(trims_before), tokens: Vec::new() };
        trims = action.read().map_err(|fault| (action.at, fault))?;
        at = action.at;
        if !action.tokens.is_empty() {
            pieces.push(Piece::Action(action.tokens));
        }
    }
    push_text(&mut pieces, &template[at..], trims, false);
    Ok(pieces)
}

fn push_text(pieces: &mut Vec<Piece>, text: &str, trims_start: bool, trims_end: bool) {
    let text = if trims_start { text.trim_start() } else { text };
    let text = if trims_end { text.trim_end() } else { text };
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

fn starts_blank(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_whitespace())
}

/// An action that is being read.
struct Action<'t> {
    text: &'t str,
    at: usize,
    tokens: Vec<Token>,
}

impl<'t> Action<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reads up to and with the closing braces; says whether they trim what follows.
    fn read(&mut self) -> Result<bool, Fault> {
        let after_blanks = self.rest().trim_start();
        if after_blanks.starts_with("/*") {
            return self.skip_comment(after_blanks);
        }
        loop {
            let before = self.rest();
            let rest = before.trim_start();
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

    fn skip_comment(&mut self, comment: &'t str) -> Result<bool, Fault> {
        let (_, rest) = comment.split_once("*/").ok_or(Fault::Unclosed("a comment"))?;
        let trimmed = rest.trim_start();
        let closed = trimmed.strip_prefix(CLOSE).map(|rest| (rest, false));
        let closed = closed.or_else(|| trimmed.strip_prefix("-}}").map(|rest| (rest, true)));
        let (rest, trims) = closed.ok_or(Fault::Unclosed("a comment"))?;
        self.at = self.text.len() - rest.len();
        Ok(trims)
    }

    fn token(&mut self) -> Result<Kind, Fault> {
        let rest = self.rest();
        let mut chars = rest.chars();
        let first = chars.next().ok_or(Fault::Unclosed("an action"))?;
        if let Some(mark) = MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            self.at += mark.len();
            return Ok(Kind::Mark(mark));
        }
        match first {
            '"' | '`' | '\'' => self.quoted(first),
            '$' => {
                self.at += 1;
                Ok(Kind::Variable(self.word().to_owned()))
            }
            '.' if !chars.next().is_some_and(|next| next.is_ascii_digit()) => {
                self.at += 1;
                let name = self.word().to_owned();
                Ok(if name.is_empty() { Kind::Dot } else { Kind::Field(name) })
            }
            '0'..='9' | '.' | '+' | '-' => self.number(),
            _ => match self.word() {
                "" => Err(Fault::Unexpected(first.to_string())),
                "true" => Ok(Kind::Constant(Value::Flag(true))),
                "false" => Ok(Kind::Constant(Value::Flag(false))),
                "nil" => Ok(Kind::Constant(Value::Missing)),
                word => Ok(Kind::Word(word.to_owned())),
            },
        }
    }

    fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self) -> Result<Kind, Fault> {
        let rest = self.rest();
        let signed = usize::from(rest.starts_with(['+', '-']));
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '_';
        let end = rest[signed..].find(|c| !is_part(c)).map_or(rest.len(), |end| signed + end);
        self.at += end;
        let text = rest[..end].replace('_', "");
        let value = super::functions::parse_integer(&text).map(Value::Integer);
        let value = value.or_else(|| text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float));
        value.map(Kind::Constant).ok_or(Fault::Unexpected(text))
    }

    /// Reads a string or a character, whose value is its number.
    fn quoted(&mut self, quote: char) -> Result<Kind, Fault> {
        let unclosed = Fault::Unclosed("a string");
        self.at += 1;
        let mut text = String::new();
        let mut chars = self.rest().char_indices();
        let end = loop {
            let (at, next) = chars.next().ok_or(unclosed.clone())?;
            match next {
                _ if next == quote => break at + 1,
                '\n' if quote != '`' => return Err(unclosed),
                '\\' if quote != '`' => text.push(unescape(&mut chars).ok_or(Fault::BadEscape)?),
                _ => text.push(next),
            }
        };
        self.at += end;
        if quote != '\'' {
            return Ok(Kind::Constant(Value::Text(text)));
        }
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(character), None) => Ok(Kind::Constant(Value::Integer(i64::from(u32::from(character))))),
            _ => Err(Fault::Unexpected(format!("'{text}'"))),
        }
    }
}

/// The character behind a backslash, as in Go.
fn unescape(chars: &mut core::str::CharIndices<'_>) -> Option<char> {
    let (_, kind) = chars.next()?;
    let mut number = |digits: usize, radix: u32, first: u32| {
        let mut number = first;
        for _ in 0..digits {
            number = number.checked_mul(radix)?.checked_add(chars.next()?.1.to_digit(radix)?)?;
        }
        char::from_u32(number)
    };
    match kind {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'v' => Some('\u{b}'),
        '\\' | '\'' | '"' => Some(kind),
        'x' => number(2, 16, 0),
        'u' => number(4, 16, 0),
        'U' => number(8, 16, 0),
        '0'..='7' => number(2, 8, kind.to_digit(8)?),
        _ => None,
    }
}
