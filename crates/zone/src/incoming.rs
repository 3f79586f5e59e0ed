//! AXFR responses (RFC 5936 §2.2): the zone's SOA record, all other records, and the SOA record again.

use wire::{Name, NameRef, Record};

use crate::store::serial_is_newer;
use crate::text::expand;
use crate::transfer::{self, TransferSoa};
use crate::{Builder, Limits, TransferError, Zone};

/// Partially received zone.
pub struct Incoming {
    builder: Builder,
    /// First SOA record of the transfer.
    first: Option<TransferSoa>,
    /// Serial of the local version, if there is one.
    ours: Option<u32>,
    rdata: Vec<u8>,
    done: bool,
}

impl Incoming {
    /// Starts a transfer of the zone `origin`.
    #[must_use]
    pub fn new(origin: NameRef<'_>) -> Incoming {
        Incoming { builder: Builder::new(origin), first: None, ours: None, rdata: Vec::new(), done: false }
    }

    /// Requires a version that is newer than the serial `ours`.
    #[must_use]
    pub fn newer_than(self, ours: Option<u32>) -> Incoming {
        Incoming { ours, ..self }
    }

    /// Sets the limits of the zone.
    #[must_use]
    pub fn within(self, limits: Limits) -> Incoming {
        Incoming { builder: self.builder.within(limits), ..self }
    }

    /// Processes the next message. Returns true if more messages are expected.
    ///
    /// # Errors
    /// The message is not part of a zone.
    pub fn receive(&mut self, message: &[u8]) -> Result<bool, TransferError> {
        let message = transfer::read(message, self.builder.origin())?;
        for record in transfer::answers(&message) {
            self.add_record(&record)?;
        }
        // Fails early: after a message without records, the caller would wait forever for the rest.
        if self.first.is_none() { Err(TransferError::NoSoa) } else { Ok(!self.done) }
    }

    /// Adds a record. Returns true if it was the last one.
    pub(crate) fn add_record(&mut self, record: &Record<'_>) -> Result<bool, TransferError> {
        if self.done {
            return Err(TransferError::AfterEnd);
        }
        let soa = TransferSoa::of(record, self.builder.origin())?;
        match (&self.first, soa) {
            (None, None) => return Err(TransferError::NoSoa),
            (None, Some(soa)) => self.begin(soa)?,
            (Some(first), Some(last)) => {
                last.must_end(first)?;
                self.done = true;
                return Ok(true);
            }
            (Some(_), None) => {}
        }
        let rtype = record.rtype();
        let invalid = |error| TransferError::Record(rtype, error);
        let owner: Name = record.owner().map_err(invalid)?;
        self.rdata.clear();
        expand(record, &mut self.rdata).map_err(invalid)?;
        let fixed = (rtype, record.class(), record.ttl());
        self.builder.add(owner.as_ref(), fixed, &self.rdata).map_err(TransferError::Invalid)?;
        Ok(false)
    }

    fn begin(&mut self, soa: TransferSoa) -> Result<(), TransferError> {
        let theirs = soa.soa.serial;
        self.first = Some(soa);
        match self.ours {
            Some(ours) if !serial_is_newer(ours, theirs) => Err(TransferError::NotNewer { ours, theirs }),
            _ => Ok(()),
        }
    }

    /// Returns the number of records ignored because their owner is outside the zone.
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
    /// The records do not form a valid zone, or the zone has no name servers.
    pub fn finish(self) -> Result<Zone, TransferError> {
        finish(self.builder)
    }
}

/// Builds a transferred zone.
///
/// # Errors
/// The records do not form a valid zone, or the zone has no name servers. A zone file may lack them, as in CoreDNS, but
/// a transfer without them has lost records.
pub(crate) fn finish(builder: Builder) -> Result<Zone, TransferError> {
    let zone = builder.finish().map_err(TransferError::Invalid)?;
    if zone.has_name_servers() { Ok(zone) } else { Err(TransferError::NoNs) }
}
