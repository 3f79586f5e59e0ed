//! Validity of the signatures in a signed zone file. The signature over the SOA record is representative of all, and is
//! near the start of the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::setup::Files;
use wire::{NameRef, Type};
use zone::text;

use super::wrap;
use crate::shared::signing::{Key, ValidityPeriod};
use common_plugins::shared::open_error::{self, OpenError};

/// Maximum number of lines to search for that signature.
const LINES_MAX: usize = 100;
/// Age in seconds after which signatures are renewed.
const OLD: u32 = 6 * 86_400;
/// Remaining time in seconds below which signatures are renewed.
const SOON: u32 = 7 * 86_400;

/// Validity period of signatures, and the tags of their keys.
pub(super) struct Validity {
    period: ValidityPeriod,
    tags: Vec<u16>,
}

impl Validity {
    /// Validity of new signatures.
    pub(super) fn of(period: ValidityPeriod, keys: &[Arc<Key>]) -> Validity {
        Validity { period, tags: keys.iter().map(|key| key.tag).collect() }
    }

    /// Reads the validity from a signed zone file. The error is a reason to sign the zone.
    pub(super) fn load(files: &dyn Files, path: &Path) -> Result<Validity, UnsignedError> {
        let bytes = open_error::read(files, path).map_err(UnsignedError::Open)?;
        let mut validity: Option<Validity> = None;
        for line in bytes.split(|byte| *byte == b'\n').take(LINES_MAX) {
            let line = String::from_utf8_lossy(line);
            let Some((period, tag)) = text::record(&line, NameRef::ROOT, 0).ok().and_then(|record| of_soa(&record))
            else {
                continue;
            };
            validity.get_or_insert(Validity { period, tags: Vec::new() }).tags.push(tag);
        }
        validity.ok_or_else(|| UnsignedError::NoSignature(path.to_owned()))
    }

    /// Reason to renew the signatures with the keys of these tags; `None` if they are still good.
    pub(super) fn reason(&self, now: u64, tags: &[u16]) -> Option<String> {
        // Serial number arithmetic (RFC 4034 §3.1.5). A negative age means that the inception is in the future.
        let age = wrap(now).wrapping_sub(self.period.inception).cast_signed();
        let left = self.period.expiration.wrapping_sub(wrap(now)).cast_signed();
        if age < 0 {
            return Some("its signatures are not valid yet".to_owned());
        }
        if left < SOON.cast_signed() {
            return Some(format!("its signatures expire in {} days", left / 86_400));
        }
        if age > OLD.cast_signed() {
            return Some(format!("its signatures are {} days old", age / 86_400));
        }
        let is_same = tags.len() == self.tags.len() && tags.iter().all(|tag| self.tags.contains(tag));
        (!is_same).then(|| "it is signed with other keys".to_owned())
    }
}

/// Reason why a signed zone file has no known validity.
#[derive(Debug, thiserror::Error)]
pub(super) enum UnsignedError {
    /// The file cannot be read. It does not exist before the first signing.
    #[error("{0}")]
    Open(#[source] OpenError),
    /// The file has no signature over its SOA record.
    #[error("{} has no signature over its SOA record", .0.display())]
    NoSignature(PathBuf),
}

/// Validity period and key tag of a signature over a SOA record (RFC 4034 §3.1).
fn of_soa(record: &text::Record) -> Option<(ValidityPeriod, u16)> {
    let data = Some(&record.rdata).filter(|_| record.rtype == Type::RRSIG)?;
    let covered = u16::from_be_bytes(*data.first_chunk()?);
    let number = |at: usize| data.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    let tag = u16::from_be_bytes(*data.get(16..)?.first_chunk()?);
    let period = ValidityPeriod { expiration: number(8)?, inception: number(12)? };
    (covered == Type::SOA.0).then_some((period, tag))
}
