//! Functions of the language, applied to values. A result of `None` has no value, where expr reports an error.

use core::cmp::Ordering;

use super::signatures::Function;
use crate::value::Value;

/// Maximum length in bytes of a repeated text: more than fits into a DNS name or a TXT string.
const REPEATED_MAX: usize = 4096;
/// Maximum nesting of lists for functions that look into them.
const DEPTH_MAX: usize = 64;

/// Applies a function to its arguments, which the parser has checked.
pub(super) fn apply(function: Function, args: &[Value]) -> Option<Value> {
    let first = args.first()?;
    on_texts(function, first, args).or_else(|| on_numbers(function, first, args)).or_else(|| on_lists(function, args))
}

fn on_texts(function: Function, first: &Value, args: &[Value]) -> Option<Value> {
    let text = |at: usize| if let Some(Value::Text(text)) = args.get(at) { Some(text.as_str()) } else { None };
    let count = |at: usize| args.get(at).map_or(Some(-1), integer);
    Some(match function {
        Function::Lower => Value::Text(text(0)?.to_lowercase()),
        Function::Upper => Value::Text(text(0)?.to_uppercase()),
        Function::Trim => match text(1) {
            Some(set) => Value::text(text(0)?.trim_matches(|letter| set.contains(letter))),
            None => Value::text(text(0)?.trim()),
        },
        Function::TrimPrefix => Value::text(stripped(text(0)?, text(0)?.strip_prefix(text(1).unwrap_or(" ")))),
        Function::TrimSuffix => Value::text(stripped(text(0)?, text(0)?.strip_suffix(text(1).unwrap_or(" ")))),
        Function::Split => pieces(text(0)?, text(1)?, count(2)?, false),
        Function::SplitAfter => pieces(text(0)?, text(1)?, count(2)?, true),
        Function::Replace => Value::Text(match usize::try_from(count(3)?) {
            Ok(count) => text(0)?.replacen(text(1)?, text(2)?, count),
            Err(_) => text(0)?.replace(text(1)?, text(2)?),
        }),
        Function::Repeat => {
            let count = usize::try_from(count(1)?).ok()?;
            let fits = text(0)?.len().checked_mul(count).is_some_and(|length| length <= REPEATED_MAX);
            Value::Text(fits.then(|| text(0).map(|text| text.repeat(count)))??)
        }
        Function::IndexOf => position(text(0)?.find(text(1)?)),
        Function::LastIndexOf => position(text(0)?.rfind(text(1)?)),
        Function::HasPrefix => Value::Bool(text(0)?.starts_with(text(1)?)),
        Function::HasSuffix => Value::Bool(text(0)?.ends_with(text(1)?)),
        Function::ToBase64 => Value::Text(to_base64(text(0)?.as_bytes())),
        Function::FromJson => super::json::read(text(0)?)?,
        Function::FromBase64 => Value::Text(String::from_utf8(from_base64(text(0)?)?).ok()?),
        Function::Length => match first {
            // Characters, not bytes.
            Value::Text(text) => position(Some(text.chars().count())),
            other => position(Some(other.len()?)),
        },
        Function::Kind => Value::text(kind(first)),
        Function::Text => Value::Text(first.to_string()),
        Function::ToJson => {
            let mut text = String::new();
            write_json(first, 0, &mut text)?;
            Value::Text(text)
        }
        _ => return None,
    })
}

fn on_numbers(function: Function, first: &Value, args: &[Value]) -> Option<Value> {
    let bits =
        |combine: fn(i64, i64) -> i64| Some(Value::Integer(combine(integer(first)?, args.get(1).and_then(integer)?)));
    let shift = || u32::try_from(args.get(1).and_then(integer)?).ok();
    Some(match function {
        Function::Integer => match first {
            Value::Text(text) => Value::Integer(text.trim().parse().ok()?),
            value => Value::Integer(integer(value)?),
        },
        Function::Float => match first {
            Value::Text(text) => Value::Float(text.parse().ok()?),
            value => Value::Float(value.number()?),
        },
        Function::Absolute => match first {
            Value::Integer(number) => Value::Integer(number.checked_abs()?),
            value => Value::Float(value.number()?.abs()),
        },
        Function::Ceiling => Value::Float(first.number()?.ceil()),
        Function::Floor => Value::Float(first.number()?.floor()),
        Function::Round => Value::Float(first.number()?.round()),
        Function::Maximum => extreme(args, Ordering::Less)?,
        Function::Minimum => extreme(args, Ordering::Greater)?,
        Function::Sum => sum(&numbers(args)?)?,
        Function::Mean => {
            let all = numbers(args)?;
            #[allow(clippy::cast_precision_loss, reason = "there are far fewer than 2^52 numbers")]
            let count = all.len().max(1) as f64;
            Value::Float(all.iter().filter_map(Value::number).sum::<f64>() / count)
        }
        Function::Median => Value::Float(median(numbers(args)?.iter().filter_map(Value::number).collect())),
        Function::BitAnd => bits(|one, other| one & other)?,
        Function::BitOr => bits(|one, other| one | other)?,
        Function::BitXor => bits(|one, other| one ^ other)?,
        Function::BitNand => bits(|one, other| one & !other)?,
        Function::BitNot => Value::Integer(!integer(first)?),
        Function::ShiftLeft => Value::Integer(integer(first)?.checked_shl(shift()?).unwrap_or(0)),
        Function::ShiftRight => {
            let number = integer(first)?;
            Value::Integer(number.checked_shr(shift()?).unwrap_or(if number < 0 { -1 } else { 0 }))
        }
        _ => return None,
    })
}

