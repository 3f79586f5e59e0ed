//! What can be wrong with an expression, bounds that it may not exceed included.

use core::fmt;

use super::sort::Sort;
use crate::goregexp;

/// Octets of the longest expression.
pub(super) const LENGTH_MAX: usize = 4096;
/// Parentheses and operators that may stand in each other: more than people write, and no danger to the stack.
pub(super) const DEPTH_MAX: usize = 64;

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLong,
    TooDeep,
    /// It ends where more must follow.
    Ends,
    Unclosed(&'static str),
    Unexpected(String),
    BadEscape,
    UnknownName(String),
    /// A function does not take these arguments.
    BadArguments(String),
    /// An operator does not go with these kinds.
    Mismatch(String, Sort, Sort),
    BadRegex(String, goregexp::Fault),
    NotHere(&'static str),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooLong => write!(f, "it is longer than {LENGTH_MAX} octets"),
            Fault::TooDeep => write!(f, "more than {DEPTH_MAX} levels stand in each other"),
            Fault::Ends => f.write_str("it ends too early"),
            Fault::Unclosed(what) => write!(f, "it ends inside of {what}"),
            Fault::Unexpected(what) => write!(f, "unexpected `{what}`"),
            Fault::BadEscape => f.write_str("a backslash does not begin an escape"),
            Fault::UnknownName(name) => write!(f, "unknown name {name}"),
            Fault::BadArguments(function) => write!(f, "`{function}` does not take these arguments"),
            Fault::Mismatch(operator, one, other) => {
                write!(f, "`{operator}` does not go with {} and {}", one.name(), other.name())
            }
            Fault::BadRegex(regex, fault) => write!(f, "`{regex}` is not a regular expression: {fault}"),
            Fault::NotHere(what) => write!(f, "{what} is not supported here"),
        }
    }
}
