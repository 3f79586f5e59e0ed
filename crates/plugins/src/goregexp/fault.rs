//! What can be wrong with a regular expression.

use core::fmt;

/// Octets of the longest expression, as in CoreDNS: longer ones are a mistake and cost memory.
pub(super) const LENGTH_MAX: usize = 10_000;
/// Groups that may stand in each other: fewer than in Go, and more than anybody writes; no danger to the stack.
pub(super) const DEPTH_MAX: u32 = 200;
/// The largest number in `{}`, and of such repetitions in each other taken together, as in Go.
pub(super) const REPEAT_MAX: u32 = 1000;

/// What is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLong,
    /// Its machine would be too large.
    TooLarge,
    TooDeep,
    /// A backslash and what follows mean nothing.
    Escape(String),
    /// It ends with a backslash.
    TrailingBackslash,
    /// A class does not end.
    UnclosedClass,
    /// A range or a name in a class means nothing.
    Class(String),
    UnclosedGroup,
    UnopenedGroup,
    /// What stands behind `(?` is nothing that Go knows.
    Group(String),
    GroupName,
    /// Nothing stands before a repetition.
    RepeatsNothing(String),
    /// A repetition of a repetition.
    RepeatsTwice(String),
    /// Numbers that no repetition may have.
    RepeatCount(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooLong => write!(f, "it is longer than {LENGTH_MAX} octets"),
            Fault::TooLarge => f.write_str("what it repeats takes too much memory"),
            Fault::TooDeep => write!(f, "more than {DEPTH_MAX} groups stand in each other"),
            Fault::Escape(text) => write!(f, "invalid escape sequence: `{text}`"),
            Fault::TrailingBackslash => f.write_str("a backslash ends it"),
            Fault::UnclosedClass => f.write_str("missing closing ]"),
            Fault::Class(text) => write!(f, "invalid character class or range: `{text}`"),
            Fault::UnclosedGroup => f.write_str("missing closing )"),
            Fault::UnopenedGroup => f.write_str("unexpected )"),
            Fault::Group(text) => write!(f, "`{text}` is not supported: Go's regular expressions have no such group"),
            Fault::GroupName => f.write_str("the name of a group is of letters, digits and `_`, between `<` and `>`"),
            Fault::RepeatsNothing(text) => write!(f, "nothing stands before `{text}` that can be repeated"),
            Fault::RepeatsTwice(text) => write!(f, "a repetition is repeated by `{text}`: parentheses are missing"),
            Fault::RepeatCount(text) => write!(f, "invalid repeat count: `{text}`, at most {REPEAT_MAX} in all"),
        }
    }
}
