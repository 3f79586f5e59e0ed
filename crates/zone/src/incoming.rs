//! AXFR responses (RFC 5936 §2.2): the zone's SOA record, all other records, and the SOA record again.

use core::fmt;

use wire::{Message, Name, NameError, NameRef, Rcode, Record, Section, Type};

use crate::text::expand;
use crate::{Builder, Soa, Zone, ZoneError};

/// Error of a zone transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// The data is not a valid DNS message.
    Message(String),
    /// The server returned an error code.
    Refused(Rcode),
    /// The first record is not the zone's SOA record.
    NoSoa,
    /// The response has a newer serial but no differences (RFC 1995 §2).
    NoDifferences,
    /// The differences do not match the local version, or contradict each other.
    Differences,
    /// The response exceeds the limit on differences.
    ManyDifferences,
    /// A record has RDATA that is not valid for its type.
    Record(Type, NameError),
    /// The records do not form a valid zone.
    Invalid(ZoneError),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TransferError::Message(error) => write!(f, "invalid DNS message: {error}"),
            TransferError::Refused(rcode) => write!(f, "the primary answered {rcode}"),
            TransferError::NoDifferences => f.write_str("the primary sent a newer serial but no differences"),
            TransferError::Differences => f.write_str("the differences do not match the local version of the zone"),
            TransferError::ManyDifferences => f.write_str("too many differences for an incremental transfer"),
            TransferError::NoSoa => f.write_str("the transfer does not start with the SOA record of the zone"),
            TransferError::Record(rtype, error) => write!(f, "invalid {rtype} record: {error}"),
            TransferError::Invalid(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TransferError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            TransferError::Record(_, error) => Some(error),
            TransferError::Invalid(error) => Some(error),
            _ => None,
        }
    }
}

/// Partially received zone.
pub struct Incoming {
    builder: Builder,
    serial: Option<u32>,
    rdata: Vec<u8>,
    done: bool,
}

impl Incoming {
    /// Starts a transfer of the zone `origin`.
    #[must_use]
    pub fn new(origin: NameRef<'_>) -> Incoming {
        Incoming { builder: Builder::new(origin), serial: None, rdata: Vec::new(), done: false }
    }

    /// Processes the next message. Returns true if more messages are expected.
    ///
    /// # Errors
    /// The message is not part of a zone.
    pub fn receive(&mut self, message: &[u8]) -> Result<bool, TransferError> {
        let message = Message::parse(message).map_err(|error| TransferError::Message(error.to_string()))?;
        checked(&message)?;
        for record in message.records().filter(|record| record.section() == Section::Answer) {
            if self.done {
                break;
            }
            self.take_record(&record)?;
        }
        // Fails early: after a message without records, the caller would wait forever for the rest.
        if self.serial.is_none() { Err(TransferError::NoSoa) } else { Ok(!self.done) }
    }

    /// Adds a record. Returns true if it was the last one.
    pub(crate) fn take_record(&mut self, record: &Record<'_>) -> Result<bool, TransferError> {
        let rtype = record.rtype();
        let invalid = |error| TransferError::Record(rtype, error);
        let owner: Name = record.owner().map_err(invalid)?;
        self.rdata.clear();
        expand(record, &mut self.rdata).map_err(invalid)?;
        if rtype == Type::SOA && owner.as_ref() == self.builder.origin() {
            self.done = self.serial.is_some();
            self.serial = self.serial.or(Soa::read(&self.rdata).map(|soa| soa.serial));
        }
        if self.serial.is_none() {
            return Err(TransferError::NoSoa);
        }
        if !self.done {
            let fixed = (rtype, record.class(), record.ttl());
            self.builder.add(owner.as_ref(), fixed, &self.rdata).map_err(TransferError::Invalid)?;
        }
        Ok(self.done)
    }

    /// Returns the number of records ignored because their owner is outside the zone or their class is not IN.
    #[must_use]
    pub const fn strangers(&self) -> usize {
        self.builder.strangers()
    }

    /// Returns the builder with all records received so far.
    pub(crate) fn into_builder(self) -> Builder {
        self.builder
    }

    /// Builds the zone. Call this after [`Incoming::receive`] has returned false.
    ///
    /// # Errors
    /// The records do not form a valid zone.
    pub fn finish(self) -> Result<Zone, TransferError> {
        self.builder.finish().map_err(TransferError::Invalid)
    }
}

/// Checks the response code.
///
/// # Errors
/// The code is not NOERROR.
pub(crate) fn checked(message: &Message<'_>) -> Result<(), TransferError> {
    match message.header().flags.rcode() {
        Rcode::NOERROR => Ok(()),
        rcode => Err(TransferError::Refused(rcode)),
    }
}

/// Decodes the zone's SOA record. Returns `None` for any other record.
///
/// # Errors
/// The record is malformed.
pub(crate) fn soa_of(record: &Record<'_>, origin: NameRef<'_>) -> Result<Option<Soa>, TransferError> {
    let invalid = |error| TransferError::Record(Type::SOA, error);
    if record.rtype() != Type::SOA || record.owner().map_err(invalid)?.as_ref() != origin {
        return Ok(None);
    }
    let mut rdata = Vec::new();
    expand(record, &mut rdata).map_err(invalid)?;
    Ok(Soa::read(&rdata))
}
