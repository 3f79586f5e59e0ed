//! Lexer for expressions.

use super::error::ExpressionError;
use crate::ParseError;
use crate::value::Value;

/// A token and its byte offset.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Constant(Value),
    /// A name, or an operator that is a word.
    Word(String),
    /// An operator or a bracket.
    Mark(&'static str),
}

impl TokenKind {
    /// Returns the token as it is written.
    pub(super) fn text(&self) -> String {
        match self {
            TokenKind::Constant(value) => value.to_string(),
            TokenKind::Word(word) => word.clone(),
            TokenKind::Mark(mark) => (*mark).to_owned(),
        }
    }
}

/// Operators and brackets. Each one precedes its own prefixes, so that the longest match wins.
const MARKS: [&str; 26] = [
    "==", "!=", "<=", ">=", "&&", "||", "??", "**", "..", "?", ":", "<", ">", "!", "+", "-", "*", "/", "%", "(", ")",
    "[", "]", ",", ".", "|",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ParseError<ExpressionError>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let at = text.len() - rest.len();
        let (kind, length) = token(first, rest).map_err(|error| ParseError::at(at, error))?;
        tokens.push(Token { kind, at });
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Returns the token at the start of a text and its length in bytes.
fn token(first: char, rest: &str) -> Result<(TokenKind, usize), ExpressionError> {
    let span = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    match first {
        '\'' | '"' | '`' => quoted(first, rest),
        '0'..='9' => number(rest, span(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_')),
        'a'..='z' | 'A'..='Z' | '_' => {
            let length = span(|c| c.is_ascii_alphanumeric() || c == '_');
            Ok((word(&rest[..length]), length))
        }
        _ => match MARKS.into_iter().find(|mark| rest.starts_with(mark)) {
            Some(mark) => Ok((TokenKind::Mark(mark), mark.len())),
            None => Err(ExpressionError::Unexpected(first.to_string())),
        },
    }
}

fn word(word: &str) -> TokenKind {
    match word {
        "true" => TokenKind::Constant(Value::Bool(true)),
        "false" => TokenKind::Constant(Value::Bool(false)),
        "nil" => TokenKind::Constant(Value::Nil),
        "and" => TokenKind::Mark("&&"),
        "or" => TokenKind::Mark("||"),
        _ => TokenKind::Word(word.to_owned()),
    }
}

fn number(rest: &str, length: usize) -> Result<(TokenKind, usize), ExpressionError> {
    // `..` is the range operator and not part of a number.
    let length = rest[..length].find("..").unwrap_or(length);
    let text = rest[..length].replace('_', "");
    let hexadecimal = text.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok());
    let value = hexadecimal.or(text.parse().ok()).map(Value::Integer);
    let value = value.or_else(|| text.parse().ok().map(Value::Float));
    value.map(|value| (TokenKind::Constant(value), length)).ok_or(ExpressionError::Unexpected(text))
}

fn quoted(quote: char, rest: &str) -> Result<(TokenKind, usize), ExpressionError> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, next)) = chars.next() {
        match next {
            _ if next == quote => return Ok((TokenKind::Constant(Value::Text(text)), at + 1)),
            '\\' if quote != '`' => text.push(match chars.next().map(|(_, escaped)| escaped) {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(escaped @ ('\\' | '\'' | '"')) => escaped,
                _ => return Err(ExpressionError::BadEscape),
            }),
            _ => text.push(next),
        }
    }
    Err(ExpressionError::Unclosed("a string"))
}
