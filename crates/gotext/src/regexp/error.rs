//! Errors in regular expressions, and the limits on them.

use core::error::Error;
use core::fmt;

/// Length limit of an expression in bytes, as in CoreDNS. Longer ones are a mistake and cost memory.
pub(super) const LENGTH_MAX: usize = 10_000;
/// Limit of group nesting, which keeps the stack small. Go allows more; real expressions need far fewer.
pub(super) const DEPTH_MAX: u32 = 200;
/// Largest repeat count, also for the product of nested counts, as in Go.
pub(super) const REPEAT_MAX: u32 = 1000;

/// Error in a regular expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegexpError {
    /// Longer than the limit.
    TooLong,
    /// The compiled expression would exceed the memory limit.
    TooLarge,
    /// The compiled expression is larger than what is left of the budget for all expressions.
    OverBudget {
        /// Bytes that are not enough for the expression.
        more_than: usize,
        /// Bytes of the expressions before it.
        used: usize,
        /// Bytes of the budget.
        total: usize,
    },
    /// Groups nested deeper than the limit.
    TooDeep,
    /// Invalid escape sequence.
    Escape(String),
    /// Trailing backslash.
    TrailingBackslash,
    /// Missing `]`.
    UnclosedClass,
    /// Invalid range or class name.
    Class(String),
    /// Missing `)`.
    UnclosedGroup,
    /// `)` without `(`.
    UnopenedGroup,
    /// Group syntax after `(?` that Go does not have.
    Group(String),
    /// Invalid name of a group.
    GroupName,
    /// Repetition operator without an operand.
    RepeatsNothing(String),
    /// Repetition operator right after another.
    RepeatsTwice(String),
    /// Repeat count out of range.
    RepeatCount(String),
}

impl fmt::Display for RegexpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegexpError::TooLong => write!(f, "the expression is longer than {LENGTH_MAX} bytes"),
            RegexpError::TooLarge => f.write_str("the repetitions need too much memory"),
            RegexpError::OverBudget { more_than, used, total } if more_than + used < *total => write!(
                f,
                "it needs more than {} KiB of memory, and an expression before it already exceeds the memory of all \
                 expressions: fix that one first",
                more_than >> 10
            ),
            RegexpError::OverBudget { more_than, used, total } => write!(
                f,
                "it needs more than {} KiB of memory; all regular expressions of the configuration together may use \
                 {} KiB, and those before it use {} KiB: repeat classes such as `\\pL` and `.` less often, or use \
                 fewer expressions",
                more_than >> 10,
                total >> 10,
                used >> 10
            ),
            RegexpError::TooDeep => write!(f, "more than {DEPTH_MAX} nested groups"),
            RegexpError::Escape(text) => write!(f, "invalid escape sequence: `{text}`"),
            RegexpError::TrailingBackslash => f.write_str("trailing backslash at end of expression"),
            RegexpError::UnclosedClass => f.write_str("missing closing ]"),
            RegexpError::Class(text) => write!(f, "invalid character class or range: `{text}`"),
            RegexpError::UnclosedGroup => f.write_str("missing closing )"),
            RegexpError::UnopenedGroup => f.write_str("unexpected )"),
            RegexpError::Group(text) => {
                write!(f, "`{text}` is not supported: Go's regular expressions have no such group")
            }
            RegexpError::GroupName => {
                f.write_str("a group name consists of letters, digits and `_`, between `<` and `>`")
            }
            RegexpError::RepeatsNothing(text) => write!(f, "missing argument to repetition operator: `{text}`"),
            RegexpError::RepeatsTwice(text) => {
                write!(f, "invalid nested repetition operator: `{text}`; add parentheses")
            }
            RegexpError::RepeatCount(text) => {
                write!(f, "invalid repeat count: `{text}`; the maximum is {REPEAT_MAX} in total")
            }
        }
    }
}

impl Error for RegexpError {}
