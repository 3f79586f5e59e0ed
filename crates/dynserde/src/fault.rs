//! Error of a type, before a deserializer makes its own error of it.

use core::fmt;

use serde::de::{Error, Expected, Unexpected};

/// Error that passes through the code of a type.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Error of a deserializer, which keeps it.
    Kept,
    /// Error of the type.
    Own(Box<Own>),
}

/// Error of a type, as serde distinguishes them.
#[derive(Debug)]
pub(crate) enum Own {
    Custom(String),
    InvalidType(Value, String),
    InvalidValue(Value, String),
    InvalidLength(usize, String),
    UnknownVariant(String, &'static [&'static str]),
    UnknownField(String, &'static [&'static str]),
    MissingField(&'static str),
    DuplicateField(&'static str),
}

/// Value that a type did not expect. Deserializers have words of their own for null and for numbers with fractions.
#[derive(Debug)]
pub(crate) enum Value {
    Unit,
    Float(f64),
    Other(String),
}

impl Value {
    fn new(unexpected: Unexpected<'_>) -> Value {
        match unexpected {
            Unexpected::Unit => Value::Unit,
            Unexpected::Float(number) => Value::Float(number),
            other => Value::Other(other.to_string()),
        }
    }

    fn get(&self) -> Unexpected<'_> {
        match self {
            Value::Unit => Unexpected::Unit,
            Value::Float(number) => Unexpected::Float(*number),
            Value::Other(text) => Unexpected::Other(text),
        }
    }
}

impl Fault {
    /// Converts to the error of a deserializer, which may have kept one.
    pub(crate) fn into_error<E: Error>(self, kept: Option<E>) -> E {
        match self {
            Fault::Kept => kept.unwrap_or_else(|| E::custom("invalid value")),
            Fault::Own(own) => own.into_error(),
        }
    }
}

impl Own {
    fn into_error<E: Error>(self) -> E {
        match self {
            Own::Custom(text) => E::custom(text),
            Own::InvalidType(value, expected) => E::invalid_type(value.get(), &expected.as_str()),
            Own::InvalidValue(value, expected) => E::invalid_value(value.get(), &expected.as_str()),
            Own::InvalidLength(length, expected) => E::invalid_length(length, &expected.as_str()),
            Own::UnknownVariant(variant, expected) => E::unknown_variant(&variant, expected),
            Own::UnknownField(field, expected) => E::unknown_field(&field, expected),
            Own::MissingField(field) => E::missing_field(field),
            Own::DuplicateField(field) => E::duplicate_field(field),
        }
    }
}

impl From<Own> for Fault {
    fn from(own: Own) -> Fault {
        Fault::Own(Box::new(own))
    }
}

impl Error for Fault {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Fault {
        Own::Custom(message.to_string()).into()
    }

    #[cold]
    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Own::InvalidType(Value::new(unexpected), expected.to_string()).into()
    }

    #[cold]
    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Fault {
        Own::InvalidValue(Value::new(unexpected), expected.to_string()).into()
    }

    #[cold]
    fn invalid_length(length: usize, expected: &dyn Expected) -> Fault {
        Own::InvalidLength(length, expected.to_string()).into()
    }

    #[cold]
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Fault {
        Own::UnknownVariant(variant.to_owned(), expected).into()
    }

    #[cold]
    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Fault {
        Own::UnknownField(field.to_owned(), expected).into()
    }

    #[cold]
    fn missing_field(field: &'static str) -> Fault {
        Own::MissingField(field).into()
    }

    #[cold]
    fn duplicate_field(field: &'static str) -> Fault {
        Own::DuplicateField(field).into()
    }
}

impl core::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Kept => f.write_str("invalid value"),
            Fault::Own(own) => write!(f, "{own:?}"),
        }
    }
}
