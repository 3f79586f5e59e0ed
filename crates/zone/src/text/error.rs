//! What is wrong with a text, and where.

use core::fmt;

use wire::NameError;

/// Characters of the text that an error repeats: enough to find it.
const FOUND_MAX: usize = 40;

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in octets.
    pub column: u32,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Something else was expected there.
    Expected {
        /// What.
        what: &'static str,
        /// What stands there.
        found: String,
    },
    /// The record ends where something was expected.
    Missing(&'static str),
    /// No name, and why.
    Name {
        /// What stands there.
        found: String,
        /// What is wrong with it.
        error: NameError,
    },
    /// A quote without its end.
    OpenQuote,
    /// An opening parenthesis without its closing one.
    OpenParenthesis,
    /// A closing parenthesis without its opening one.
    StrayParenthesis,
    /// The data of a record are longer than 65,535 octets.
    TooLong,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Place {
    pub(crate) const fn error(self, fault: Fault) -> Error {
        Error { line: self.line, column: self.column, fault }
    }
}

/// A piece of the text, as errors repeat it.
pub(crate) fn shown(octets: &[u8]) -> String {
    let text = String::from_utf8_lossy(octets);
    match text.char_indices().nth(FOUND_MAX) {
        None => text.into_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Expected { what, found } => write!(f, "expected {what}, found `{found}`"),
            Fault::Missing(what) => write!(f, "expected {what}, found the end of the record"),
            Fault::Name { found, error } => write!(f, "expected a name, found `{found}`: {error}"),
            Fault::OpenQuote => f.write_str("a quote is not closed"),
            Fault::OpenParenthesis => f.write_str("a parenthesis is not closed"),
            Fault::StrayParenthesis => f.write_str("a parenthesis closes nothing"),
            Fault::TooLong => f.write_str("the data of a record are longer than 65535 octets"),
        }
    }
}

impl fmt::Display for Error {
    /// `LINE:COLUMN: WHAT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.fault)
    }
}

impl core::error::Error for Error {}
