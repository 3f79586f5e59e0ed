//! Static types of values, known before the evaluation.

use crate::shared::value::Value;

/// Static type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Flag,
    Integer,
    Float,
    Text,
    List,
    /// Unknown until the evaluation.
    Any,
}

impl Sort {
    /// Returns the name of the type in the language.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Sort::Flag => "bool",
            Sort::Integer => "int",
            Sort::Float => "float",
            Sort::Text => "string",
            Sort::List => "array",
            Sort::Any => "unknown",
        }
    }

    pub(super) const fn is_number(self) -> bool {
        matches!(self, Sort::Integer | Sort::Float | Sort::Any)
    }

    /// Returns true if a value of this type is acceptable where `wanted` is expected.
    pub(super) fn fits(self, wanted: Sort) -> bool {
        self == wanted || self == Sort::Any || wanted == Sort::Any || (self.is_number() && wanted.is_number())
    }

    /// Returns the type of a value.
    pub(super) fn of(value: &Value) -> Sort {
        match value {
            Value::Flag(_) => Sort::Flag,
            Value::Integer(_) | Value::Large(_) => Sort::Integer,
            Value::Float(_) => Sort::Float,
            Value::Text(_) => Sort::Text,
            Value::List(_) => Sort::List,
            Value::Missing | Value::Map(_) | Value::Object(_) => Sort::Any,
        }
    }
}
