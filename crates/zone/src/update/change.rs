//! Difference between two versions of a zone, as wire records. Journals keep it, and incremental transfers send it.

use std::collections::VecDeque;
use std::sync::Arc;

use wire::{Class, MessageBuf, Name, NameRef, Owner, Section, Type};

use crate::text::name_at_start;

/// Length in bytes of the type, class, TTL and length of RDATA in a record.
pub(super) const RECORD_FIXED_LEN: usize = 10;

/// Difference between two consecutive versions of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Serial of the older version.
    pub from: u32,
    /// Serial of the newer version.
    pub to: u32,
    /// Removed records as uncompressed wire records, the SOA record first.
    pub(super) removed: Box<[u8]>,
    /// Added records, the SOA record first.
    pub(super) added: Box<[u8]>,
}

impl Change {
    /// Length of all records in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.removed.len() + self.added.len()
    }

    /// Returns true if the change has no records. The changes of a [`super::Draft`] have at least the SOA records.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of removed and added records, SOA records included.
    #[must_use]
    pub fn records(&self) -> usize {
        WireRecords(&self.removed).count() + WireRecords(&self.added).count()
    }
}

/// Record without a class, which is IN.
#[derive(Clone, Copy, Debug)]
pub(super) struct WireRecord<'a> {
    pub(super) owner: NameRef<'a>,
    pub(super) rtype: Type,
    pub(super) ttl: u32,
    pub(super) rdata: &'a [u8],
}

impl WireRecord<'_> {
    /// Length of the record in bytes.
    pub(super) const fn len(&self) -> usize {
        self.owner.len() + RECORD_FIXED_LEN + self.rdata.len()
    }
}

/// Uncompressed records one after another. The iterator ends at the first malformed one.
#[derive(Clone, Copy)]
pub(super) struct WireRecords<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for WireRecords<'a> {
    type Item = WireRecord<'a>;

    fn next(&mut self) -> Option<WireRecord<'a>> {
        let owner = name_at_start(self.0)?;
        let (fixed, rest) = self.0.get(owner.len()..)?.split_first_chunk::<RECORD_FIXED_LEN>()?;
        let word = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let (rdata, rest) = rest.split_at_checked(usize::from(word(8)))?;
        let ttl = u32::from(word(4)) << 16 | u32::from(word(6));
        self.0 = rest;
        Some(WireRecord { owner, rtype: Type(word(0)), ttl, rdata })
    }
}

/// Appends a record of class IN in wire format.
pub(super) fn push_record(records: &mut Vec<u8>, owner: &[u8], (rtype, ttl): (Type, u32), rdata: &[u8]) {
    let length = u16::try_from(rdata.len());
    debug_assert!(length.is_ok(), "RDATA has at most 65,535 bytes");
    let length = length.unwrap_or(u16::MAX);
    records.extend_from_slice(owner);
    records.extend(rtype.0.to_be_bytes());
    records.extend(Class::IN.0.to_be_bytes());
    records.extend(ttl.to_be_bytes());
    records.extend(length.to_be_bytes());
    records.extend_from_slice(&rdata[..usize::from(length)]);
}

/// Writes changes as the records of an incremental transfer between the two outer SOA records (RFC 1995 §4): removed
/// and added records version by version.
pub struct ChangeWriter {
    changes: VecDeque<Arc<Change>>,
    /// Offset of the next record in the first change, over the removed and then the added records.
    at: usize,
}

impl ChangeWriter {
    /// Starts with the oldest change.
    #[must_use]
    pub fn new(changes: VecDeque<Arc<Change>>) -> ChangeWriter {
        ChangeWriter { changes, at: 0 }
    }

    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.iter().map(|change| change.records()).sum()
    }

    /// Returns true if no records are left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Appends the next records until the message is full or no records are left. Returns true if no records are left.
    pub fn write(&mut self, message: &mut MessageBuf) -> bool {
        while let Some(change) = self.changes.front() {
            debug_assert!(self.at <= change.len(), "a writer is within its change");
            let removed = change.removed.len();
            let rest = if self.at < removed { &change.removed[self.at..] } else { &change.added[self.at - removed..] };
            let mut records = WireRecords(rest);
            let Some(record) = records.next() else {
                let is_end = rest.is_empty() && self.at == change.len();
                debug_assert!(is_end, "a change is written up to its end");
                (self.changes, self.at) = (core::mem::take(&mut self.changes).split_off(1), 0);
                continue;
            };
            let owner: Name = record.owner.to_name();
            let fixed = (record.rtype, Class::IN, record.ttl);
            if message.push_data(Section::Answer, Owner::Name(owner.as_ref()), fixed, record.rdata).is_none() {
                return false;
            }
            self.at += rest.len() - records.0.len();
        }
        true
    }
}
