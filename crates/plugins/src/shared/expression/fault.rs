//! Errors in expressions, including the limits on their size.

use core::fmt;

use super::sort::Sort;
use crate::shared::goregexp;

/// Maximum length of an expression in bytes.
pub(super) const LENGTH_MAX: usize = 4096;
/// Maximum nesting of parentheses and operators: more than people write, and safe for the stack.
pub(super) const DEPTH_MAX: usize = 64;

/// Error in an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLong,
    TooDeep,
    /// Unexpected end of the expression.
    Ends,
    Unclosed(&'static str),
    Unexpected(String),
    BadEscape,
    UnknownName(String),
    /// The function does not accept these arguments.
    BadArguments(String),
    /// The operator cannot be applied to these types.
    Mismatch(String, Sort, Sort),
    BadRegex(String, goregexp::Fault),
    NotHere(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooLong => write!(f, "longer than {LENGTH_MAX} bytes"),
            Fault::TooDeep => write!(f, "nested more than {DEPTH_MAX} levels deep"),
            Fault::Ends => f.write_str("unexpected end of the expression"),
            Fault::Unclosed(what) => write!(f, "unexpected end inside {what}"),
            Fault::Unexpected(what) => write!(f, "unexpected `{what}`"),
            Fault::BadEscape => f.write_str("a backslash does not start a known escape sequence"),
            Fault::UnknownName(name) => write!(f, "unknown name {name}"),
            Fault::BadArguments(function) => write!(f, "`{function}` does not take these arguments"),
            Fault::Mismatch(operator, one, other) => {
                write!(f, "`{operator}` cannot be applied to {} and {}", one.name(), other.name())
            }
            Fault::BadRegex(regex, fault) => write!(f, "`{regex}` is not a regular expression: {fault}"),
            Fault::NotHere(what) => write!(f, "{what} is not supported here"),
        }
    }
}
