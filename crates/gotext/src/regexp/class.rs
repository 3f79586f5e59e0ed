//! Character classes and escape sequences.

use regex::Regex;

use super::error::RegexpError;
use crate::cursor::Cursor;

/// Perl classes, which match ASCII only as in Go.
const LETTERS: [(&str, &str); 6] = [
    (r"\d", "[0-9]"),
    (r"\D", "[^0-9]"),
    (r"\s", r"[\t\n\x0C\r ]"),
    (r"\S", r"[^\t\n\x0C\r ]"),
    (r"\w", "[0-9A-Za-z_]"),
    (r"\W", "[^0-9A-Za-z_]"),
];

/// Names allowed in `[:NAME:]`.
const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "word",
    "xdigit",
];

/// Class that matches no character.
pub(super) const NOTHING: &str = r"[^\x00-\x{10FFFF}]";

/// Parses a class up to its closing bracket. The caller has taken the opening one.
pub(super) fn bracketed(cursor: &mut Cursor<'_>) -> Result<String, RegexpError> {
    let mut class = String::from("[");
    if cursor.take("^") {
        class.push('^');
    }
    // A `]` in first position is a literal.
    let mut first = true;
    while first || !cursor.take("]") {
        first = false;
        if cursor.rest().is_empty() {
            return Err(RegexpError::UnclosedClass);
        }
        let item = match posix(cursor)? {
            Some(class) => class,
            None => match named(cursor)? {
                Some(class) => class,
                None => range_of(cursor)?,
            },
        };
        class.push_str(&item);
    }
    class.push(']');
    Ok(class)
}

/// Parses `[:NAME:]` or `[:^NAME:]`. Without `:]`, the `[` is a literal.
fn posix(cursor: &mut Cursor<'_>) -> Result<Option<String>, RegexpError> {
    let inner = cursor.rest().strip_prefix("[:").and_then(|inner| inner.split_once(":]"));
    let Some((name, after)) = inner else { return Ok(None) };
    let written = format!("[:{name}:]");
    if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(RegexpError::Class(written));
    }
    cursor.move_to(after);
    Ok(Some(written))
}

/// Parses one character or a range.
fn range_of(cursor: &mut Cursor<'_>) -> Result<String, RegexpError> {
    let before = cursor.rest();
    let low = character(cursor)?;
    let text = cursor.rest();
    // A hyphen right before the closing bracket is a literal.
    if !text.starts_with('-') || text.len() < 2 || text.starts_with("-]") {
        return Ok(range(low, low));
    }
    cursor.take("-");
    let high = character(cursor)?;
    if high < low { Err(RegexpError::Class(cursor.since(before))) } else { Ok(range(low, high)) }
}

/// Returns the class of the code points from `low` to `high`, without surrogates, which no string contains.
pub(super) fn range(low: u32, high: u32) -> String {
    let surrogates = 0xd800..=0xdfff;
    let low = if surrogates.contains(&low) { 0xe000 } else { low };
    let high = if surrogates.contains(&high) { 0xd7ff } else { high };
    if low > high { NOTHING.to_owned() } else { format!(r"[\x{{{low:X}}}-\x{{{high:X}}}]") }
}

/// Parses a named class (`\d`, `\pL`, `\p{Greek}`), if the input starts with one.
pub(super) fn named(cursor: &mut Cursor<'_>) -> Result<Option<String>, RegexpError> {
    if let Some((_, class)) = LETTERS.iter().find(|(letter, _)| cursor.take(letter)) {
        return Ok(Some((*class).to_owned()));
    }
    let before = cursor.rest();
    let negated = match () {
        () if cursor.take(r"\p") => false,
        () if cursor.take(r"\P") => true,
        () => return Ok(None),
    };
    let name = property_name(cursor);
    let class = name.and_then(|name| match name.strip_prefix('^').filter(|name| !name.is_empty()) {
        Some(name) => property(name, !negated),
        None => property(name, negated),
    });
    class.map(Some).ok_or_else(|| RegexpError::Class(cursor.since(before)))
}

/// Parses `{NAME}` or a name of one character.
fn property_name<'t>(cursor: &mut Cursor<'t>) -> Option<&'t str> {
    let text = cursor.rest();
    if !cursor.take("{") {
        cursor.next()?;
        return text.get(..text.len() - cursor.rest().len());
    }
    let (name, after) = cursor.rest().split_once('}')?;
    cursor.move_to(after);
    Some(name)
}

/// Returns the class of a Unicode general category or script. Case, `_`, `-` and spaces in the name do not matter.
fn property(name: &str, negated: bool) -> Option<String> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_- ".contains(character);
    let sign = if negated { 'P' } else { 'p' };
    let known = |class: &String| Regex::new(class).is_ok();
    let of = |kind: &str| Some(format!(r"\{sign}{{{kind}={name}}}")).filter(known);
    name.chars().all(fits).then(|| of("gc").or_else(|| of("sc")))?
}

/// Parses one character, literal or escaped, and returns its code point.
pub(super) fn character(cursor: &mut Cursor<'_>) -> Result<u32, RegexpError> {
    let before = cursor.rest();
    let next = cursor.next().ok_or(RegexpError::UnclosedClass)?;
    if next != '\\' {
        return Ok(u32::from(next));
    }
    let escaped = cursor.next().ok_or(RegexpError::TrailingBackslash)?;
    let number = match escaped {
        // A single digit from 1 to 7 would be a backreference, which Go does not have.
        '1'..='7' if !cursor.rest().starts_with(|next: char| next.is_digit(8)) => None,
        '0'..='7' => Some(octal(escaped, cursor)),
        'x' => hexadecimal(cursor),
        'a' => Some(7),
        'f' => Some(0xc),
        'n' => Some(0xa),
        'r' => Some(0xd),
        't' => Some(9),
        'v' => Some(0xb),
        mark if mark.is_ascii() && !mark.is_ascii_alphanumeric() => Some(u32::from(mark)),
        _ => None,
    };
    number.ok_or_else(|| RegexpError::Escape(cursor.since(before)))
}

/// Parses up to three octal digits. The caller has taken the first.
fn octal(first: char, cursor: &mut Cursor<'_>) -> u32 {
    let mut number = first.to_digit(8).unwrap_or_default();
    for _ in 0..2 {
        let Some(digit) = cursor.rest().chars().next().and_then(|next| next.to_digit(8)) else { break };
        cursor.next();
        number = number * 8 + digit;
    }
    number
}

/// Parses two hexadecimal digits, or any number of them in braces.
fn hexadecimal(cursor: &mut Cursor<'_>) -> Option<u32> {
    let (digits, after) = match cursor.rest().strip_prefix('{') {
        Some(inner) => inner.split_once('}')?,
        None => cursor.rest().split_at_checked(2)?,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|number| is_number && *number <= u32::from(char::MAX));
    cursor.move_to(after);
    number
}
