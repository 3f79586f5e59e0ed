//! Lexer for expressions.

use super::error::ExpressionError;
use crate::ParseError;
use crate::cursor::Cursor;
use crate::literal::{self, StringError, StringSyntax};
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
    let mut cursor = Cursor::new(text);
    let mut tokens = Vec::new();
    loop {
        cursor.take_while(char::is_whitespace);
        let at = cursor.at();
        let Some(first) = cursor.peek() else { return Ok(tokens) };
        let kind = token(first, &mut cursor).map_err(|error| ParseError::at(at, error))?;
        tokens.push(Token { kind, at });
    }
}

/// Takes a token.
fn token(first: char, cursor: &mut Cursor<'_>) -> Result<TokenKind, ExpressionError> {
    match first {
        '\'' | '"' | '`' => {
            let text = literal::string(cursor, StringSyntax::Expression).map_err(|error| match error {
                StringError::Unclosed => ExpressionError::Unclosed("a string"),
                StringError::BadEscape => ExpressionError::BadEscape,
            })?;
            Ok(TokenKind::Constant(Value::Text(text)))
        }
        '0'..='9' => number(cursor),
        'a'..='z' | 'A'..='Z' | '_' => Ok(word(cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_'))),
        _ => match cursor.take_any(&MARKS) {
            Some(mark) => Ok(TokenKind::Mark(mark)),
            None => Err(ExpressionError::Unexpected(first.to_string())),
        },
    }
}

fn word(word: &str) -> TokenKind {
    match word {
        "and" => TokenKind::Mark("&&"),
        "or" => TokenKind::Mark("||"),
        _ => match literal::named_constant(word) {
            Some(value) => TokenKind::Constant(value),
            None => TokenKind::Word(word.to_owned()),
        },
    }
}

fn number(cursor: &mut Cursor<'_>) -> Result<TokenKind, ExpressionError> {
    let rest = cursor.rest();
    let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_').unwrap_or(rest.len());
    // `..` is the range operator and not part of a number.
    let length = rest[..length].find("..").unwrap_or(length);
    let text = cursor.take_bytes(length).replace('_', "");
    let hexadecimal = text.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok());
    let value = hexadecimal.or(text.parse().ok()).map(Value::Integer);
    let value = value.or_else(|| text.parse().ok().map(Value::Float));
    value.map(TokenKind::Constant).ok_or(ExpressionError::Unexpected(text))
}
