//! Implements `printf` for the values that templates have. Floats in base 2 and 16 (`%b`, `%x`) are not supported.

use std::fmt::Write;

use super::error::{ExecuteError, OUTPUT_MAX};
use super::output::{Text, shown};
use crate::value::{Value, split_exponent};

/// Formats the arguments like Go's `fmt.Sprintf`.
pub(super) fn printf(args: &[Value]) -> Result<Value, ExecuteError> {
    let Some((Value::Text(format), args)) = args.split_first() else {
        return Err(ExecuteError::BadArguments("printf"));
    };
    let mut text = Text::default();
    let mut given = Given { args, next: 0, reordered: false, is_good: true };
    let mut rest = format.as_str();
    while let Some((before, after)) = rest.split_once('%') {
        text.push(before)?;
        let verb;
        (verb, rest) = Verb::read(after, &mut given);
        let width = verb.width.max(verb.precision.unwrap_or_default());
        if width > OUTPUT_MAX {
            return Err(ExecuteError::TooLong);
        }
        text.push(&verb.bad_number)?;
        text.push(&verb.print_next(&mut given))?;
    }
    text.push(rest)?;
    let extra = given.args.get(given.next..).unwrap_or_default();
    if !given.reordered && !extra.is_empty() {
        let extra: Vec<String> = extra.iter().map(typed).collect();
        text.push(&format!("%!(EXTRA {})", extra.join(", ")))?;
    }
    Ok(Value::Text(text.into()))
}

/// Value with its type, as Go shows it in place of a failed verb.
fn typed(value: &Value) -> String {
    if *value == Value::Nil { "<nil>".to_owned() } else { format!("{}={}", value.type_name(), shown(value)) }
}

/// Arguments and the position of the next one.
struct Given<'v> {
    args: &'v [Value],
    next: usize,
    /// An explicit index such as `%[2]d` was used.
    reordered: bool,
    /// False if the last explicit index was out of range.
    is_good: bool,
}

impl<'v> Given<'v> {
    fn take(&mut self) -> Option<&'v Value> {
        let arg = self.args.get(self.next)?;
        self.next += 1;
        Some(arg)
    }

    /// Takes `[NUMBER]`, if the text starts with it, and returns the rest.
    fn choose<'t>(&mut self, text: &'t str) -> &'t str {
        let Some((number, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) else { return text };
        let number = number.parse().ok().filter(|number| (1..=self.args.len()).contains(number));
        self.reordered = true;
        self.is_good = number.is_some();
        self.next = number.map_or(self.next, |number: usize| number - 1);
        rest
    }

    fn next_number(&mut self) -> Option<i64> {
        match self.take()? {
            Value::Integer(number) if number.unsigned_abs() <= NUMBER_MAX as u64 => Some(*number),
            _ => None,
        }
    }
}

/// Largest width or precision that Go accepts from an argument (`*`).
const NUMBER_MAX: usize = 1_000_000;

/// Parsed formatting verb.
#[derive(Default)]
struct Verb {
    left: bool,
    plus: bool,
    zero: bool,
    sharp: bool,
    space: bool,
    width: usize,
    precision: Option<usize>,
    letter: char,
    /// Error text for an invalid width or precision.
    bad_number: String,
}

