//! UPDATE messages (RFC 2136 §2): the answer section holds prerequisites, the authority section updates.

use core::error::Error;
use core::fmt;

use wire::{Class, Message, Name, Record, Section, Type};

use crate::text::expand;

/// Record of an UPDATE message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateRecord {
    /// Owner name.
    pub owner: Name,
    /// Type; ANY for all types of a name.
    pub rtype: Type,
    /// Class, which selects the operation.
    pub class: Class,
    /// TTL field as sent.
    pub raw_ttl: u32,
    /// RDATA. Names in it are uncompressed, unless the class is ANY, which allows no RDATA.
    pub rdata: Box<[u8]>,
}

impl UpdateRecord {
    /// TTL in seconds. A value with the top bit set counts as 0 (RFC 2181 §8).
    #[must_use]
    pub fn ttl(&self) -> u32 {
        if self.raw_ttl > i32::MAX.unsigned_abs() { 0 } else { self.raw_ttl }
    }

    fn read(record: &Record<'_>) -> Result<UpdateRecord, MalformedUpdate> {
        let (rtype, class) = (record.rtype(), record.class());
        let mut rdata = Vec::new();
        // Deletions have no RDATA, or that of the record to delete (RFC 2136 §2.5).
        if class == Class::IN || class == Class::NONE && !record.rdata().is_empty() {
            expand(record, &mut rdata).map_err(|_| MalformedUpdate(rtype))?;
        } else {
            rdata.extend_from_slice(record.rdata());
        }
        let owner = record.owner().map_err(|_| MalformedUpdate(rtype))?;
        Ok(UpdateRecord { owner, rtype, class, raw_ttl: record.raw_ttl(), rdata: rdata.into_boxed_slice() })
    }
}

/// Prerequisites and updates of an UPDATE message, in the order of the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateRequest {
    /// Prerequisite section.
    pub prerequisites: Vec<UpdateRecord>,
    /// Update section.
    pub updates: Vec<UpdateRecord>,
}

impl UpdateRequest {
    /// Parses both sections. The caller has checked the number of records, which the header has.
    ///
    /// # Errors
    /// A record is malformed. The response is FORMERR.
    pub fn read(message: &Message<'_>) -> Result<UpdateRequest, MalformedUpdate> {
        let mut request = UpdateRequest::default();
        for record in message.records() {
            match record.section() {
                Section::Answer => request.prerequisites.push(UpdateRecord::read(&record)?),
                Section::Authority => request.updates.push(UpdateRecord::read(&record)?),
                Section::Additional => break,
            }
        }
        Ok(request)
    }
}

/// Record of an UPDATE message whose RDATA is not valid for its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedUpdate(pub Type);

impl fmt::Display for MalformedUpdate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a record of type {} is malformed", self.0)
    }
}

impl Error for MalformedUpdate {}
