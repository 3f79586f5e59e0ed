//! Conversion between keys and names: `x.example.org` has the key `org/example/x` below the path.
//!
//! The index stores keys without the path, so all keys below a name start with the name's key and a slash. A label
//! that contains a slash cannot be part of a key.

use core::ops::Range;

use host::invariant::Expected as _;
use wire::{Name, NameRef};

/// Separator of the labels in a key.
pub(crate) const SLASH: u8 = b'/';
/// Labels of a query that match any label.
const WILDCARDS: [&[u8]; 2] = [b"*", b"any"];

/// Key of a name, followed by a slash. A name of n bytes has a key of at most n bytes.
pub(crate) struct Key {
    bytes: [u8; 256],
    start: u8,
}

impl Key {
    /// Key of the root.
    pub(crate) const ROOT: Key = Key { bytes: [SLASH; 256], start: 0 };

    /// Returns the key of a name, which must be in lower case. Returns `None` if no record can have the key.
    pub(crate) fn of(name: NameRef<'_>) -> Option<Key> {
        let mut bytes = [SLASH; 256];
        let mut start = bytes.len();
        for label in name.labels() {
            if label.contains(&SLASH) {
                return None;
            }
            // The slash after it is already there.
            let end = start.checked_sub(1).expected("room for a slash")?;
            start = end.checked_sub(label.len()).expected("room for a label")?;
            bytes[start..end].copy_from_slice(label);
        }
        // A name has at least one byte more than its labels, so the longest key starts at 1.
        let start = if start == bytes.len() { 0 } else { start };
        Some(Key { bytes, start: u8::try_from(start).ok().expected("the start of a key within its bytes")? })
    }

    /// Returns the key without the trailing slash.
    pub(crate) fn whole(&self) -> &[u8] {
        self.prefix().split_last().map_or(&[], |(_, whole)| whole)
    }

    /// Returns the key with the trailing slash. Empty for the root.
    pub(crate) fn prefix(&self) -> &[u8] {
        match self.start {
            0 => &[],
            start => &self.bytes[usize::from(start)..],
        }
    }
}

/// Returns the offset of the first wildcard in a query's key, after skipping `fixed` segments. From there on,
/// segments have to be compared one by one. Returns `None` if there is no wildcard.
pub(crate) fn wildcards_at(prefix: &[u8], fixed: usize) -> Option<usize> {
    segments(prefix)
        .skip(fixed)
        .find(|segment| WILDCARDS.contains(&&prefix[segment.clone()]))
        .map(|segment| segment.start)
}

/// Returns true if `key` starts with segments that match `pattern`, where wildcards match any segment.
pub(crate) fn is_like(mut key: &[u8], pattern: &[u8]) -> bool {
    for segment in segments(pattern).map(|segment| &pattern[segment]) {
        if key.is_empty() {
            return false;
        }
        let end = until_slash(key);
        if !WILDCARDS.contains(&segment) && segment != &key[..end] {
            return false;
        }
        key = key.get(end + 1..).unwrap_or_default();
    }
    true
}

/// Iterates over the ranges of a key's segments. Each ends at a slash or at the end of the key.
fn segments(key: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    core::iter::from_fn(move || {
        let rest = key.get(start..).filter(|rest| !rest.is_empty())?;
        let segment = start..start + until_slash(rest);
        start = segment.end + 1;
        Some(segment)
    })
}

/// Returns the number of bytes before the first slash.
fn until_slash(key: &[u8]) -> usize {
    key.iter().position(|&byte| byte == SLASH).unwrap_or(key.len())
}

/// Returns the depth of a key: its number of slashes.
pub(crate) fn depth(key: &[u8]) -> usize {
    key.iter().filter(|&&byte| byte == SLASH).count()
}

/// Returns the name of a key, without the leftmost `strip` labels unless nothing would remain. Returns `None` if the
/// key is not a name.
///
/// Empty segments are skipped, and a dot in a segment separates labels.
#[must_use]
pub fn name_of(key: &[u8], strip: usize) -> Option<Name> {
    let count = labels(key).count();
    let strip = if strip < count { strip } else { 0 };
    let mut name = Name::root();
    for label in labels(key).skip(strip) {
        name.push_label(label).ok()?;
    }
    (count > 0).then_some(name)
}

fn labels(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let segments = key.rsplit(|&byte| byte == SLASH).filter(|segment| !segment.is_empty());
    segments.flat_map(|segment| segment.split(|&byte| byte == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(name: &str) -> Option<String> {
        let name = Name::from_text(name).unwrap();
        Key::of(name.as_ref()).map(|key| String::from_utf8(key.prefix().to_vec()).unwrap())
    }

    #[test]
    fn converts_names_to_keys() {
        for (name, key) in [(".", ""), ("org", "org/"), ("x.Example.org", "org/Example/x/"), (r"a\.b.org", "org/a.b/")]
        {
            assert_eq!(prefix(name).as_deref(), Some(key));
        }
        assert_eq!(prefix("a/b.org"), None);
        let longest = [&*"a".repeat(63), &"b".repeat(63), &"c".repeat(63), &"d".repeat(61)].join(".");
        assert_eq!(prefix(&longest).map(|key| key.len()), Some(254));
    }

    #[test]
    fn converts_keys_to_names() {
        let cases = [
            ("org/example/x", 0, Some("x.example.org.")),
            ("org/example/x", 1, Some("example.org.")),
            ("org/example/x", 3, Some("x.example.org.")),
            ("org/example/x/", 0, Some("x.example.org.")),
            ("org//x", 0, Some("x.org.")),
            ("org/a.b", 0, Some("a.b.org.")),
            ("org/a.b", 1, Some("b.org.")),
            ("", 0, None),
            ("/", 0, None),
            ("org/a..b", 0, None),
        ];
        for (key, strip, name) in cases {
            assert_eq!(name_of(key.as_bytes(), strip).map(|name| name.to_string()).as_deref(), name, "{key} {strip}");
        }
        assert!(name_of(&[b'x'; 64], 0).is_none());
        assert!(name_of("x/".repeat(128).as_bytes(), 0).is_none());
    }

    #[test]
    fn wildcards_match_exactly_one_label() {
        // Key of the query, number of fixed segments, offset of the first wildcard.
        let cases =
            [("org/a/", 0, None), ("org/*/x/", 1, Some(4)), ("any/*/x/", 1, Some(4)), ("org/x/any/", 1, Some(6))];
        for (prefix, fixed, at) in cases {
            assert_eq!(wildcards_at(prefix.as_bytes(), fixed), at, "{prefix}");
        }
        for (key, pattern, like) in [
            ("a/x", "*/x/", true),
            ("a/x/deeper", "*/x/", true),
            ("a", "*/x/", false),
            ("a/y", "*/x/", false),
            ("a", "*/", true),
            ("a/b", "*/*/", true),
            ("a", "*/*/", false),
            ("a/any/c", "a/any/c/", true),
        ] {
            assert_eq!(is_like(key.as_bytes(), pattern.as_bytes()), like, "{key} {pattern}");
        }
    }
}
