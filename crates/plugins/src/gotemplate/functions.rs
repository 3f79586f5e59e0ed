//! The functions of templates: those that Go has built in, and `parseInt`.

use std::borrow::Cow;
use std::fmt::Write;

use super::eval::RunError;
use super::parse::Fault;
use crate::value::Value;

/// Characters that a field of `printf` may be filled up to.
const WIDTH_MAX: usize = 255;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// The first argument that does not count as true, or the last.
    And,
    /// The first argument that counts as true, or the last.
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
    Urlquery,
    ParseInt,
}

const FUNCTIONS: [(&str, Function); 18] = [
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
    ("urlquery", Function::Urlquery),
    ("parseInt", Function::ParseInt),
];

impl Function {
    /// The function of this name.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn of(name: &str) -> Result<Function, Fault> {
        match FUNCTIONS.iter().find(|(known, _)| *known == name) {
            Some((_, function)) => Ok(*function),
            None if matches!(name, "call" | "js") => Err(Fault::NotHere(name.to_owned())),
            None => Err(Fault::NoFunction(name.to_owned())),
        }
    }

    fn name(self) -> &'static str {
        FUNCTIONS.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// Its value for these arguments.
    pub(super) fn call(self, args: &[Value]) -> Result<Value, RunError> {
        let outcome = match self {
            Function::And => args.iter().find(|arg| !arg.is_true()).or(args.last()).cloned(),
            Function::Or => args.iter().find(|arg| arg.is_true()).or(args.last()).cloned(),
            Function::Not => one(args).map(|arg| Value::Flag(!arg.is_true())),
            Function::Len => one(args).and_then(Value::len).map(integer),
            Function::Index => return index(args),
            Function::Slice => slice(args),
            Function::Print => Some(Value::Text(print(args))),
            Function::Println => Some(Value::Text(println(args))),
            Function::Printf => args.split_first().and_then(|(format, args)| printf(format, args)),
            Function::Eq => return self.equal(args).map(Value::Flag),
            Function::Ne => return self.equal(args).map(|equal| Value::Flag(!equal)),
            Function::Lt | Function::Le | Function::Gt | Function::Ge => self.ordered(args),
            Function::Html => Some(Value::Text(escape_html(&print(args)))),
            Function::Urlquery => Some(Value::Text(escape_query(&print(args)))),
            Function::ParseInt => parse_int(args),
        };
        outcome.ok_or_else(|| RunError::BadArguments(self.name()))
    }

    /// Whether the first argument is the same as one of the others, which must be of its kind.
    fn equal(self, args: &[Value]) -> Result<bool, RunError> {
        let Some((first, others)) = args.split_first().filter(|(_, others)| !others.is_empty()) else {
            return Err(RunError::BadArguments(self.name()));
        };
        let same = |other: &Value| match (first, other) {
            (Value::Missing, _) | (_, Value::Missing) => Ok(first == other),
            _ if first.kind() != other.kind() => Err(RunError::Incomparable(first.kind(), other.kind())),
            _ => Ok(first == other),
        };
        others.iter().map(same).try_fold(false, |found, same| same.map(|same| found || same))
    }

    fn ordered(self, args: &[Value]) -> Option<Value> {
        let [one, other] = args else { return None };
        if one.kind() != other.kind() {
            return None;
        }
        let order = one.order(other)?;
        Some(Value::Flag(match self {
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

/// `index X 1 "a"` is what `X[1]["a"]` is in Go.
fn index(args: &[Value]) -> Result<Value, RunError> {
    let Some((first, keys)) = args.split_first() else { return Err(RunError::BadArguments("index")) };
    keys.iter().try_fold(first.clone(), |value, key| match (&value, key) {
        (Value::List(list), Value::Integer(at)) => {
            let found = usize::try_from(*at).ok().and_then(|at| list.get(at));
            found.cloned().ok_or(RunError::OutOfRange(*at))
        }
        (Value::Text(text), Value::Integer(at)) => {
            let found = usize::try_from(*at).ok().and_then(|at| text.as_bytes().get(at));
            found.map(|octet| Value::Integer(i64::from(*octet))).ok_or(RunError::OutOfRange(*at))
        }
        // All maps here hold texts, and an absent one is empty.
        (Value::Map(map), Value::Text(key)) => Ok(map.get(key).cloned().unwrap_or_else(|| Value::text(""))),
        _ => Err(RunError::BadArguments("index")),
    })
}

fn slice(args: &[Value]) -> Option<Value> {
    let (first, places) = args.split_first()?;
    let length = first.len()?;
    let place = |at: usize, absent: usize| match places.get(at) {
        None => Some(absent),
        Some(Value::Integer(place)) => usize::try_from(*place).ok(),
        Some(_) => None,
    };
    let range = place(0, 0)?..place(1, length)?;
    match first {
        Value::Text(text) => text.get(range).map(Value::text),
        Value::List(list) => list.get(range).map(|part| Value::List(part.to_vec())),
        _ => None,
    }
}

/// All arguments, a blank between two of which none is a text.
pub(super) fn print(args: &[Value]) -> String {
    let mut text = String::new();
    for (at, arg) in args.iter().enumerate() {
        let is_text = |value: &Value| matches!(value, Value::Text(_));
        if at > 0 && !is_text(arg) && !is_text(&args[at - 1]) {
            text.push(' ');
        }
        let _ = write!(text, "{arg}");
    }
    text
}

fn println(args: &[Value]) -> String {
    args.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ") + "\n"
}

fn escape_html(text: &str) -> String {
    text.chars().fold(String::new(), |mut escaped, character| {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
        escaped
    })
}

fn escape_query(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, octet| {
        match octet {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => escaped.push(char::from(octet)),
            b' ' => escaped.push('+'),
            _ => {
                let _ = write!(escaped, "%{octet:02X}");
            }
        }
        escaped
    })
}

/// `parseInt TEXT BASE BITS`: a whole number without a sign, as in CoreDNS; base 0 is as its prefix says.
fn parse_int(args: &[Value]) -> Option<Value> {
    let [Value::Text(text), Value::Integer(base), Value::Integer(bits)] = args else { return None };
    let number = parse_unsigned(text, u32::try_from(*base).ok()?)?;
    let bits = if *bits == 0 { 64 } else { u32::try_from(*bits).ok().filter(|bits| *bits <= 64)? };
    (number <= u64::MAX >> (64 - bits)).then(|| unsigned(number))
}

/// A number that is too large for an integer here is told by its digits.
fn unsigned(number: u64) -> Value {
    i64::try_from(number).map_or_else(|_| Value::text(number.to_string()), Value::Integer)
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

/// Digits without the `_` between them; one may stand behind a prefix too.
fn without_separators(digits: &str, prefixed: bool) -> Option<Cow<'_, str>> {
    if !digits.contains('_') {
        return Some(digits.into());
    }
    let misplaced = digits.ends_with('_') || digits.contains("__") || (digits.starts_with('_') && !prefixed);
    (!misplaced).then(|| digits.replace('_', "").into())
}

/// A whole number as it stands in a template: its prefix says its base.
pub(super) fn parse_integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (digits, base) = split_base(digits);
    if digits.starts_with(['+', '-']) {
        return None;
    }
    let digits: Cow<'_, str> = if negative { format!("-{digits}").into() } else { digits.into() };
    i64::from_str_radix(&digits, base).ok()
}

fn split_base(digits: &str) -> (&str, u32) {
    let lower = digits.get(..2).map(str::to_ascii_lowercase);
    match lower.as_deref() {
        Some("0x") => (&digits[2..], 16),
        Some("0b") => (&digits[2..], 2),
        Some("0o") => (&digits[2..], 8),
        Some(octal) if octal.starts_with('0') && octal != "0." => (&digits[1..], 8),
        _ => (digits, 10),
    }
}

/// How one value is printed by `printf`.
#[derive(Default)]
struct Verb {
    left: bool,
    plus: bool,
    zero: bool,
    sharp: bool,
    width: usize,
    precision: Option<usize>,
    letter: char,
}

fn printf(format: &Value, args: &[Value]) -> Option<Value> {
    let Value::Text(format) = format else { return None };
    let mut text = String::new();
    let mut args = args.iter();
    let mut chars = format.chars().peekable();
    while let Some(next) = chars.next() {
        if next != '%' {
            text.push(next);
            continue;
        }
        let verb = Verb::read(&mut chars);
        match verb.letter {
            '%' => text.push('%'),
            '\0' => text.push_str("%!(NOVERB)"),
            letter => match args.next() {
                Some(arg) => text.push_str(&verb.print(arg)),
                None => {
                    let _ = write!(text, "%!{letter}(MISSING)");
                }
            },
        }
    }
    let extra: Vec<String> = args.map(|arg| format!("{}={arg}", arg.kind())).collect();
    if !extra.is_empty() {
        let _ = write!(text, "%!(EXTRA {})", extra.join(", "));
    }
    Some(Value::Text(text))
}

impl Verb {
    fn read(chars: &mut core::iter::Peekable<core::str::Chars<'_>>) -> Verb {
        let mut verb = Verb::default();
        while let Some(flag) = chars.next_if(|c| matches!(c, '-' | '+' | '#' | ' ' | '0')) {
            match flag {
                '-' => verb.left = true,
                '+' => verb.plus = true,
                '#' => verb.sharp = true,
                '0' => verb.zero = true,
                _ => {}
            }
        }
        verb.width = number(chars).unwrap_or_default();
        if chars.next_if_eq(&'.').is_some() {
            verb.precision = Some(number(chars).unwrap_or_default());
        }
        verb.letter = chars.next().unwrap_or_default();
        verb
    }

    fn print(&self, arg: &Value) -> String {
        let text = match (self.letter, arg) {
            ('v', _) | ('s', Value::Text(_) | Value::List(_) | Value::Map(_)) | ('t', Value::Flag(_)) => {
                self.cut(arg.to_string())
            }
            ('q', Value::Text(text)) => format!("{text:?}"),
            ('T', _) => arg.kind().to_owned(),
            ('d', Value::Integer(number)) => format!("{number}"),
            ('x', Value::Integer(number)) => self.in_base(*number, "0x", |number| format!("{number:x}")),
            ('X', Value::Integer(number)) => self.in_base(*number, "0X", |number| format!("{number:X}")),
            ('o', Value::Integer(number)) => self.in_base(*number, "0", |number| format!("{number:o}")),
            ('b', Value::Integer(number)) => self.in_base(*number, "0b", |number| format!("{number:b}")),
            ('c', Value::Integer(number)) => {
                let character = u32::try_from(*number).ok().and_then(char::from_u32);
                character.unwrap_or(char::REPLACEMENT_CHARACTER).to_string()
            }
            ('x', Value::Text(text)) => text.bytes().map(|octet| format!("{octet:02x}")).collect(),
            ('X', Value::Text(text)) => text.bytes().map(|octet| format!("{octet:02X}")).collect(),
            ('f', Value::Float(number)) => format!("{number:.*}", self.precision.unwrap_or(6).min(WIDTH_MAX)),
            (letter, _) => format!("%!{letter}({}={arg})", arg.kind()),
        };
        let is_number = matches!(arg, Value::Integer(_) | Value::Float(_));
        let sign = if self.plus && is_number && !text.starts_with('-') { "+" } else { "" };
        self.fill(&format!("{sign}{text}"), is_number)
    }

    fn in_base(&self, number: i64, prefix: &str, digits: fn(u64) -> String) -> String {
        let sign = if number < 0 { "-" } else { "" };
        let prefix = if self.sharp { prefix } else { "" };
        format!("{sign}{prefix}{}", digits(number.unsigned_abs()))
    }

    fn cut(&self, text: String) -> String {
        match self.precision {
            Some(most) => text.chars().take(most).collect(),
            None => text,
        }
    }

    fn fill(&self, text: &str, is_number: bool) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        if self.left {
            return format!("{text}{}", " ".repeat(missing));
        }
        let digits_at = usize::from(text.starts_with(['+', '-']));
        if self.zero && is_number {
            return format!("{}{}{}", &text[..digits_at], "0".repeat(missing), &text[digits_at..]);
        }
        format!("{}{text}", if self.zero { "0" } else { " " }.repeat(missing))
    }
}

fn number(chars: &mut core::iter::Peekable<core::str::Chars<'_>>) -> Option<usize> {
    let mut number = None;
    while let Some(digit) = chars.peek().and_then(|next| next.to_digit(10)) {
        chars.next();
        number = Some((number.unwrap_or(0) * 10 + digit as usize).min(WIDTH_MAX));
    }
    number
}
