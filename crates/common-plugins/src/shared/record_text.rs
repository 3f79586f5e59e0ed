//! Records in presentation format, for people.

use wire::{Name, Record};
use zone::text::{Data, expand};

/// Returns a record in presentation format: owner, TTL, class, type and data. `None` if a name in it is malformed.
#[must_use]
pub fn record_text(owner: &Name, record: &Record<'_>) -> Option<String> {
    let mut rdata = Vec::new();
    expand(record, &mut rdata).ok()?;
    let (rtype, class, ttl) = (record.rtype(), record.class(), record.ttl());
    Some(format!("{owner} {ttl} {class} {rtype} {}", Data { rtype, rdata: &rdata }))
}
