//! Errors in parsing and executing templates, and the limits of both.

use core::fmt;

/// Length limit of a template in bytes. Records are shorter than a message.
pub(super) const TEMPLATE_MAX: usize = 65_536;
/// Nesting limit of parentheses and blocks while parsing, which keeps the stack small. Real templates need far fewer.
pub(super) const LEVELS_MAX: usize = 100;
/// Length limit of the output in bytes, that of a DNS message.
pub(super) const OUTPUT_MAX: usize = 65_535;
/// Step limit of one execution, loop iterations included. A client waits while a template runs.
pub(super) const STEPS_MAX: usize = 20_000;
/// Nesting limit of blocks and templates while executing, which keeps the stack small. A template that recurses once
/// per label of a name needs less.
pub(super) const DEPTH_MAX: usize = 400;

/// Parse error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    TooLong,
    TooDeep,
    /// Input ends inside this construct.
    Unclosed(&'static str),
    /// Token in a place where it is not allowed.
    Unexpected(String),
    /// Invalid escape sequence.
    BadEscape,
    /// Unknown function.
    NoFunction(String),
    /// Unknown variable.
    NoVariable(String),
    /// Missing token or value.
    Expected(&'static str),
    /// Invalid or too large number.
    Number(String),
    /// Second definition of a template.
    Defined(String),
    /// Feature that Go has and this implementation does not.
    NotHere(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::TooLong => write!(f, "the template is longer than {TEMPLATE_MAX} bytes"),
            Fault::TooDeep => write!(f, "more than {LEVELS_MAX} nested levels"),
            Fault::Unclosed(what) => write!(f, "the template ends inside {what}"),
            Fault::Unexpected(what) => write!(f, "unexpected `{what}`"),
            Fault::BadEscape => f.write_str("invalid escape sequence after a backslash"),
            Fault::NoFunction(name) => write!(f, "function \"{name}\" not defined"),
            Fault::NoVariable(name) => write!(f, "undefined variable \"${name}\""),
            Fault::Expected(what) => write!(f, "{what} is missing"),
            Fault::Number(text) => write!(f, "`{text}` is not a number, or is too large"),
            Fault::Defined(name) => write!(f, "multiple definition of template \"{name}\""),
            Fault::NotHere(what) => write!(f, "`{what}` is not supported here"),
        }
    }
}

/// Execution error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunError {
    TooLong,
    TooManySteps,
    TooDeep,
    NoTemplate(String),
    NoField(String),
    /// Arguments given to something that is not a function.
    NotAFunction,
    BadArguments(&'static str),
    Incomparable(&'static str, &'static str),
    OutOfRange(i64),
    NotAList(&'static str),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::TooLong => write!(f, "the output is longer than {OUTPUT_MAX} bytes"),
            RunError::TooManySteps => write!(f, "more than {STEPS_MAX} steps"),
            RunError::TooDeep => write!(f, "more than {DEPTH_MAX} nested blocks and templates"),
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
