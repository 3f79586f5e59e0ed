//! Parses numbers like Go.

use std::borrow::Cow;

use super::error::TemplateError;
use crate::value::Value;

/// Parses a numeric constant. The result is an integer unless the text has a point or an exponent.
///
/// # Errors
/// [`TemplateError::BadNumber`] if the text is not a number or does not fit Go's `int` or `float64`.
pub(super) fn constant(text: &str) -> Result<Value, TemplateError> {
    let wrong = || TemplateError::BadNumber(text.to_owned());
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if digits.starts_with(['+', '-']) {
        return Err(wrong());
    }
    if let Some(number) = parse_unsigned(digits, 0) {
        let number = i128::from(number);
        let number = i64::try_from(if negative { -number } else { number });
        return number.map(Value::Integer).map_err(|_| wrong());
    }
    let is_whole = !digits.contains('.') && !digits.contains(['e', 'E', 'p', 'P']);
    let number = match split_base(digits) {
        (digits, 16) => hexadecimal_float(digits),
        _ => without_separators(digits, false).and_then(|digits| digits.parse().ok()),
    };
    let number = number.filter(|number| number.is_finite() && !is_whole).ok_or_else(wrong)?;
    Ok(Value::Float(if negative { -number } else { number }))
}

/// Parses a hexadecimal float without its prefix, such as `1.8p-2`: base 16 digits times a power of two.
fn hexadecimal_float(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = u64::from_str_radix(&format!("{whole}{part}"), 16).ok()?;
    let exponent: i32 = exponent.parse().ok()?;
    let shift = i32::try_from(4 * part.len()).ok()?;
    #[allow(clippy::cast_precision_loss, reason = "it is a number with a point")]
    Some(digits as f64 * 2f64.powi(exponent.checked_sub(shift)?))
}

/// Implements `parseInt TEXT BASE BITS`. The number is unsigned, as in CoreDNS. With base 0 the prefix selects the
/// base.
pub(super) fn parse_int(args: &[Value]) -> Option<Value> {
    let [Value::Text(text), Value::Integer(base), Value::Integer(bits)] = args else { return None };
    let number = parse_unsigned(text, u32::try_from(*base).ok()?)?;
    let bits = if *bits == 0 { 64 } else { u32::try_from(*bits).ok().filter(|bits| *bits <= 64)? };
    (number <= u64::MAX >> (64 - bits)).then(|| unsigned(number))
}

fn unsigned(number: u64) -> Value {
    i64::try_from(number).map_or(Value::Unsigned(number), Value::Integer)
}

fn parse_unsigned(text: &str, base: u32) -> Option<u64> {
    let (digits, base): (Cow<'_, str>, u32) = match base {
        0 => {
            let (digits, base) = split_base(text);
            (without_separators(digits, digits.len() < text.len())?, base)
        }
        2..=36 => (text.into(), base),
        _ => return None,
    };
    if digits.starts_with('+') { None } else { u64::from_str_radix(&digits, base).ok() }
}

/// Removes `_` between digits. After a base prefix, a leading `_` is allowed.
fn without_separators(digits: &str, prefixed: bool) -> Option<Cow<'_, str>> {
    if !digits.contains('_') {
        return Some(digits.into());
    }
    let misplaced = digits.ends_with('_') || digits.contains("__") || (digits.starts_with('_') && !prefixed);
    (!misplaced).then(|| digits.replace('_', "").into())
}

/// Splits off the base prefix and returns the digits with the base.
fn split_base(digits: &str) -> (&str, u32) {
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    match lower.as_deref() {
        Some("0x") => (&digits[2..], 16),
        Some("0b") => (&digits[2..], 2),
        Some("0o") => (&digits[2..], 8),
        Some(octal) if octal.starts_with('0') && !octal.ends_with(['.', 'e']) => (&digits[1..], 8),
        _ => (digits, 10),
    }
}
