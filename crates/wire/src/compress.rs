//! Name compression (RFC 1035 §4.1.4): table of the name suffixes already written to a message, with their offsets.
//!
//! The table has a fixed size, and a write compares each label's suffix only with the entries of that table. No message
//! can therefore make encoding slow (the vulnerability class of CVE-2024-8508). Pointers are used only for
//! byte-identical suffixes, so the case of every name is preserved.

use crate::name::LABEL_MAX;
use crate::{Name, NameRef};

/// Maximum number of suffixes in the table. A large SRV answer needs about 30. Beyond the maximum, names are written in
/// full.
const SUFFIXES_MAX: usize = 64;
/// Highest offset that a compression pointer can hold: pointers reach the first 16 KiB of a message.
pub(crate) const OFFSET_MAX: usize = 0x3fff;
/// Maximum number of labels in a name.
const LABELS_MAX: usize = 127;

#[derive(Clone, Copy, Default)]
struct Suffix {
    hash: u32,
    at: u16,
}

/// Table of the suffixes written to a message.
pub(crate) struct Compressor {
    suffixes: [Suffix; SUFFIXES_MAX],
    filled: usize,
}

impl Compressor {
    pub(crate) const fn new() -> Compressor {
        Compressor { suffixes: [Suffix { hash: 0, at: 0 }; SUFFIXES_MAX], filled: 0 }
    }

    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Adds the suffixes of a name that is already at offset `at` in uncompressed form.
    pub(crate) fn remember_name(&mut self, name: NameRef<'_>, at: usize) {
        debug_assert!(self.is_empty(), "the name in the question comes first");
        let hashed = Hashed::new(name);
        for (start, hash) in hashed.suffixes() {
            self.remember(hash, at + start);
        }
    }

    /// Drops the entries at or after offset `end`, where the message is about to be cut.
    pub(crate) fn cut(&mut self, end: usize) {
        // Entries are in ascending order of offset.
        while self.filled > 0 && usize::from(self.suffixes[self.filled - 1].at) >= end {
            self.filled -= 1;
        }
    }

    /// Appends `name` to `message` and adds its suffixes to the table. If `compress` is set and a suffix is already in
    /// the message, writes a pointer for that suffix.
    pub(crate) fn write(&mut self, message: &mut Vec<u8>, name: NameRef<'_>, compress: bool) {
        let bytes = name.as_bytes();
        let hashed = Hashed::new(name);
        let base = message.len();
        for (start, hash) in hashed.suffixes() {
            match self.find(message, hash, &bytes[start..]) {
                Some(at) if compress => {
                    message.extend_from_slice(&bytes[..start]);
                    message.extend_from_slice(&(0xc000 | at).to_be_bytes());
                    debug_assert!(is_name(message, base, name), "a name is read as it was written");
                    return;
                }
                Some(_) => {}
                None => self.remember(hash, base + start),
            }
        }
        message.extend_from_slice(bytes);
    }

    fn find(&self, message: &[u8], hash: u32, suffix: &[u8]) -> Option<u16> {
        let candidates = self.suffixes[..self.filled].iter().filter(|known| known.hash == hash);
        candidates.map(|known| known.at).find(|&at| stands_at(message, usize::from(at), suffix))
    }

    fn remember(&mut self, hash: u32, at: usize) {
        let Some(at) = u16::try_from(at).ok().filter(|at| usize::from(*at) <= OFFSET_MAX) else { return };
        debug_assert!(
            self.filled == 0 || self.suffixes[self.filled - 1].at < at,
            "suffixes are in ascending order of their offsets",
        );
        if let Some(slot) = self.suffixes.get_mut(self.filled) {
            *slot = Suffix { hash, at };
            self.filled += 1;
        }
    }
}

/// Returns true if the message has this name, in this case, at offset `at`.
fn is_name(message: &[u8], at: usize, name: NameRef<'_>) -> bool {
    Name::read(message, at).is_ok_and(|(read, end)| read.as_bytes() == name.as_bytes() && end == message.len())
}

/// Offset of each label of a name, with the FNV-1a hash of the suffix that starts there.
struct Hashed {
    starts: [u8; LABELS_MAX],
    hashes: [u32; LABELS_MAX],
    labels: usize,
}