fn on_lists(function: Function, args: &[Value]) -> Option<Value> {
    let list = || if let Some(Value::List(list)) = args.first() { Some(list) } else { None };
    let map = || if let Some(Value::Map(map)) = args.first() { Some(map) } else { None };
    Some(match function {
        Function::Join => {
            let texts =
                list()?.iter().map(|part| if let Value::Text(text) = part { Some(text.as_str()) } else { None });
            let glue = if let Some(Value::Text(glue)) = args.get(1) { glue } else { "" };
            Value::Text(texts.collect::<Option<Vec<_>>>()?.join(glue))
        }
        Function::First => list()?.first().cloned().unwrap_or_default(),
        Function::Last => list()?.last().cloned().unwrap_or_default(),
        Function::Get => match (args.first()?, args.get(1)?) {
            (Value::Map(map), Value::Text(key)) => map.get(key).cloned().unwrap_or_default(),
            (whole @ (Value::List(_) | Value::Text(_)), at) => super::indexing::index(whole, at).unwrap_or_default(),
            _ => Value::Nil,
        },
        Function::Take => {
            let count = usize::try_from(args.get(1).and_then(integer)?).ok()?;
            Value::List(list()?.iter().take(count).cloned().collect())
        }
        Function::Reverse => Value::List(list()?.iter().rev().cloned().collect()),
        Function::Concatenate => {
            let lists = args.iter().map(|arg| if let Value::List(list) = arg { Some(list.as_slice()) } else { None });
            Value::List(lists.collect::<Option<Vec<_>>>()?.concat())
        }
        Function::Flatten => {
            let mut flat = Vec::new();
            flatten(list()?, 0, &mut flat)?;
            Value::List(flat)
        }
        Function::Unique => {
            let mut unique: Vec<Value> = Vec::new();
            for value in list()? {
                if !unique.contains(value) {
                    unique.push(value.clone());
                }
            }
            Value::List(unique)
        }
        Function::Sort => sorted(list()?.clone(), args.get(1))?,
        Function::Keys => Value::List(map()?.keys().map(Value::text).collect()),
        Function::Values => Value::List(map()?.values().cloned().collect()),
        Function::ToPairs => {
            let pair = |(key, value): (&String, &Value)| Value::List(vec![Value::text(key), value.clone()]);
            Value::List(map()?.iter().map(pair).collect())
        }
        Function::FromPairs => {
            let pair = |pair: &Value| match pair {
                Value::List(pair) => match pair.as_slice() {
                    [Value::Text(key), value] => Some((key.clone(), value.clone())),
                    _ => None,
                },
                _ => None,
            };
            Value::Map(list()?.iter().map(pair).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn stripped<'t>(whole: &'t str, rest: Option<&'t str>) -> &'t str {
    rest.unwrap_or(whole)
}

/// Returns a number as an integer. What does not fit becomes the nearest that does.
#[allow(clippy::cast_possible_truncation, reason = "what does not fit becomes the nearest that does")]
fn integer(value: &Value) -> Option<i64> {
    if let Value::Integer(number) = value { Some(*number) } else { Some(value.number()? as i64) }
}

/// Returns a position or count, or -1 for `None`.
fn position(at: Option<usize>) -> Value {
    Value::Integer(at.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)))
}

/// Splits a text, into `count` pieces at most if that is not negative. As in Go, an empty separator splits it into
/// characters.
fn pieces(text: &str, separator: &str, count: i64, keeps_separator: bool) -> Value {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let (mut pieces, mut rest) = (Vec::new(), text);
    if count == 0 {
        return Value::List(pieces);
    }
    while pieces.len() + 1 < count {
        let cut = match separator {
            // The last character is what is left.
            "" => rest.chars().next().map(|first| (first.len_utf8(), 0)).filter(|(length, _)| *length < rest.len()),
            _ => rest.find(separator).map(|at| (at, separator.len())),
        };
        let Some((at, length)) = cut else { break };
        pieces.push(Value::text(&rest[..if keeps_separator { at + length } else { at }]));
        rest = &rest[at + length..];
    }
    if !(separator.is_empty() && rest.is_empty()) {
        pieces.push(Value::text(rest));
    }
    Value::List(pieces)
}

/// Name of the type of a value, as `type` returns it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::List(_) => "array",
        Value::Float(_) => "float",
        Value::Unsigned(_) => "uint",
        other => other.kind(),
    }
}

/// Collects numbers, also those in lists.
fn numbers(args: &[Value]) -> Option<Vec<Value>> {
    let mut flat = Vec::new();
    flatten(args, 0, &mut flat)?;
    flat.iter().all(|value| value.number().is_some()).then_some(flat)
}

fn flatten(list: &[Value], depth: usize, flat: &mut Vec<Value>) -> Option<()> {
    for value in list {
        match value {
            Value::List(_) if depth == DEPTH_MAX => return None,
            Value::List(inner) => flatten(inner, depth + 1, flat)?,
            other => flat.push(other.clone()),
        }
    }
    Some(())
}

/// Returns the number that all others are `than` or equal to. No number at all is `nil`.
fn extreme(args: &[Value], than: Ordering) -> Option<Value> {
    let all = numbers(args)?;
    let better = |best: Value, next: Value| if best.order(&next) == Some(than) { next } else { best };
    Some(all.into_iter().reduce(better).unwrap_or_default())
}

fn sum(numbers: &[Value]) -> Option<Value> {
    numbers.iter().try_fold(Value::Integer(0), |sum, next| match (&sum, next) {
        (Value::Integer(sum), Value::Integer(next)) => sum.checked_add(*next).map(Value::Integer),
        _ => Some(Value::Float(sum.number()? + next.number()?)),
    })
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    match (numbers.get(middle), middle.checked_sub(1).and_then(|before| numbers.get(before))) {
        (Some(one), Some(before)) if numbers.len().is_multiple_of(2) => f64::midpoint(*before, *one),
        (Some(one), _) => *one,
        (None, _) => 0.0,
    }
}

/// Returns true for the order `desc`. The default is `asc`.
pub(super) fn descends(order: Option<&Value>) -> Option<bool> {
    match order {
        None => Some(false),
        Some(Value::Text(order)) if order == "asc" => Some(false),
        Some(Value::Text(order)) if order == "desc" => Some(true),
        Some(_) => None,
    }
}

/// Sorts numbers or texts, in the order `asc` (the default) or `desc`.
fn sorted(mut list: Vec<Value>, order: Option<&Value>) -> Option<Value> {
    let descends = descends(order)?;
    let is_comparable = list.windows(2).all(|pair| pair[0].order(&pair[1]).is_some());
    if !is_comparable {
        return None;
    }
    list.sort_by(|one, other| {
        let order = one.order(other).unwrap_or(Ordering::Equal);
        if descends { order.reverse() } else { order }
    });
    Some(Value::List(list))
}

/// Writes a value as JSON, with an indentation of two spaces per level.
fn write_json(value: &Value, depth: usize, text: &mut String) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    let line = |text: &mut String, depth: usize| {
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
    };
    match value {
        Value::Nil => text.push_str("null"),
        Value::Text(string) => write_json_text(string, text),
        Value::Float(number) if !number.is_finite() => return None,
        Value::Bool(_) | Value::Integer(_) | Value::Unsigned(_) | Value::Float(_) => {
            text.push_str(&value.to_string());
        }
        Value::List(list) if list.is_empty() => text.push_str("[]"),
        Value::Map(map) if map.is_empty() => text.push_str("{}"),
        Value::List(list) => {
            for (at, element) in list.iter().enumerate() {
                text.push(if at == 0 { '[' } else { ',' });
                line(text, depth + 1);
                write_json(element, depth + 1, text)?;
            }
            line(text, depth);
            text.push(']');
        }
        Value::Map(map) => {
            for (at, (key, element)) in map.iter().enumerate() {
                text.push(if at == 0 { '{' } else { ',' });
                line(text, depth + 1);
                write_json_text(key, text);
                text.push_str(": ");
                write_json(element, depth + 1, text)?;
            }
            line(text, depth);
            text.push('}');
        }
        Value::Struct(_) => return None,
    }
    Some(())
}

