//! Classes of characters, and single ones behind a backslash.

use regex::Regex;

use super::fault::Fault;
use super::rest::Rest;

/// Classes of one letter behind a backslash: of ASCII only.
const LETTERS: [(&str, &str); 6] = [
    (r"\d", "[0-9]"),
    (r"\D", "[^0-9]"),
    (r"\s", r"[\t\n\x0C\r ]"),
    (r"\S", r"[^\t\n\x0C\r ]"),
    (r"\w", "[0-9A-Za-z_]"),
    (r"\W", "[^0-9A-Za-z_]"),
];

/// The names that may stand in `[:NAME:]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// A class without any character.
pub(super) const NOTHING: &str = r"[^\x00-\x{10FFFF}]";

/// Takes a class up to its closing bracket, the opening one being taken already.
pub(super) fn bracketed(rest: &mut Rest<'_>) -> Result<String, Fault> {
    let mut class = String::from("[");
    if rest.take("^") {
        class.push('^');
    }
    // A bracket that comes first is a character.
    let mut first = true;
    while first || !rest.take("]") {
        first = false;
        if rest.text().is_empty() {
            return Err(Fault::UnclosedClass);
        }
        let item = match posix(rest)? {
            Some(class) => class,
            None => match named(rest)? {
                Some(class) => class,
                None => range_of(rest)?,
            },
        };
        class.push_str(&item);
    }
    class.push(']');
    Ok(class)
}

/// Takes `[:NAME:]` or `[:^NAME:]`; without an end it begins nothing.
fn posix(rest: &mut Rest<'_>) -> Result<Option<String>, Fault> {
    let inner = rest.text().strip_prefix("[:").and_then(|inner| inner.split_once(":]"));
    let Some((name, after)) = inner else { return Ok(None) };
    let written = format!("[:{name}:]");
    if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(Fault::Class(written));
    }
    *rest = Rest::new(after);
    Ok(Some(written))
}

/// Takes one character, or a range of them.
fn range_of(rest: &mut Rest<'_>) -> Result<String, Fault> {
    let before = rest.text();
    let low = character(rest)?;
    let text = rest.text();
    // A hyphen right before the bracket is a character.
    if !text.starts_with('-') || text.len() < 2 || text.starts_with("-]") {
        return Ok(range(low, low));
    }
    rest.take("-");
    let high = character(rest)?;
    if high < low { Err(Fault::Class(rest.since(before))) } else { Ok(range(low, high)) }
}

/// The class of the characters from `low` to `high`, by their numbers: without surrogates, which no text has.
pub(super) fn range(low: u32, high: u32) -> String {
    let surrogates = 0xd800..=0xdfff;
    let low = if surrogates.contains(&low) { 0xe000 } else { low };
    let high = if surrogates.contains(&high) { 0xd7ff } else { high };
    if low > high { NOTHING.to_owned() } else { format!(r"[\x{{{low:X}}}-\x{{{high:X}}}]") }
}

/// Takes a class that has a name behind a backslash, if one comes next.
pub(super) fn named(rest: &mut Rest<'_>) -> Result<Option<String>, Fault> {
    if let Some((_, class)) = LETTERS.iter().find(|(letter, _)| rest.take(letter)) {
        return Ok(Some((*class).to_owned()));
    }
    let before = rest.text();
    let negated = match () {
        () if rest.take(r"\p") => false,
        () if rest.take(r"\P") => true,
        () => return Ok(None),
    };
    let name = property_name(rest);
    let class = name.and_then(|name| match name.strip_prefix('^').filter(|name| !name.is_empty()) {
        Some(name) => property(name, !negated),
        None => property(name, negated),
    });
    class.map(Some).ok_or_else(|| Fault::Class(rest.since(before)))
}

/// Takes `{NAME}`, or a name of one character.
fn property_name<'t>(rest: &mut Rest<'t>) -> Option<&'t str> {
    let text = rest.text();
    if !rest.take("{") {
        rest.next()?;
        return text.get(..text.len() - rest.text().len());
    }
    let (name, after) = rest.text().split_once('}')?;
    *rest = Rest::new(after);
    Some(name)
}

/// The class of a general category or a script of Unicode, whose name is read in any case and without `_`, `-` and blanks.
fn property(name: &str, negated: bool) -> Option<String> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_- ".contains(character);
    let sign = if negated { 'P' } else { 'p' };
    let known = |class: &String| Regex::new(class).is_ok();
    let of = |kind: &str| Some(format!(r"\{sign}{{{kind}={name}}}")).filter(known);
    name.chars().all(fits).then(|| of("gc").or_else(|| of("sc")))?
}

/// Takes one character, as it is or behind a backslash: gives its number.
pub(super) fn character(rest: &mut Rest<'_>) -> Result<u32, Fault> {
    let before = rest.text();
    let next = rest.next().ok_or(Fault::UnclosedClass)?;
    if next != '\\' {
        return Ok(u32::from(next));
    }
    let escaped = rest.next().ok_or(Fault::TrailingBackslash)?;
    let number = match escaped {
        // A digit that is not zero and stands alone would be what a group has matched, which there is not.
        '1'..='7' if !rest.text().starts_with(|next: char| next.is_digit(8)) => None,
        '0'..='7' => Some(octal(escaped, rest)),
        'x' => hexadecimal(rest),
        'a' => Some(7),
        'f' => Some(0xc),
        'n' => Some(0xa),
        'r' => Some(0xd),
        't' => Some(9),
        'v' => Some(0xb),
        mark if mark.is_ascii() && !mark.is_ascii_alphanumeric() => Some(u32::from(mark)),
        _ => None,
    };
    number.ok_or_else(|| Fault::Escape(rest.since(before)))
}

/// Up to three digits, the first of them taken already.
fn octal(first: char, rest: &mut Rest<'_>) -> u32 {
    let mut number = first.to_digit(8).unwrap_or_default();
    for _ in 0..2 {
        let Some(digit) = rest.text().chars().next().and_then(|next| next.to_digit(8)) else { break };
        rest.next();
        number = number * 8 + digit;
    }
    number
}

/// Two digits, or any number of them in braces.
fn hexadecimal(rest: &mut Rest<'_>) -> Option<u32> {
    let (digits, after) = match rest.text().strip_prefix('{') {
        Some(inner) => inner.split_once('}')?,
        None => rest.text().split_at_checked(2)?,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|number| is_number && *number <= u32::from(char::MAX));
    *rest = Rest::new(after);
    number
}