impl Hashed {
    fn new(name: NameRef<'_>) -> Hashed {
        let bytes = name.as_bytes();
        let mut hashed = Hashed { starts: [0; LABELS_MAX], hashes: [0; LABELS_MAX], labels: 0 };
        let mut at = 0;
        while bytes[at] != 0 && hashed.labels < LABELS_MAX {
            hashed.starts[hashed.labels] = u8::try_from(at).unwrap_or_default();
            hashed.labels += 1;
            at += 1 + usize::from(bytes[at]);
        }
        debug_assert!(at + 1 == bytes.len(), "a name ends with the root");
        let mut hash = 0x811c_9dc5;
        for label in (0..hashed.labels).rev() {
            let start = usize::from(hashed.starts[label]);
            let end = start + 1 + usize::from(bytes[start]);
            let fold = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(16_777_619);
            hash = bytes[start..end].iter().fold(hash, fold);
            hashed.hashes[label] = hash;
        }
        hashed
    }

    fn suffixes(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.starts.iter().zip(&self.hashes).take(self.labels).map(|(start, hash)| (usize::from(*start), *hash))
    }
}

/// Returns true if the name at offset `at` is byte-identical to `suffix`. The loop ends because pointers must lead
/// backwards.
fn stands_at(message: &[u8], mut at: usize, mut suffix: &[u8]) -> bool {
    loop {
        match (message.get(at), suffix.first()) {
            (Some(0), Some(0)) => return true,
            (Some(&high @ 0xc0..), _) => {
                let Some(&low) = message.get(at + 1) else { return false };
                let target = usize::from(high & 0x3f) << 8 | usize::from(low);
                if target >= at {
                    return false;
                }
                at = target;
            }
            (Some(&length), Some(&wanted)) if length == wanted && usize::from(length) <= LABEL_MAX => {
                let label = 1 + usize::from(length);
                if message.get(at..at + label) != suffix.get(..label) {
                    return false;
                }
                at += label;
                suffix = &suffix[label..];
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;

    fn write(compressor: &mut Compressor, message: &mut Vec<u8>, text: &str) -> usize {
        let start = message.len();
        compressor.write(message, Name::from_text(text).unwrap().as_ref(), true);
        message.len() - start
    }

    #[test]
    fn writes_each_suffix_once() {
        let (mut compressor, mut message) = (Compressor::new(), vec![0; 12]);
        assert_eq!(write(&mut compressor, &mut message, "a.x.test."), 10);
        assert_eq!(write(&mut compressor, &mut message, "a.x.test."), 2);
        assert_eq!(write(&mut compressor, &mut message, "b.x.test."), 4);
        assert_eq!(write(&mut compressor, &mut message, "c.b.x.test."), 4);
        // Another case is another byte string: the response keeps the case of the query.
        assert_eq!(write(&mut compressor, &mut message, "X.test."), 4);
        assert_eq!(write(&mut compressor, &mut message, "."), 1);
        let (read, _) = Name::read(&message, 12 + 10 + 2 + 4).unwrap();
        assert_eq!(read.to_string(), "c.b.x.test.");
    }

    #[test]
    fn bounds_the_number_of_suffixes() {
        let (mut compressor, mut message) = (Compressor::new(), vec![0; 12]);
        for number in 0..1000 {
            write(&mut compressor, &mut message, &format!("n{number}.test."));
        }
        assert_eq!(compressor.filled, SUFFIXES_MAX);
        compressor.cut(30);
        assert_eq!(compressor.filled, 4);
    }

    #[test]
    fn follows_pointers_beyond_the_first_256_bytes() {
        let (mut compressor, mut message) = (Compressor::new(), vec![0; 300]);
        for (text, length) in [("a.x.test.", 10), ("b.x.test.", 4), ("c.b.x.test.", 4), ("c.b.x.test.", 2)] {
            assert_eq!(write(&mut compressor, &mut message, text), length, "{text}");
        }
        assert_eq!(Name::read(&message, message.len() - 2).unwrap().0.to_string(), "c.b.x.test.");
    }
}
