//! Error of a parser at a position of its text.

use core::error::Error;
use core::fmt;

/// Error at a byte offset of a parsed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError<E> {
    /// Byte offset in the text.
    pub offset: usize,
    /// Reason why the text is invalid.
    pub error: E,
}

impl<E> ParseError<E> {
    pub(crate) const fn at(offset: usize, error: E) -> ParseError<E> {
        ParseError { offset, error }
    }
}

impl<E: fmt::Display> fmt::Display for ParseError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.error)
    }
}

impl<E: Error> Error for ParseError<E> {
    /// Returns the cause of the reason. The text of this error contains the reason itself.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}
