//! Splits a line into words, with quotes and escapes (RFC 1035 §5.1).

use core::fmt::Write;

use super::RecordError;

/// A word of a line.
pub(super) struct Word {
    /// Text as written, without quotes but with escapes.
    pub(super) text: String,
}

impl Word {
    /// Replaces the escapes. Returns `None` if one is invalid.
    pub(super) fn unescaped(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut rest = self.text.bytes();
        while let Some(byte) = rest.next() {
            bytes.push(if byte == b'\\' { unescape(&mut rest)? } else { byte });
        }
        Some(bytes)
    }
}

fn unescape(rest: &mut impl Iterator<Item = u8>) -> Option<u8> {
    let first = rest.next()?;
    if !first.is_ascii_digit() {
        return Some(first);
    }
    let digits = [first, rest.next()?, rest.next()?];
    core::str::from_utf8(&digits).ok()?.parse().ok()
}

/// Splits a line at whitespace outside quotes.
pub(super) fn split(line: &str) -> Result<Vec<Word>, RecordError> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let (text, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let end = end_of(quoted, |c| c == '"').ok_or(RecordError::Unclosed)?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => rest.split_at(end_of(rest, char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(Word { text: text.to_owned() });
        rest = after.trim_start();
    }
    Ok(words)
}

/// Returns the position of the first unescaped character for which `ends` is true.
fn end_of(text: &str, ends: impl Fn(char) -> bool) -> Option<usize> {
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let hit = !escaped && ends(c);
        escaped = !escaped && c == '\\';
        hit.then_some(at)
    })
}

/// Quotes bytes, with escapes where necessary.
pub(super) fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            0x20..=0x7e => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:03}");
            }
        }
    }
    text + "\""
}