/// Writes a JSON string with the escapes of Go, which also protects HTML.
fn write_json_text(string: &str, text: &mut String) {
    text.push('"');
    for letter in string.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..' ' => {
                text.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            _ => text.push(letter),
        }
    }
    text.push('"');
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let number = group.iter().chain(&[0; 2]).take(3).fold(0, |number: u32, byte| number << 8 | u32::from(*byte));
        for at in 0..4 {
            let digit = BASE64.get((number >> (18 - 6 * at) & 63) as usize).copied().unwrap_or_default();
            text.push(if at > group.len() { '=' } else { char::from(digit) });
        }
    }
    text
}

fn from_base64(text: &str) -> Option<Vec<u8>> {
    let groups = text.as_bytes().chunks_exact(4);
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    if !groups.remainder().is_empty() {
        return None;
    }
    let last = groups.len().checked_sub(1);
    for (at, group) in groups.enumerate() {
        let padding =
            if Some(at) == last { group.iter().rev().take(2).take_while(|byte| **byte == b'=').count() } else { 0 };
        let digits = group.get(..4 - padding)?.iter().map(|byte| BASE64.iter().position(|digit| digit == byte));
        let number = digits
            .chain(core::iter::repeat_n(Some(0), padding))
            .try_fold(0_u32, |number, digit| Some(number << 6 | u32::try_from(digit?).ok()?))?;
        bytes.extend(number.to_be_bytes().get(1..4 - padding)?);
    }
    Some(bytes)
}
