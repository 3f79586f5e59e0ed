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
const MARKS: [&str; 32] = [
    "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "**", "..", "=", "{", "}", "?", ":", "<", ">", "!", "+", "-", "*",
    "/", "%", "(", ")", "[", "]", ",", ".", "|", "^", ";",
];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ParseError<ExpressionError>> {
    let mut cursor = Cursor::new(text);
    let mut tokens = Vec::new();
    loop {
        skip_blanks(&mut cursor)?;
        let at = cursor.at();
        let Some(first) = cursor.peek() else { return Ok(tokens) };
        let kind = token(first, &mut cursor).map_err(|error| ParseError::at(at, error))?;
        tokens.push(Token { kind, at });
    }
}

/// Skips white space and comments: `//` to the end of the line, and from `/*` to `*/`.
fn skip_blanks(cursor: &mut Cursor<'_>) -> Result<(), ParseError<ExpressionError>> {
    loop {
        cursor.take_while(char::is_whitespace);
        let at = cursor.at();
        if cursor.take("//") {
            cursor.take_while(|letter| letter != '\n');
        } else if cursor.take("/*") {
            let end = cursor.rest().find("*/");
            let end = end.ok_or(ParseError::at(at, ExpressionError::Unclosed("a comment")))?;
            cursor.take_bytes(end + 2);
        } else {
            return Ok(());
        }
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
        '#' => {
            cursor.take("#");
            let name = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            Ok(TokenKind::Word(format!("#{name}")))
        }
        '.' if cursor.rest().as_bytes().get(1).is_some_and(u8::is_ascii_digit) => number(cursor),
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
    let radixes = [("0x", 16), ("0X", 16), ("0b", 2), ("0B", 2), ("0o", 8), ("0O", 8)];
    let prefixed = radixes.iter().find_map(|(prefix, radix)| Some((text.strip_prefix(prefix)?, *radix)));
    let integer = match prefixed {
        Some((digits, radix)) => i64::from_str_radix(digits, radix).ok(),
        None => text.parse().ok(),
    };
    let value = integer.map(Value::Integer);
    let value = value.or_else(|| text.parse().ok().map(Value::Float));
    value.map(TokenKind::Constant).ok_or(ExpressionError::Unexpected(text))
}