impl Verb {
    fn read<'t>(text: &'t str, given: &mut Given<'_>) -> (Verb, &'t str) {
        let mut verb = Verb::default();
        given.is_good = true;
        let flags = text.len() - text.trim_start_matches(['-', '+', '#', ' ', '0']).len();
        let (flags, text) = text.split_at(flags);
        let has = |flag| flags.contains(flag);
        (verb.left, verb.plus, verb.sharp, verb.space) = (has('-'), has('+'), has('#'), has(' '));
        verb.zero = has('0') && !verb.left;
        let (width, mut text) = verb.number(text, given, "%!(BADWIDTH)");
        if let Some(width) = width {
            verb.left |= width < 0;
            verb.zero &= !verb.left;
            verb.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
        }
        if let Some(rest) = text.strip_prefix('.') {
            let (precision, rest) = verb.number(rest, given, "%!(BADPREC)");
            verb.precision = precision.map_or(Some(0), |number| usize::try_from(number).ok());
            text = rest;
        }
        let mut chars = given.choose(text).chars();
        verb.letter = chars.next().unwrap_or_default();
        (verb, chars.as_str())
    }

    /// Takes digits, or `*` for an argument.
    fn number<'t>(&mut self, text: &'t str, given: &mut Given<'_>, error: &str) -> (Option<i64>, &'t str) {
        let text = given.choose(text);
        if let Some(rest) = text.strip_prefix('*') {
            let number = given.next_number();
            if number.is_none() {
                self.bad_number.push_str(error);
            }
            return (number, rest);
        }
        let rest = text.trim_start_matches(|next: char| next.is_ascii_digit());
        let digits = &text[..text.len() - rest.len()];
        let number = (!digits.is_empty()).then(|| digits.parse().unwrap_or(i64::MAX));
        (number, rest)
    }

    fn print_next(&self, given: &mut Given<'_>) -> String {
        match self.letter {
            '\0' => "%!(NOVERB)".to_owned(),
            '%' => "%".to_owned(),
            letter if !given.is_good => format!("%!{letter}(BADINDEX)"),
            letter => given.take().map_or_else(|| format!("%!{letter}(MISSING)"), |arg| self.print(arg)),
        }
    }

    fn print(&self, arg: &Value) -> String {
        let letter = self.letter;
        let printed = match (letter, arg) {
            ('T', _) => Some(self.fill(arg.type_name())),
            ('v', Value::Nil) => Some(self.fill("<nil>")),
            ('v' | 't', Value::Bool(flag)) => Some(self.fill(&flag.to_string())),
            (_, Value::Integer(number)) => self.integer(*number < 0, number.unsigned_abs()),
            (_, Value::Unsigned(number)) => self.integer(false, *number),
            (_, Value::Float(number)) => self.float(*number),
            (_, Value::Text(text)) => self.text(text),
            (_, Value::List(list)) => {
                let elements: Vec<String> = list.iter().map(|element| self.print(element)).collect();
                Some(format!("[{}]", elements.join(" ")))
            }
            (_, Value::Map(map)) => {
                let key = |key: &String| self.text(key).unwrap_or_default();
                let pairs = map.iter().map(|(name, value)| format!("{}:{}", key(name), self.print(value)));
                Some(format!("map[{}]", pairs.collect::<Vec<_>>().join(" ")))
            }
            (_, Value::Struct(fields)) => {
                let values: Vec<String> = fields.iter().map(|(_, value)| self.print(value)).collect();
                Some(format!("{{{}}}", values.join(" ")))
            }
            _ => None,
        };
        printed.unwrap_or_else(|| format!("%!{letter}({})", typed(arg)))
    }

    fn integer(&self, negative: bool, number: u64) -> Option<String> {
        let (prefix, digits) = match self.letter {
            'v' | 'd' => ("", number.to_string()),
            'b' => ("0b", format!("{number:b}")),
            'o' => ("0", format!("{number:o}")),
            'O' => ("", format!("0o{number:o}")),
            'x' => ("0x", format!("{number:x}")),
            'X' => ("0X", format!("{number:X}")),
            'c' => return Some(self.fill(character(number).encode_utf8(&mut [0; 4]))),
            'q' => return Some(self.fill(&quoted(character(number).encode_utf8(&mut [0; 4]), '\'', self.plus))),
            'U' => {
                let shown = if self.sharp { format!(" '{}'", character(number)) } else { String::new() };
                return Some(self.fill(&format!("U+{number:04X}{shown}")));
            }
            _ => return None,
        };
        let sign = self.sign(negative, self.letter != 'v');
        let prefix = if self.sharp { prefix } else { "" };
        let least = self.precision.or(self.zero.then(|| self.width.saturating_sub(sign.len()))).unwrap_or(1);
        let digits = if number == 0 && self.precision == Some(0) { String::new() } else { digits };
        Some(self.fill_with(&format!("{sign}{prefix}{digits:0>least$}"), ' '))
    }

    fn sign(&self, negative: bool, shows_plus: bool) -> &'static str {
        match () {
            () if negative => "-",
            () if self.plus && shows_plus => "+",
            () if self.space => " ",
            () => "",
        }
    }

    fn float(&self, number: f64) -> Option<String> {
        let size = number.abs();
        let precision = self.precision.unwrap_or(6);
        let digits = match (self.letter, self.precision) {
            ('v' | 'g' | 'G', None) => Value::Float(size).to_string(),
            ('v' | 'g' | 'G', Some(precision)) => shortest(size, precision.max(1)),
            ('e' | 'E', _) => with_exponent(&format!("{size:.precision$e}")),
            ('f' | 'F', _) => format!("{size:.precision$}"),
            _ => return None,
        };
        let digits = if self.letter.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
        let sign = self.sign(number.is_sign_negative(), self.letter != 'v');
        let least = if self.zero { self.width.saturating_sub(sign.len()) } else { 0 };
        Some(self.fill_with(&format!("{sign}{digits:0>least$}"), ' '))
    }

    fn text(&self, text: &str) -> Option<String> {
        let most = self.precision.unwrap_or(usize::MAX);
        let cut = || text.chars().take(most).collect::<String>();
        let bytes = &text.as_bytes()[..most.min(text.len())];
        Some(match self.letter {
            'v' if self.sharp => self.fill(&quoted(&cut(), '"', false)),
            'v' | 's' => self.fill(&cut()),
            'x' => self.fill(&self.hexadecimal(bytes, "0x", |byte| format!("{byte:02x}"))),
            'X' => self.fill(&self.hexadecimal(bytes, "0X", |byte| format!("{byte:02X}"))),
            'q' if self.sharp && !text.contains(|next: char| next == '`' || (next.is_control() && next != '\t')) => {
                self.fill(&format!("`{}`", cut()))
            }
            'q' => self.fill(&quoted(&cut(), '"', self.plus)),
            _ => return None,
        })
    }

    fn hexadecimal(&self, bytes: &[u8], prefix: &str, digits: fn(&u8) -> String) -> String {
        let prefix = if self.sharp && !bytes.is_empty() { prefix } else { "" };
        let all: Vec<String> = bytes.iter().map(digits).collect();
        let between = if self.space { format!(" {prefix}") } else { String::new() };
        format!("{prefix}{}", all.join(&between))
    }

    fn fill(&self, text: &str) -> String {
        self.fill_with(text, if self.zero { '0' } else { ' ' })
    }

    fn fill_with(&self, text: &str, filler: char) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        let filling = filler.to_string().repeat(missing);
        if self.left { format!("{text}{filling}") } else { format!("{filling}{text}") }
    }
}

