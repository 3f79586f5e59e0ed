//! How long the signatures in a signed zone file are good: what the one over its SOA record says, which stands near its
//! beginning.

use std::path::Path;

use engine::setup::Files;
use wire::{NameRef, Type};
use zone::text;

use super::wrap;
use crate::signing::{Key, Life};

/// Lines in which that signature is looked for.
const LINES_MAX: usize = 100;
/// Signatures older than this are made anew, in seconds.
const OLD: u32 = 6 * 86_400;
/// And those that end so soon.
const SOON: u32 = 7 * 86_400;

/// From when to when signatures are good, and of which keys they are.
pub(super) struct Validity {
    life: Life,
    tags: Vec<u16>,
}

impl Validity {
    /// That of signatures that have just been made.
    pub(super) fn of(life: Life, keys: &[Key]) -> Validity {
        Validity { life, tags: keys.iter().map(|key| key.tag).collect() }
    }

    /// That of a file, or why there is none.
    pub(super) fn load(files: &dyn Files, path: &Path) -> Result<Validity, String> {
        let octets = files.read(path).map_err(|error| format!("open {}: {error}", path.display()))?;
        let mut validity: Option<Validity> = None;
        for line in octets.split(|octet| *octet == b'\n').take(LINES_MAX) {
            let line = String::from_utf8_lossy(line);
            let Some((life, tag)) = text::record(&line, NameRef::ROOT, 0).ok().and_then(|record| of_soa(&record))
            else {
                continue;
            };
            validity.get_or_insert(Validity { life, tags: Vec::new() }).tags.push(tag);
        }
        validity.ok_or_else(|| format!("{} has no signature of a SOA record", path.display()))
    }

    /// Why signatures must be made anew now, by the keys with these tags; `None` if they need not.
    pub(super) fn reason(&self, now: u64, tags: &[u16]) -> Option<String> {
        // Differences wrap like the numbers (RFC 4034 §3.1.5); what is negative was in the future.
        let age = wrap(now).wrapping_sub(self.life.inception).cast_signed();
        let left = self.life.expiration.wrapping_sub(wrap(now)).cast_signed();
        if age < 0 {
            return Some("its signatures are of the future".to_owned());
        }
        if left < SOON.cast_signed() {
            return Some(format!("its signatures end in {} days", left / 86_400));
        }
        if age > OLD.cast_signed() {
            return Some(format!("its signatures are {} days old", age / 86_400));
        }
        let is_same = tags.len() == self.tags.len() && tags.iter().all(|tag| self.tags.contains(tag));
        (!is_same).then(|| "it is signed with other keys".to_owned())
    }
}

/// When a signature over a SOA record begins and ends, and the tag of its key (RFC 4034 §3.1).
fn of_soa(record: &text::Record) -> Option<(Life, u16)> {
    let data = Some(&record.rdata).filter(|_| record.rtype == Type::RRSIG)?;
    let covered = u16::from_be_bytes(*data.first_chunk()?);
    let number = |at: usize| data.get(at..)?.first_chunk().map(|octets| u32::from_be_bytes(*octets));
    let tag = u16::from_be_bytes(*data.get(16..)?.first_chunk()?);
    let life = Life { expiration: number(8)?, inception: number(12)? };
    (covered == Type::SOA.0).then_some((life, tag))
}
