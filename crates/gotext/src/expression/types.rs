//! Static types of values, known before the evaluation.

use crate::value::Value;

/// Static type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// Integer.
    Integer,
    /// Floating-point number.
    Float,
    /// Text.
    Text,
    /// List of values of any type.
    List,
    /// Unknown until the evaluation.
    Any,
}

impl Type {
    /// Returns the name of the type in the language.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Type::Bool => "bool",
            Type::Integer => "int",
            Type::Float => "float",
            Type::Text => "string",
            Type::List => "array",
            Type::Any => "unknown",
        }
    }

    pub(super) const fn is_number(self) -> bool {
        matches!(self, Type::Integer | Type::Float | Type::Any)
    }

    /// Returns true if a value of this type is acceptable where `wanted` is expected.
    pub(super) fn fits(self, wanted: Type) -> bool {
        self == wanted || self == Type::Any || wanted == Type::Any || (self.is_number() && wanted.is_number())
    }

    /// Returns the type of a value.
    pub(super) fn of(value: &Value) -> Type {
        match value {
            Value::Bool(_) => Type::Bool,
            Value::Integer(_) | Value::Unsigned(_) => Type::Integer,
            Value::Float(_) => Type::Float,
            Value::Text(_) => Type::Text,
            Value::List(_) => Type::List,
            Value::Nil | Value::Map(_) | Value::Struct(_) => Type::Any,
        }
    }
}
