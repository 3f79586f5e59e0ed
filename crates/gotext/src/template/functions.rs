//! Template functions: the built-in functions of Go, and `parseInt`.

use std::fmt::Write;

use super::error::{ExecuteError, OUTPUT_MAX, TemplateError};
use super::numbers::parse_int;
use super::output::{Text, shown};
use super::printf::printf;
use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// Returns the first false argument, or the last one.
    And,
    /// Returns the first true argument, or the last one.
    Or,
    Not,
    Len,
    Index,
    Slice,
    Print,
    Println,
    Printf,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Html,
    Js,
    Urlquery,
    ParseInt,
}

const FUNCTIONS: [(&str, Function); 19] = [
    ("and", Function::And),
    ("or", Function::Or),
    ("not", Function::Not),
    ("len", Function::Len),
    ("index", Function::Index),
    ("slice", Function::Slice),
    ("print", Function::Print),
    ("println", Function::Println),
    ("printf", Function::Printf),
    ("eq", Function::Eq),
    ("ne", Function::Ne),
    ("lt", Function::Lt),
    ("le", Function::Le),
    ("gt", Function::Gt),
    ("ge", Function::Ge),
    ("html", Function::Html),
    ("js", Function::Js),
    ("urlquery", Function::Urlquery),
    ("parseInt", Function::ParseInt),
];

impl Function {
    /// Returns the function called `name`.
    ///
    /// # Errors
    /// [`TemplateError::UnknownFunction`] if it does not exist.
    pub(super) fn of(name: &str) -> Result<Function, TemplateError> {
        match FUNCTIONS.iter().find(|(known, _)| *known == name) {
            Some((_, function)) => Ok(*function),
            // No value here is callable.
            None if name == "call" => Err(TemplateError::NotSupported(name.to_owned())),
            None => Err(TemplateError::UnknownFunction(name.to_owned())),
        }
    }

    fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// Calls the function.
    pub(super) fn call(self, args: &[Value]) -> Result<Value, ExecuteError> {
        let outcome = match self {
            Function::And => args.iter().find(|arg| !arg.is_true()).or(args.last()).cloned(),
            Function::Or => args.iter().find(|arg| arg.is_true()).or(args.last()).cloned(),
            Function::Not => one(args).map(|arg| Value::Bool(!arg.is_true())),
            Function::Len => one(args).and_then(Value::len).map(integer),
            Function::Index => return index(args),
            Function::Slice => slice(args),
            Function::Print => Some(print(args)?),
            Function::Println => Some(println(args)?),
            Function::Printf => return printf(args),
            Function::Eq => return self.equal(args).map(Value::Bool),
            Function::Ne if args.len() > 2 => None,
            Function::Ne => return self.equal(args).map(|equal| Value::Bool(!equal)),
            Function::Lt | Function::Le | Function::Gt | Function::Ge => self.ordered(args),
            Function::Html => Some(escaped(args, escape_html)?),
            Function::Js => Some(escaped(args, escape_js)?),
            Function::Urlquery => Some(escaped(args, escape_query)?),
            Function::ParseInt => parse_int(args),
        };
        outcome.ok_or_else(|| ExecuteError::BadArguments(self.name()))
    }

