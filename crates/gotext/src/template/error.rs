//! Errors in parsing and executing templates, and the limits of both.

use core::error::Error;
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

/// Reason why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// Template longer than the limit.
    TooLong,
    /// Parentheses or blocks nested deeper than the limit.
    TooDeep,
    /// Input ends inside this construct.
    Unclosed(&'static str),
    /// Token in a place where it is not allowed.
    Unexpected(String),
    /// Invalid escape sequence.
    BadEscape,
    /// Unknown function.
    UnknownFunction(String),
    /// Unknown variable.
    UndefinedVariable(String),
    /// Missing token or value.
    Expected(&'static str),
    /// Invalid or too large number.
    BadNumber(String),
    /// Second definition of a template.
    DuplicateTemplate(String),
    /// Feature that Go has and this implementation does not.
    NotSupported(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::TooLong => write!(f, "the template is longer than {TEMPLATE_MAX} bytes"),
            TemplateError::TooDeep => write!(f, "more than {LEVELS_MAX} nested levels"),
            TemplateError::Unclosed(what) => write!(f, "the template ends inside {what}"),
            TemplateError::Unexpected(what) => write!(f, "unexpected `{what}`"),
            TemplateError::BadEscape => f.write_str("invalid escape sequence after a backslash"),
            TemplateError::UnknownFunction(name) => write!(f, "function \"{name}\" not defined"),
            TemplateError::UndefinedVariable(name) => write!(f, "undefined variable \"${name}\""),
            TemplateError::Expected(what) => write!(f, "{what} is missing"),
            TemplateError::BadNumber(text) => write!(f, "`{text}` is not a number, or is too large"),
            TemplateError::DuplicateTemplate(name) => write!(f, "multiple definition of template \"{name}\""),
            TemplateError::NotSupported(what) => write!(f, "`{what}` is not supported here"),
        }
    }
}

impl Error for TemplateError {}

/// Reason why the execution of a template failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecuteError {
    /// Output longer than the limit.
    TooLong,
    /// More steps than the limit.
    TooManySteps,
    /// Blocks and templates nested deeper than the limit.
    TooDeep,
    /// Unknown template.
    UnknownTemplate(String),
    /// Unknown field or method.
    UnknownField(String),
    /// Arguments given to something that is not a function.
    NotAFunction,
    /// Arguments that this function does not take.
    BadArguments(&'static str),
    /// Comparison of values of these two kinds.
    Incomparable(&'static str, &'static str),
    /// Index after the end of a list or a text.
    OutOfRange(i64),
    /// `range` over a value of this kind.
    NotIterable(&'static str),
}

impl fmt::Display for ExecuteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecuteError::TooLong => write!(f, "the output is longer than {OUTPUT_MAX} bytes"),
            ExecuteError::TooManySteps => write!(f, "more than {STEPS_MAX} steps"),
            ExecuteError::TooDeep => write!(f, "more than {DEPTH_MAX} nested blocks and templates"),
            ExecuteError::UnknownTemplate(name) => write!(f, "template \"{name}\" not defined"),
            ExecuteError::UnknownField(name) => write!(f, "can't evaluate field {name}"),
            ExecuteError::NotAFunction => f.write_str("can't give argument to non-function"),
            ExecuteError::BadArguments(function) => write!(f, "wrong arguments of {function}"),
            ExecuteError::Incomparable(one, other) => write!(f, "incompatible types for comparison: {one} and {other}"),
            ExecuteError::OutOfRange(at) => write!(f, "index out of range: {at}"),
            ExecuteError::NotIterable(kind) => write!(f, "range can't iterate over {kind}"),
        }
    }
}

impl Error for ExecuteError {}
