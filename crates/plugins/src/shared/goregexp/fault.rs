//! Errors in regular expressions, and the limits on them.

use core::fmt;

/// Length limit of an expression in bytes, as in CoreDNS. Longer ones are a mistake and cost memory.
pub(super) const LENGTH_MAX: usize = 10_000;
/// Limit of group nesting, which keeps the stack small. Go allows more; real expressions need far fewer.
pub(super) const DEPTH_MAX: u32 = 200;
/// Largest repeat count, also for the product of nested counts, as in Go.
pub(super) const REPEAT_MAX: u32 = 1000;

/// Error in a regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLong,
    /// The compiled expression would exceed the memory limit.
    TooLarge,
    TooDeep,
    /// Invalid escape sequence.
    Escape(String),
    /// Trailing backslash.
    TrailingBackslash,
    /// Missing `]`.
    UnclosedClass,
    /// Invalid range or class name.
    Class(String),
    UnclosedGroup,
    UnopenedGroup,
    /// Group syntax after `(?` that Go does not have.
    Group(String),
    GroupName,
    /// Repetition operator without an operand.
    RepeatsNothing(String),
    /// Repetition operator right after another.
    RepeatsTwice(String),
    /// Repeat count out of range.
    RepeatCount(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooLong => write!(f, "the expression is longer than {LENGTH_MAX} bytes"),
            Fault::TooLarge => f.write_str("the repetitions need too much memory"),
            Fault::TooDeep => write!(f, "more than {DEPTH_MAX} nested groups"),
            Fault::Escape(text) => write!(f, "invalid escape sequence: `{text}`"),
            Fault::TrailingBackslash => f.write_str("trailing backslash at end of expression"),
            Fault::UnclosedClass => f.write_str("missing closing ]"),
            Fault::Class(text) => write!(f, "invalid character class or range: `{text}`"),
            Fault::UnclosedGroup => f.write_str("missing closing )"),
            Fault::UnopenedGroup => f.write_str("unexpected )"),
            Fault::Group(text) => write!(f, "`{text}` is not supported: Go's regular expressions have no such group"),
            Fault::GroupName => f.write_str("a group name consists of letters, digits and `_`, between `<` and `>`"),
            Fault::RepeatsNothing(text) => write!(f, "missing argument to repetition operator: `{text}`"),
            Fault::RepeatsTwice(text) => write!(f, "invalid nested repetition operator: `{text}`; add parentheses"),
            Fault::RepeatCount(text) => {
                write!(f, "invalid repeat count: `{text}`; the maximum is {REPEAT_MAX} in total")
            }
        }
    }
}
