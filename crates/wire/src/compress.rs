//! Name compression (RFC 1035 §4.1.4): which names already stand in the message, and where.
//!
//! A fixed number of suffixes is remembered and each is looked at once per label, so that no message, however built,
//! makes encoding slow (the class of CVE-2024-8508). Case is kept: a pointer is used only where the octets agree.

use crate::NameRef;
use crate::name::LABEL_MAX;

/// Suffixes remembered: a large SRV answer writes some thirty; past the bound names are written in full.
const SUFFIXES_MAX: usize = 64;
/// Pointers reach the first 16 KiB of a message.
const OFFSET_MAX: usize = 0x3fff;
/// Labels in the longest name.
const LABELS_MAX: usize = 127;

#[derive(Clone, Copy, Default)]
struct Suffix {
    hash: u32,
    at: u16,
}

/// The suffixes that stand in a message.
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

    /// Remembers the suffixes of a name that stands in full at `at`.
    pub(crate) fn remember_name(&mut self, name: NameRef<'_>, at: usize) {
        let hashed = Hashed::new(name);
        for (start, hash) in hashed.suffixes() {
            self.remember(hash, at + start);
        }
    }

    /// Forgets what stood at or behind `end`, which is being cut off.
    pub(crate) fn cut(&mut self, end: usize) {
        // Suffixes are remembered in the order of their places.
        while self.filled > 0 && usize::from(self.suffixes[self.filled - 1].at) >= end {
            self.filled -= 1;
        }
    }

    /// Writes `name` at the end of `message`, as labels and a pointer where `compress`, and remembers its suffixes.
    pub(crate) fn write(&mut self, message: &mut Vec<u8>, name: NameRef<'_>, compress: bool) {
        let octets = name.octets();
        let hashed = Hashed::new(name);
        let base = message.len();
        for (start, hash) in hashed.suffixes() {
            match self.find(message, hash, &octets[start..]) {
                Some(at) if compress => {
                    message.extend_from_slice(&octets[..start]);
                    message.extend_from_slice(&(0xc000 | at).to_be_bytes());
                    return;
                }
                Some(_) => {}
                None => self.remember(hash, base + start),
            }
        }
        message.extend_from_slice(octets);
    }

    fn find(&self, message: &[u8], hash: u32, suffix: &[u8]) -> Option<u16> {
        let candidates = self.suffixes[..self.filled].iter().filter(|known| known.hash == hash);
        candidates.map(|known| known.at).find(|&at| stands_at(message, usize::from(at), suffix))
    }

    fn remember(&mut self, hash: u32, at: usize) {
        if let (Some(slot), true) = (self.suffixes.get_mut(self.filled), at <= OFFSET_MAX) {
            *slot = Suffix { hash, at: u16::try_from(at).unwrap_or_default() };
            self.filled += 1;
        }
    }
}

/// Where each label of a name starts, with a hash (FNV-1a) of the suffix that begins there.
struct Hashed {
    starts: [u8; LABELS_MAX],
    hashes: [u32; LABELS_MAX],
    labels: usize,
}

impl Hashed {
    fn new(name: NameRef<'_>) -> Hashed {
        let octets = name.octets();
        let mut hashed = Hashed { starts: [0; LABELS_MAX], hashes: [0; LABELS_MAX], labels: 0 };
        let mut at = 0;
        while octets[at] != 0 && hashed.labels < LABELS_MAX {
            hashed.starts[hashed.labels] = u8::try_from(at).unwrap_or_default();
            hashed.labels += 1;
            at += 1 + usize::from(octets[at]);
        }
        let mut hash = 0x811c_9dc5;
        for label in (0..hashed.labels).rev() {
            let start = usize::from(hashed.starts[label]);
            let end = start + 1 + usize::from(octets[start]);
            let fold = |hash: u32, octet: &u8| (hash ^ u32::from(*octet)).wrapping_mul(16_777_619);
            hash = octets[start..end].iter().fold(hash, fold);
            hashed.hashes[label] = hash;
        }
        hashed
    }

    fn suffixes(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.starts.iter().zip(&self.hashes).take(self.labels).map(|(start, hash)| (usize::from(*start), *hash))
    }
}

/// Whether `suffix`, octet for octet, is the name at `at`, which this builder wrote: its pointers lead backwards.
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
        // Another case is another text: the case asked is the case answered.
        assert_eq!(write(&mut compressor, &mut message, "X.test."), 4);
        assert_eq!(write(&mut compressor, &mut message, "."), 1);
        let (read, _) = Name::read(&message, 12 + 10 + 2 + 4).unwrap();
        assert_eq!(read.to_string(), "c.b.x.test.");
    }

    #[test]
    fn the_memory_is_bounded() {
        let (mut compressor, mut message) = (Compressor::new(), vec![0; 12]);
        for number in 0..1000 {
            write(&mut compressor, &mut message, &format!("n{number}.test."));
        }
        assert_eq!(compressor.filled, SUFFIXES_MAX);
        compressor.cut(30);
        assert_eq!(compressor.filled, 4);
    }
}
