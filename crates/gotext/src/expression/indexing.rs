//! Elements and parts of lists, maps and texts.

use crate::value::Value;

/// Returns an index of a list or a text. A negative number counts from the end.
fn place(length: usize, at: &Value) -> Option<usize> {
    let Value::Integer(at) = at else { return None };
    let from_end = || length.checked_sub(usize::try_from(at.unsigned_abs()).ok()?);
    usize::try_from(*at).ok().or_else(from_end)
}

/// Returns an element of a map, a list or a text; `None` if it does not exist.
pub(super) fn index(whole: &Value, at: &Value) -> Option<Value> {
    if let (Value::Map(map), Value::Text(key)) = (whole, at) {
        return Some(map.get(key).cloned().unwrap_or_default());
    }
    let at = place(whole.len()?, at)?;
    match whole {
        Value::List(list) => list.get(at).cloned(),
        Value::Text(text) => text.get(at..at + 1).map(Value::text),
        _ => None,
    }
}

/// Returns a part of a list or a text.
pub(super) fn slice(whole: &Value, from: Option<Value>, to: Option<Value>) -> Option<Value> {
    let length = whole.len()?;
    let bound = |at: Option<Value>, absent: usize| match at {
        None => Some(absent),
        Some(at) => place(length, &at).map(|at| at.min(length)),
    };
    let (from, to) = (bound(from, 0)?, bound(to, length)?);
    let range = from.min(to)..to;
    match whole {
        Value::List(list) => list.get(range).map(|part| Value::List(part.to_vec())),
        Value::Text(text) => text.get(range).map(Value::text),
        _ => None,
    }
}
