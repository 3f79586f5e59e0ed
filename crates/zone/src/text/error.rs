//! Parse errors with their position.

use core::fmt;

use wire::NameError;

/// Maximum number of characters that an error quotes from the text.
const FOUND_MAX: usize = 40;

/// Parse error with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line, starting at 1.
    pub line: u32,
    /// Column in bytes, starting at 1.
    pub column: u32,
    /// Cause of the error.
    pub kind: ParseErrorKind,
}

/// Cause of a parse error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseErrorKind {
    /// The text does not match what is expected at this position.
    Expected {
        /// Description of the expected text.
        what: &'static str,
        /// The text found.
        found: String,
    },
    /// The record ends where this was expected.
    Missing(&'static str),
    /// The text is not a valid name.
    Name {
        /// The text found.
        found: String,
        /// Cause of the error.
        error: NameError,
    },
    /// A quote is not closed.
    OpenQuote,
    /// An opening parenthesis is not closed.
    OpenParenthesis,
    /// A closing parenthesis has no opening one.
    StrayParenthesis,
    /// The text has more records than the caller accepts.
    SecondRecord,
    /// RDATA is longer than 65,535 bytes.
    TooLong,
}

/// Position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Position {
    pub(crate) const fn error(self, kind: ParseErrorKind) -> ParseError {
        ParseError { line: self.line, column: self.column, kind }
    }
}

/// Shortens a part of the text for an error message.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    match text.char_indices().nth(FOUND_MAX) {
        None => text.into_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

impl fmt::Display for ParseErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseErrorKind::Expected { what, found } => write!(f, "expected {what}, found `{found}`"),
            ParseErrorKind::Missing(what) => write!(f, "expected {what}, found the end of the record"),
            ParseErrorKind::Name { found, error } => write!(f, "expected a name, found `{found}`: {error}"),
            ParseErrorKind::OpenQuote => f.write_str("`\"` is never closed"),
            ParseErrorKind::OpenParenthesis => f.write_str("`(` is never closed"),
            ParseErrorKind::StrayParenthesis => f.write_str("`)` has no matching `(`"),
            ParseErrorKind::SecondRecord => f.write_str("expected only one record"),
            ParseErrorKind::TooLong => f.write_str("RDATA is longer than 65535 bytes"),
        }
    }
}

impl fmt::Display for ParseError {
    /// Writes `LINE:COLUMN: CAUSE`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.kind)
    }
}

impl core::error::Error for ParseError {}
