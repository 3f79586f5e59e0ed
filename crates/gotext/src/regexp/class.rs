//! Character classes and escape sequences.

use regex::Regex;

use super::error::RegexpError;
use super::rest::Rest;

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
pub(super) fn bracketed(rest: &mut Rest<'_>) -> Result<String, RegexpError> {
    let mut class = String::from("[");
    if rest.take("^") {
        class.push('^');
    }
    // A `]` in first position is a literal.
    let mut first = true;
    while first || !rest.take("]") {
        first = false;
        if rest.text().is_empty() {
            return Err(RegexpError::UnclosedClass);
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

/// Parses `[:NAME:]` or `[:^NAME:]`. Without `:]`, the `[` is a literal.
fn posix(rest: &mut Rest<'_>) -> Result<Option<String>, RegexpError> {
    let inner = rest.text().strip_prefix("[:").and_then(|inner| inner.split_once(":]"));
    let Some((name, after)) = inner else { return Ok(None) };
    let written = format!("[:{name}:]");
    if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
        return Err(RegexpError::Class(written));
    }
    *rest = Rest::new(after);
    Ok(Some(written))
}

/// Parses one character or a range.
fn range_of(rest: &mut Rest<'_>) -> Result<String, RegexpError> {
    let before = rest.text();
    let low = character(rest)?;
    let text = rest.text();
    // A hyphen right before the closing bracket is a literal.
    if !text.starts_with('-') || text.len() < 2 || text.starts_with("-]") {
        return Ok(range(low, low));
    }
    rest.take("-");
    let high = character(rest)?;
    if high < low { Err(RegexpError::Class(rest.since(before))) } else { Ok(range(low, high)) }
}

/// Returns the class of the code points from `low` to `high`, without surrogates, which no string contains.
pub(super) fn range(low: u32, high: u32) -> String {
    let surrogates = 0xd800..=0xdfff;
    let low = if surrogates.contains(&low) { 0xe000 } else { low };
    let high = if surrogates.contains(&high) { 0xd7ff } else { high };
    if low > high { NOTHING.to_owned() } else { format!(r"[\x{{{low:X}}}-\x{{{high:X}}}]") }
}

/// Parses a named class (`\d`, `\pL`, `\p{Greek}`), if the input starts with one.
pub(super) fn named(rest: &mut Rest<'_>) -> Result<Option<String>, RegexpError> {
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
    class.map(Some).ok_or_else(|| RegexpError::Class(rest.since(before)))
}

/// Parses `{NAME}` or a name of one character.
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

/// Returns the class of a Unicode general category or script. Case, `_`, `-` and spaces in the name do not matter.
fn property(name: &str, negated: bool) -> Option<String> {
    let fits = |character: char| character.is_ascii_alphanumeric() || "_- ".contains(character);
    let sign = if negated { 'P' } else { 'p' };
    let known = |class: &String| Regex::new(class).is_ok();
    let of = |kind: &str| Some(format!(r"\{sign}{{{kind}={name}}}")).filter(known);
    name.chars().all(fits).then(|| of("gc").or_else(|| of("sc")))?
}

/// Parses one character, literal or escaped, and returns its code point.
pub(super) fn character(rest: &mut Rest<'_>) -> Result<u32, RegexpError> {
    let before = rest.text();
    let next = rest.next().ok_or(RegexpError::UnclosedClass)?;
    if next != '\\' {
        return Ok(u32::from(next));
    }
    let escaped = rest.next().ok_or(RegexpError::TrailingBackslash)?;
    let number = match escaped {
        // A single digit from 1 to 7 would be a backreference, which Go does not have.
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
    number.ok_or_else(|| RegexpError::Escape(rest.since(before)))
}

/// Parses up to three octal digits. The caller has taken the first.
fn octal(first: char, rest: &mut Rest<'_>) -> u32 {
    let mut number = first.to_digit(8).unwrap_or_default();
    for _ in 0..2 {
        let Some(digit) = rest.text().chars().next().and_then(|next| next.to_digit(8)) else { break };
        rest.next();
        number = number * 8 + digit;
    }
    number
}

/// Parses two hexadecimal digits, or any number of them in braces.
fn hexadecimal(rest: &mut Rest<'_>) -> Option<u32> {
    let (digits, after) = match rest.text().strip_prefix('{') {
        Some(inner) => inner.split_once('}')?,
        None => rest.text().split_at_checked(2)?,
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u32::from_str_radix(digits, 16).ok().filter(|number| is_number && *number <= u32::from(char::MAX));
    *rest = Rest::new(after);
    number
}