    /// Returns true if the first argument equals one of the others, which must be of the same kind.
    fn equal(self, args: &[Value]) -> Result<bool, ExecuteError> {
        let Some((first, others)) = args.split_first().filter(|(_, others)| !others.is_empty()) else {
            return Err(ExecuteError::BadArguments(self.name()));
        };
        for other in others {
            let is_same = match (first, other) {
                (Value::Nil, _) | (_, Value::Nil) => first == other,
                _ if !first.is_comparable_with(other) => {
                    return Err(ExecuteError::Incomparable(first.kind(), other.kind()));
                }
                _ => first == other,
            };
            if is_same {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn ordered(self, args: &[Value]) -> Option<Value> {
        let [one, other] = args else { return None };
        if !one.is_comparable_with(other) {
            return None;
        }
        let order = one.order(other)?;
        Some(Value::Bool(match self {
            Function::Lt => order.is_lt(),
            Function::Le => order.is_le(),
            Function::Gt => order.is_gt(),
            _ => order.is_ge(),
        }))
    }
}

fn one(args: &[Value]) -> Option<&Value> {
    if let [arg] = args { Some(arg) } else { None }
}

fn integer(number: usize) -> Value {
    Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Implements `index X 1 "a"`, which is `X[1]["a"]` in Go.
fn index(args: &[Value]) -> Result<Value, ExecuteError> {
    let Some((first, keys)) = args.split_first() else { return Err(ExecuteError::BadArguments("index")) };
    keys.iter().try_fold(first.clone(), |value, key| match (&value, key) {
        (Value::List(list), Value::Integer(at)) => {
            let found = usize::try_from(*at).ok().and_then(|at| list.get(at));
            found.cloned().ok_or(ExecuteError::OutOfRange(*at))
        }
        (Value::Text(text), Value::Integer(at)) => {
            let found = usize::try_from(*at).ok().and_then(|at| text.as_bytes().get(at));
            found.map(|byte| Value::Integer(i64::from(*byte))).ok_or(ExecuteError::OutOfRange(*at))
        }
        // All maps here have string values, and Go returns the empty string for a missing key.
        (Value::Map(map), Value::Text(key)) => Ok(map.get(key).cloned().unwrap_or_else(|| Value::text(""))),
        _ => Err(ExecuteError::BadArguments("index")),
    })
}

fn slice(args: &[Value]) -> Option<Value> {
    let (first, places) = args.split_first()?;
    let length = first.len()?;
    let most = if matches!(first, Value::List(_)) { 3 } else { 2 };
    if places.len() > most {
        return None;
    }
    let place = |at: usize, absent: usize| match places.get(at) {
        None => Some(absent),
        Some(Value::Integer(place)) => usize::try_from(*place).ok().filter(|place| *place <= length),
        Some(_) => None,
    };
    let range = place(0, 0)?..place(1, length)?;
    // The third index sets the capacity in Go, which has no effect here. It must still be valid.
    place(2, length).filter(|room| *room >= range.end)?;
    match first {
        Value::Text(text) => text.get(range).map(Value::text),
        Value::List(list) => list.get(range).map(|part| Value::List(part.to_vec())),
        _ => None,
    }
}

/// Concatenates the arguments, with a space between two neighbours that are both not strings.
fn print(args: &[Value]) -> Result<Value, ExecuteError> {
    let is_text = |value: Option<&Value>| matches!(value, Some(Value::Text(_)));
    let mut text = Text::default();
    for (at, arg) in args.iter().enumerate() {
        if at > 0 && !is_text(args.get(at)) && !is_text(args.get(at - 1)) {
            text.push(" ")?;
        }
        text.push(&shown(arg))?;
    }
    Ok(Value::Text(text.into()))
}

fn println(args: &[Value]) -> Result<Value, ExecuteError> {
    let mut text = Text::default();
    for (at, arg) in args.iter().enumerate() {
        text.push(if at > 0 { " " } else { "" })?;
        text.push(&shown(arg))?;
    }
    text.push("\n")?;
    Ok(Value::Text(text.into()))
}

/// Concatenates the arguments as `print` does, and escapes the result.
fn escaped(args: &[Value], escape: fn(&mut String, char)) -> Result<Value, ExecuteError> {
    let Value::Text(text) = print(args)? else { return Err(ExecuteError::TooLong) };
    let mut escaped = String::new();
    text.chars().for_each(|character| escape(&mut escaped, character));
    if escaped.len() > OUTPUT_MAX { Err(ExecuteError::TooLong) } else { Ok(Value::Text(escaped)) }
}

fn escape_html(escaped: &mut String, character: char) {
    match character {
        '&' => escaped.push_str("&amp;"),
        '<' => escaped.push_str("&lt;"),
        '>' => escaped.push_str("&gt;"),
        '"' => escaped.push_str("&#34;"),
        '\'' => escaped.push_str("&#39;"),
        '\0' => escaped.push(char::REPLACEMENT_CHARACTER),
        _ => escaped.push(character),
    }
}

fn escape_js(escaped: &mut String, character: char) {
    let _ = match character {
        '\\' | '\'' | '"' => write!(escaped, "\\{character}"),
        '<' | '>' | '&' | '=' | '\0'..='\u{1f}' => write!(escaped, "\\u{:04X}", u32::from(character)),
        // Both are line terminators in JavaScript.
        '\u{2028}' | '\u{2029}' => write!(escaped, "\\u{:04X}", u32::from(character)),
        _ => write!(escaped, "{character}"),
    };
}

fn escape_query(escaped: &mut String, character: char) {
    match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' | '~' => escaped.push(character),
        ' ' => escaped.push('+'),
        _ => character.encode_utf8(&mut [0; 4]).bytes().for_each(|byte| {
            let _ = write!(escaped, "%{byte:02X}");
        }),
    }
}
