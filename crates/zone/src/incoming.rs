//! A zone that comes in messages (AXFR, RFC 5936 §2.2): its SOA record, all others, its SOA record again.

use core::fmt;

use wire::{Message, Name, NameError, NameRef, Rcode, Record, Section, Type};

use crate::text::expand;
use crate::{Builder, Soa, Unfit, Zone};

/// Why messages are no zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// One is no message.
    Message(String),
    /// The other side says no.
    Refused(Rcode),
    /// The first record is not the zone's SOA record.
    NoSoa,
    /// A newer version is named, and nothing of it comes (RFC 1995 §2).
    NoDifferences,
    /// Differences do not fit the version that is there, or each other.
    Differences,
    /// There are too many differences.
    ManyDifferences,
    /// A record in it is not what its type has.
    Record(Type, NameError),
    /// The records are no zone.
    Unfit(Unfit),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Broken::Message(error) => write!(f, "what came is no message: {error}"),
            Broken::Refused(rcode) => write!(f, "the other side says {rcode}"),
            Broken::NoDifferences => f.write_str("the other side has no differences"),
            Broken::Differences => f.write_str("the differences do not fit the version that is there"),
            Broken::ManyDifferences => f.write_str("there are too many differences"),
            Broken::NoSoa => f.write_str("what came does not begin with the SOA record of the zone"),
            Broken::Record(rtype, error) => write!(f, "a {rtype} record is broken: {error}"),
            Broken::Unfit(unfit) => unfit.fmt(f),
        }
    }
}

/// A zone of which a part has come.
pub struct Incoming {
    builder: Builder,
    serial: Option<u32>,
    rdata: Vec<u8>,
    done: bool,
}

impl Incoming {
    /// A zone of this name, of which nothing has come.
    #[must_use]
    pub fn new(origin: NameRef<'_>) -> Incoming {
        Incoming { builder: Builder::new(origin), serial: None, rdata: Vec::new(), done: false }
    }

    /// Takes the next message; says whether more is to come.
    ///
    /// # Errors
    /// If it is no part of a zone.
    pub fn take(&mut self, message: &[u8]) -> Result<bool, Broken> {
        let message = Message::parse(message).map_err(|error| Broken::Message(error.to_string()))?;
        checked(&message)?;
        for record in message.records().filter(|record| record.section() == Section::Answer) {
            if self.done {
                break;
            }
            self.take_record(&record)?;
        }
        // A message without a record would otherwise keep us waiting for ever.
        if self.serial.is_none() { Err(Broken::NoSoa) } else { Ok(!self.done) }
    }

    /// Takes a record; says whether it was the last one.
    pub(crate) fn take_record(&mut self, record: &Record<'_>) -> Result<bool, Broken> {
        let rtype = record.rtype();
        let broken = |error| Broken::Record(rtype, error);
        let owner: Name = record.owner().map_err(broken)?;
        self.rdata.clear();
        expand(record, &mut self.rdata).map_err(broken)?;
        if rtype == Type::SOA && owner.as_ref() == self.builder.origin() {
            self.done = self.serial.is_some();
            self.serial = self.serial.or(Soa::read(&self.rdata).map(|soa| soa.serial));
        }
        if self.serial.is_none() {
            return Err(Broken::NoSoa);
        }
        if !self.done {
            let fixed = (rtype, record.class(), record.ttl());
            self.builder.add(owner.as_ref(), fixed, &self.rdata).map_err(Broken::Unfit)?;
        }
        Ok(self.done)
    }

    /// How many of the records were left out, as they are not in the zone, or not of class IN.
    #[must_use]
    pub const fn strangers(&self) -> usize {
        self.builder.strangers()
    }

    /// What has come, to be added to.
    pub(crate) fn into_builder(self) -> Builder {
        self.builder
    }

    /// The zone, once all of it has come.
    ///
    /// # Errors
    /// If it is none.
    pub fn finish(self) -> Result<Zone, Broken> {
        self.builder.finish().map_err(Broken::Unfit)
    }
}

/// # Errors
/// If the other side says no.
pub(crate) fn checked(message: &Message<'_>) -> Result<(), Broken> {
    match message.header().flags.rcode() {
        Rcode::NOERROR => Ok(()),
        rcode => Err(Broken::Refused(rcode)),
    }
}

/// What an SOA record of the zone says; `None` for other records.
///
/// # Errors
/// If it is broken.
pub(crate) fn soa_of(record: &Record<'_>, origin: NameRef<'_>) -> Result<Option<Soa>, Broken> {
    let broken = |error| Broken::Record(Type::SOA, error);
    if record.rtype() != Type::SOA || record.owner().map_err(broken)?.as_ref() != origin {
        return Ok(None);
    }
    let mut rdata = Vec::new();
    expand(record, &mut rdata).map_err(broken)?;
    Ok(Soa::read(&rdata))
}
