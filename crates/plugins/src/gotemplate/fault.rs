//! What can be wrong with a template, when it is read and when it is run, and the bounds of both.

use core::fmt;

/// Octets of the longest template: records are shorter than a message.
pub(super) const TEMPLATE_MAX: usize = 65_536;
/// Parentheses and blocks that may stand in each other: far more than people write, and no danger to the stack.
pub(super) const LEVELS_MAX: usize = 100;
/// Octets of the longest text: as long as a message.
pub(super) const OUTPUT_MAX: usize = 65_535;
/// Things that are done at most, loops included: a template is run while a client waits.
pub(super) const STEPS_MAX: usize = 20_000;
/// Blocks and templates in each other while it runs: for a template that uses itself, once a label; no danger to the stack.
pub(super) const DEPTH_MAX: usize = 400;

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLong,
    TooDeep,
    /// It ends inside of this.
    Unclosed(&'static str),
    /// This stands where it means nothing.
    Unexpected(String),
    /// A backslash does not begin an escape.
    BadEscape,
    /// There is no function of this name.
    NoFunction(String),
    /// There is no variable of this name.
    NoVariable(String),
    /// Something is missing that must stand here.
    Expected(&'static str),
    /// This is no number, or one that is too large.
    Number(String),
    /// A template of this name stands here for the second time.
    Defined(String),
    /// Go has it, and this has not.
    NotHere(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooLong => write!(f, "it is longer than {TEMPLATE_MAX} octets"),
            Fault::TooDeep => write!(f, "more than {LEVELS_MAX} levels stand in each other"),
            Fault::Unclosed(what) => write!(f, "it ends inside of {what}"),
            Fault::Unexpected(what) => write!(f, "unexpected `{what}`"),
            Fault::BadEscape => f.write_str("a backslash does not begin an escape"),
            Fault::NoFunction(name) => write!(f, "function \"{name}\" not defined"),
            Fault::NoVariable(name) => write!(f, "undefined variable \"${name}\""),
            Fault::Expected(what) => write!(f, "{what} is missing"),
            Fault::Number(text) => write!(f, "`{text}` is no number, or too large"),
            Fault::Defined(name) => write!(f, "multiple definition of template \"{name}\""),
            Fault::NotHere(what) => write!(f, "`{what}` is not supported here"),
        }
    }
}

/// Why a template has no text for some data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunError {
    TooLong,
    TooManySteps,
    TooDeep,
    NoTemplate(String),
    NoField(String),
    /// Only functions take arguments.
    NotAFunction,
    BadArguments(&'static str),
    Incomparable(&'static str, &'static str),
    OutOfRange(i64),
    NotAList(&'static str),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::TooLong => write!(f, "the text is longer than {OUTPUT_MAX} octets"),
            RunError::TooManySteps => write!(f, "more than {STEPS_MAX} steps"),
            RunError::TooDeep => write!(f, "more than {DEPTH_MAX} blocks and templates in each other"),
            RunError::NoTemplate(name) => write!(f, "template \"{name}\" not defined"),
            RunError::NoField(name) => write!(f, "can't evaluate field {name}"),
            RunError::NotAFunction => f.write_str("can't give argument to non-function"),
            RunError::BadArguments(function) => write!(f, "wrong arguments of {function}"),
            RunError::Incomparable(one, other) => write!(f, "incompatible types for comparison: {one} and {other}"),
            RunError::OutOfRange(at) => write!(f, "index out of range: {at}"),
            RunError::NotAList(kind) => write!(f, "range can't iterate over {kind}"),
        }
    }
}
