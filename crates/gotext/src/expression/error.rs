//! Errors in expressions, and the limits on their size.

use core::error::Error;
use core::fmt;

use super::types::Type;
use crate::regexp::RegexpError;

/// Maximum length of an expression in bytes.
pub(super) const LENGTH_MAX: usize = 4096;
/// Maximum nesting of parentheses and operators: more than people write, and safe for the stack.
pub(super) const DEPTH_MAX: usize = 64;

/// Reason why a text is not an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpressionError {
    /// Expression longer than the limit.
    TooLong,
    /// Parentheses or operators nested deeper than the limit.
    TooDeep,
    /// Unexpected end of the expression.
    UnexpectedEnd,
    /// End of the expression inside this construct.
    Unclosed(&'static str),
    /// Token in a place where it is not allowed.
    Unexpected(String),
    /// Invalid escape sequence.
    BadEscape,
    /// Unknown variable or function.
    UnknownName(String),
    /// Function of expr that this implementation does not have.
    UnsupportedFunction(String),
    /// Name in `let` that something else has.
    Redeclared(String),
    /// Arguments that this function does not take.
    BadArguments(String),
    /// Operator that cannot be applied to these types.
    Mismatch(String, Type, Type),
    /// Invalid regular expression.
    BadRegexp(String, RegexpError),
    /// Operand of this function or operator that must be constant and is not. The second field describes the operand.
    NotConstant(String, &'static str),
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpressionError::TooLong => write!(f, "longer than {LENGTH_MAX} bytes"),
            ExpressionError::TooDeep => write!(f, "nested more than {DEPTH_MAX} levels deep"),
            ExpressionError::UnexpectedEnd => f.write_str("unexpected end of the expression"),
            ExpressionError::Unclosed(what) => write!(f, "unexpected end inside {what}"),
            ExpressionError::Unexpected(what) => write!(f, "unexpected `{what}`"),
            ExpressionError::BadEscape => f.write_str("a backslash does not start a known escape sequence"),
            ExpressionError::UnknownName(name) => write!(f, "unknown name {name}"),
            ExpressionError::UnsupportedFunction(name) => {
                write!(f, "`{name}` is a function of expr for times, which expressions do not have here")
            }
            ExpressionError::Redeclared(name) => write!(f, "cannot redeclare {name}"),
            ExpressionError::BadArguments(function) => write!(f, "`{function}` does not take these arguments"),
            ExpressionError::Mismatch(operator, one, other) => {
                write!(f, "`{operator}` cannot be applied to {} and {}", one.name(), other.name())
            }
            ExpressionError::BadRegexp(regexp, error) => {
                write!(f, "`{regexp}` is not a regular expression: {error}")
            }
            ExpressionError::NotConstant(operator, operand) => {
                write!(f, "`{operator}` with {operand} that is not constant is not supported here")
            }
        }
    }
}

impl Error for ExpressionError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ExpressionError::BadRegexp(_, error) => Some(error),
            _ => None,
        }
    }
}
