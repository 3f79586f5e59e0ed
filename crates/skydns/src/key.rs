//! Keys and names: `x.example.org` is `org/example/x` below the path.
//!
//! In the index a key stands without the path, so what is below a name is what begins with its key and a slash. A label
//! with a slash in it can be in no key.

use core::ops::Range;

use wire::{Name, NameRef};

/// What separates the labels of a key.
pub(crate) const SLASH: u8 = b'/';
/// Labels of a question that stand for any label.
const WILDCARDS: [&[u8]; 2] = [b"*", b"any"];

/// The key of a name, with a slash behind it: a name of n octets has a key of at most n.
pub(crate) struct Key {
    octets: [u8; 256],
    start: u8,
}

impl Key {
    /// That of the root.
    pub(crate) const ROOT: Key = Key { octets: [SLASH; 256], start: 0 };

    /// The key of a name in lower case; `None` if it can be that of no record.
    pub(crate) fn of(name: NameRef<'_>) -> Option<Key> {
        let mut octets = [SLASH; 256];
        let mut start = octets.len();
        for label in name.labels() {
            if label.contains(&SLASH) {
                return None;
            }
            // Behind it stands the slash that was there before.
            let end = start.checked_sub(1)?;
            start = end.checked_sub(label.len())?;
            octets[start..end].copy_from_slice(label);
        }
        // A name has at least one octet beside its labels, and so the key of the longest begins at 1.
        let start = if start == octets.len() { 0 } else { start };
        Some(Key { octets, start: u8::try_from(start).ok()? })
    }

    /// Without a slash behind it.
    pub(crate) fn whole(&self) -> &[u8] {
        self.prefix().split_last().map_or(&[], |(_, whole)| whole)
    }

    /// With its slash; empty for the root.
    pub(crate) fn prefix(&self) -> &[u8] {
        match self.start {
            0 => &[],
            start => &self.octets[usize::from(start)..],
        }
    }
}

/// Where the segments of a question's key begin that are to be compared one by one: with the first wildcard among those
/// behind the first `fixed`. `None` without one.
pub(crate) fn wildcards_at(prefix: &[u8], fixed: usize) -> Option<usize> {
    segments(prefix)
        .skip(fixed)
        .find(|segment| WILDCARDS.contains(&&prefix[segment.clone()]))
        .map(|segment| segment.start)
}

/// Whether a key is like a pattern, both from some common place on: it may go on behind it.
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

/// The places of the segments of a key, each of which ends with a slash or with the key.
fn segments(key: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    core::iter::from_fn(move || {
        let rest = key.get(start..).filter(|rest| !rest.is_empty())?;
        let segment = start..start + until_slash(rest);
        start = segment.end + 1;
        Some(segment)
    })
}

/// Octets before the first slash.
fn until_slash(key: &[u8]) -> usize {
    key.iter().position(|&octet| octet == SLASH).unwrap_or(key.len())
}

/// How deep a key is.
pub(crate) fn depth(key: &[u8]) -> usize {
    key.iter().filter(|&&octet| octet == SLASH).count()
}

/// The name of a key, without so many labels of its left, if that leaves any; `None` if it is none. Empty segments mean
/// nothing, and a dot in a segment separates labels as elsewhere.
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
    let segments = key.rsplit(|&octet| octet == SLASH).filter(|segment| !segment.is_empty());
    segments.flat_map(|segment| segment.split(|&octet| octet == b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(name: &str) -> Option<String> {
        let name = Name::from_text(name).unwrap();
        Key::of(name.as_ref()).map(|key| String::from_utf8(key.prefix().to_vec()).unwrap())
    }

    #[test]
    fn names_have_keys() {
        for (name, key) in [(".", ""), ("org", "org/"), ("x.Example.org", "org/Example/x/"), (r"a\.b.org", "org/a.b/")]
        {
            assert_eq!(prefix(name).as_deref(), Some(key));
        }
        assert_eq!(prefix("a/b.org"), None);
        let longest = [&*"a".repeat(63), &"b".repeat(63), &"c".repeat(63), &"d".repeat(61)].join(".");
        assert_eq!(prefix(&longest).map(|key| key.len()), Some(254));
    }

    #[test]
    fn keys_have_names() {
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
    fn wildcards_stand_for_one_label() {
        // A question's key, how many of its segments are fixed, where its pattern begins.
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
