//! Reader for JSON texts (RFC 8259). As in Go, numbers become floating-point numbers.

use std::collections::BTreeMap;

use crate::value::Value;

/// Maximum nesting of lists and maps.
const DEPTH_MAX: usize = 64;

/// Parses a JSON text. Returns `None` for any other text.
pub(super) fn read(text: &str) -> Option<Value> {
    let mut reader = Reader { rest: text };
    let value = reader.value(0)?;
    reader.skip();
    reader.rest.is_empty().then_some(value)
}

struct Reader<'t> {
    rest: &'t str,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    /// Takes a token after white space, if it is the next one.
    fn take(&mut self, token: &str) -> bool {
        self.skip();
        let after = self.rest.strip_prefix(token);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip();
        for (word, value) in [("null", Value::Nil), ("true", Value::Bool(true)), ("false", Value::Bool(false))] {
            if self.take(word) {
                return Some(value);
            }
        }
        match self.rest.chars().next()? {
            '"' => self.text().map(Value::Text),
            '[' => self.list(depth).map(Value::List),
            '{' => self.map(depth).map(Value::Map),
            _ => self.number().map(Value::Float),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Vec<Value>> {
        let mut list = Vec::new();
        self.take("[");
        if self.take("]") {
            return Some(list);
        }
        loop {
            list.push(self.value(depth + 1)?);
            if self.take("]") {
                return Some(list);
            }
            self.take(",").then_some(())?;
        }
    }

    fn map(&mut self, depth: usize) -> Option<BTreeMap<String, Value>> {
        let mut map = BTreeMap::new();
        self.take("{");
        if self.take("}") {
            return Some(map);
        }
        loop {
            self.skip();
            let key = self.text()?;
            self.take(":").then_some(())?;
            map.insert(key, self.value(depth + 1)?);
            if self.take("}") {
                return Some(map);
            }
            self.take(",").then_some(())?;
        }
    }

    fn number(&mut self) -> Option<f64> {
        let is_part = |letter: char| matches!(letter, '0'..='9' | '+' | '-' | '.' | 'e' | 'E');
        let end = self.rest.find(|letter| !is_part(letter)).unwrap_or(self.rest.len());
        let (number, after) = self.rest.split_at_checked(end)?;
        let digits = number.strip_prefix('-').unwrap_or(number);
        let begins = digits.starts_with(|first: char| first.is_ascii_digit());
        let is_padded =
            digits.len() > 1 && digits.starts_with('0') && digits.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
        let has_gap = digits.ends_with('.') || digits.contains(".e") || digits.contains(".E");
        self.rest = after;
        number.parse().ok().filter(|parsed: &f64| begins && !is_padded && !has_gap && parsed.is_finite())
    }

    fn text(&mut self) -> Option<String> {
        let mut letters = self.rest.strip_prefix('"')?.chars();
        let mut text = String::new();
        loop {
            match letters.next()? {
                '"' => {
                    self.rest = letters.as_str();
                    return Some(text);
                }
                '\\' => text.push(escape(&mut letters)?),
                '\0'..='\u{1f}' => return None,
                letter => text.push(letter),
            }
        }
    }
}

/// Reads an escape sequence after its backslash. As in Go, half of a surrogate pair becomes U+FFFD.
fn escape(letters: &mut core::str::Chars<'_>) -> Option<char> {
    Some(match letters.next()? {
        letter @ ('"' | '\\' | '/') => letter,
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => {
            let first = unit(letters)?;
            let mut ahead = letters.clone();
            let second = (ahead.next() == Some('\\') && ahead.next() == Some('u')).then(|| unit(&mut ahead)).flatten();
            let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
            if (0xD800..0xDC00).contains(&first)
                && let Some(pair) = pair
            {
                *letters = ahead;
                pair
            } else {
                char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
        }
        _ => return None,
    })
}

fn unit(letters: &mut core::str::Chars<'_>) -> Option<u16> {
    (0..4).try_fold(0, |unit, _| Some(unit << 4 | u16::try_from(letters.next()?.to_digit(16)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_json() {
        for (text, printed) in [
            (" {\"a\" : [1, -2.5e1 , true,null], \"b\":{}} ", "map[a:[1 -25 true <no value>] b:map[]]"),
            ("\"\\u00e4\\ud83d\\ude00\\ud83d\\n\\/\"", "ä😀\u{fffd}\n/"),
            ("[]", "[]"),
            ("0", "0"),
        ] {
            assert_eq!(read(text).map(|value| value.to_string()), Some(printed.to_owned()), "{text}");
        }
        for text in [
            "",
            "[1,]",
            "{\"a\"}",
            "{a:1}",
            "01",
            "1.",
            "+1",
            "nul",
            "\"a",
            "\"\\x\"",
            "1 2",
            "\"\n\"",
            "1e999",
            "\"\\u12\"",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&"[".repeat(10_000)), None);
    }
}
