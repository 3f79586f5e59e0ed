//! Values of templates and expressions. They print as in Go.

use core::cmp::Ordering;
use core::fmt;
use std::collections::BTreeMap;

/// Value of a template or an expression.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    /// No value: Go's `nil`, or a key that a map does not have.
    #[default]
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// Signed integer: Go's `int`.
    Integer(i64),
    /// Unsigned integer that does not fit in an `i64`.
    Unsigned(u64),
    /// Floating-point number.
    Float(f64),
    /// Text: Go's `string`.
    Text(String),
    /// List: Go's slices.
    List(Vec<Value>),
    /// Map with texts as keys.
    Map(BTreeMap<String, Value>),
    /// Struct with exactly these fields.
    Struct(Vec<(&'static str, Value)>),
}

impl Value {
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    /// Returns true if a template condition counts it as true: not false, not zero and not empty.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(flag) => *flag,
            Value::Integer(number) => *number != 0,
            Value::Unsigned(_) | Value::Struct(_) => true,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::List(list) => !list.is_empty(),
            Value::Map(map) => !map.is_empty(),
        }
    }

    /// Returns the number of elements, or of bytes of a text, or `None` if the value has no length.
    pub(crate) fn len(&self) -> Option<usize> {
        match self {
            Value::Text(text) => Some(text.len()),
            Value::List(list) => Some(list.len()),
            Value::Map(map) => Some(map.len()),
            _ => None,
        }
    }

    /// Returns the value as a number, if it is one.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            #[allow(clippy::cast_precision_loss, reason = "as in the languages that this follows")]
            Value::Integer(number) => Some(*number as f64),
            #[allow(clippy::cast_precision_loss, reason = "as in the languages that this follows")]
            Value::Unsigned(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Compares two numbers or two texts. Returns `None` for anything else.
    pub(crate) fn order(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Integer(one), Value::Integer(other)) => Some(one.cmp(other)),
            (Value::Unsigned(one), Value::Unsigned(other)) => Some(one.cmp(other)),
            (Value::Unsigned(_), Value::Integer(_)) => Some(Ordering::Greater),
            (Value::Integer(_), Value::Unsigned(_)) => Some(Ordering::Less),
            (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
            _ => self.number()?.partial_cmp(&other.number()?),
        }
    }

    /// Returns true if templates can compare the two for equality: same kind, and not a list, map or struct.
    pub(crate) fn is_comparable_with(&self, other: &Value) -> bool {
        let kind = |value: &Value| if let Value::Unsigned(_) = value { "int" } else { value.kind() };
        kind(self) == kind(other) && !matches!(self, Value::List(_) | Value::Map(_) | Value::Struct(_))
    }

    /// Returns the name of its Go type. Lists and maps hold texts.
    pub(crate) const fn type_name(&self) -> &'static str {
        match self {
            Value::Nil => "<nil>",
            Value::List(_) => "[]string",
            Value::Map(_) => "map[string]string",
            _ => self.kind(),
        }
    }

    /// Returns the name of its Go kind.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "bool",
            Value::Integer(_) => "int",
            Value::Unsigned(_) => "uint64",
            Value::Float(_) => "float64",
            Value::Text(_) => "string",
            Value::List(_) => "list",
            Value::Map(_) => "map",
            Value::Struct(_) => "struct",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nil => f.write_str("<no value>"),
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::Integer(number) => write!(f, "{number}"),
            Value::Unsigned(number) => write!(f, "{number}"),
            Value::Float(number) => f.write_str(&float(*number)),
            Value::Text(text) => f.write_str(text),
            Value::List(list) => {
                let texts: Vec<String> = list.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", texts.join(" "))
            }
            Value::Map(map) => {
                let texts: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{value}")).collect();
                write!(f, "map[{}]", texts.join(" "))
            }
            Value::Struct(fields) => {
                let texts: Vec<String> = fields.iter().map(|(_, value)| value.to_string()).collect();
                write!(f, "{{{}}}", texts.join(" "))
            }
        }
    }
}

/// Powers of ten that Go prints without an exponent.
const PLAIN: core::ops::Range<i32> = -4..6;

/// Splits a number that Rust has formatted with an exponent.
pub(crate) fn split_exponent(text: &str) -> (&str, i32) {
    let parts = text.split_once('e').and_then(|(mantissa, exponent)| Some((mantissa, exponent.parse().ok()?)));
    debug_assert!(parts.is_some(), "`{{:e}}` writes an exponent");
    parts.unwrap_or((text, 0))
}

/// Formats a number with the fewest digits that identify it, and with an exponent if it is large or small.
fn float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{number:e}");
    let (digits, exponent) = split_exponent(&text);
    if PLAIN.contains(&exponent) { format!("{number}") } else { format!("{digits}e{exponent:+03}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_in_go() {
        let list = Value::List(vec![Value::text("a"), Value::Integer(-1), Value::Bool(true)]);
        let map = [("b", Value::Float(1.5)), ("a", Value::Nil)].map(|(key, value)| (key.to_owned(), value));
        assert_eq!(list.to_string(), "[a -1 true]");
        assert_eq!(Value::Map(map.into()).to_string(), "map[a:<no value> b:1.5]");
    }

    #[test]
    fn numbers_print_as_in_go() {
        let cases = [
            (0.0, "0"),
            (99_999.0, "99999"),
            (1e6, "1e+06"),
            (123_456.7, "123456.7"),
            (12_345_678.25, "1.234567825e+07"),
            (-2.5e7, "-2.5e+07"),
            (1e-4, "0.0001"),
            (1.2e-5, "1.2e-05"),
            (1e100, "1e+100"),
        ];
        for (number, text) in cases {
            assert_eq!(Value::Float(number).to_string(), text);
        }
        assert_eq!(Value::Unsigned(u64::MAX).order(&Value::Integer(-1)), Some(Ordering::Greater));
    }

    #[test]
    fn orders_only_numbers_and_texts() {
        assert_eq!(Value::Integer(1).order(&Value::Float(1.5)), Some(Ordering::Less));
        assert_eq!(Value::text("b").order(&Value::text("a")), Some(Ordering::Greater));
        assert_eq!(Value::text("1").order(&Value::Integer(1)), None);
        assert_eq!(Value::Bool(true).order(&Value::Bool(true)), None);
    }
}
