//! Sorts of values: what is known of a value before there is one.

use crate::value::Value;

/// The sort of values that a part of an expression has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Flag,
    Integer,
    Float,
    Text,
    List,
    /// Nothing is known.
    Any,
}

impl Sort {
    /// As the language calls it.
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

    /// Whether values of this sort may be wanted there.
    pub(super) fn fits(self, wanted: Sort) -> bool {
        self == wanted || self == Sort::Any || wanted == Sort::Any || (self.is_number() && wanted.is_number())
    }

    /// That of a value.
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