fn character(number: u64) -> char {
    u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Upper limit on significant digits. An `f64` has fewer, so all further digits are zeros.
const DIGITS_MAX: usize = 1100;

/// Formats a number with `digits` significant digits and without trailing zeros (`%g`). Uses an exponent if that is
/// shorter.
fn shortest(number: f64, digits: usize) -> String {
    let digits = digits.min(DIGITS_MAX);
    let text = format!("{number:.*e}", digits - 1);
    let (mantissa, exponent) = split_exponent(&text);
    let exponent = i64::from(exponent);
    let most = i64::try_from(digits).unwrap_or(i64::MAX);
    let trim = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..most).contains(&exponent) {
        let places = usize::try_from(most - 1 - exponent).unwrap_or_default();
        return trim(&format!("{number:.places$}"));
    }
    with_exponent(&format!("{}e{exponent}", trim(mantissa)))
}

/// Rewrites an exponent in Go's form, with a sign and at least two digits.
fn with_exponent(text: &str) -> String {
    let (mantissa, exponent) = split_exponent(text);
    format!("{mantissa}e{exponent:+03}")
}

/// Quotes a string and escapes characters that are not printable.
fn quoted(text: &str, quote: char, only_ascii: bool) -> String {
    let mut quoted = String::from(quote);
    for next in text.chars() {
        let _ = match next {
            _ if next == quote || next == '\\' => write!(quoted, "\\{next}"),
            '\u{7}' => write!(quoted, "\\a"),
            '\u{8}' => write!(quoted, "\\b"),
            '\u{c}' => write!(quoted, "\\f"),
            '\n' => write!(quoted, "\\n"),
            '\r' => write!(quoted, "\\r"),
            '\t' => write!(quoted, "\\t"),
            '\u{b}' => write!(quoted, "\\v"),
            ' '..='~' => write!(quoted, "{next}"),
            '\0'..='\u{7f}' => write!(quoted, "\\x{:02x}", u32::from(next)),
            _ if !only_ascii && !next.is_control() && !next.is_whitespace() => write!(quoted, "{next}"),
            '\u{80}'..='\u{ffff}' => write!(quoted, "\\u{:04x}", u32::from(next)),
            _ => write!(quoted, "\\U{:08x}", u32::from(next)),
        };
    }
    quoted.push(quote);
    quoted
}
