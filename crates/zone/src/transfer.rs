//! Errors of zone transfers, and the checks that every message of a response must pass.

use core::fmt;

use wire::{Class, Message, Name, NameError, NameRef, Rcode, Record, Section, Type};

use crate::text::{expand, lowercase_names};
use crate::{Soa, ZoneError};

/// Error of a zone transfer. The caller keeps the version of the zone that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// The data is not a valid DNS message.
    Message(String),
    /// The message is not a response to a query.
    NotAResponse,
    /// The message answers a question about another zone, type or class.
    Question,
    /// The server returned an error code.
    Refused(Rcode),
    /// The first record is not the zone's SOA record.
    NoSoa,
    /// An SOA record has another owner than the zone.
    OtherSoa(Box<Name>),
    /// A record has another class than IN.
    Class(Type, Class),
    /// The last SOA record has another serial than the first one (RFC 5936 §2.2).
    LastSerial {
        /// Serial of the first SOA record.
        first: u32,
        /// Serial of the last SOA record.
        last: u32,
    },
    /// The last SOA record has the serial of the first one, but other data.
    LastSoa,
    /// Records follow the last SOA record.
    AfterEnd,
    /// The zone has no NS record at its apex.
    NoNs,
    /// The zone is not newer than the local version (RFC 1982 §3.2).
    NotNewer {
        /// Serial of the local version.
        ours: u32,
        /// Serial of the transferred version.
        theirs: u32,
    },
    /// The response has a newer serial but no differences (RFC 1995 §2).
    NoDifferences,
    /// The differences start at another version than the local one (RFC 1995 §4).
    Start {
        /// Serial of the local version.
        ours: u32,
        /// Serial at which the differences start.
        theirs: u32,
    },
    /// A difference sequence does not lead from one version to the next, up to the newest one.
    Gap {
        /// Serial of the last SOA record that fits.
        from: u32,
        /// Serial of the SOA record that does not fit.
        to: u32,
    },
    /// The differences remove a record that does not exist, or add one that does.
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
            TransferError::NotAResponse => f.write_str("the message is not a response to a query"),
            TransferError::Question => f.write_str("the message answers another question"),
            TransferError::Refused(rcode) => write!(f, "the primary answered {rcode}"),
            TransferError::NoSoa => f.write_str("the transfer does not start with the SOA record of the zone"),
            TransferError::OtherSoa(name) => write!(f, "the transfer has an SOA record of another zone, {name}"),
            TransferError::Class(rtype, class) => {
                write!(f, "the transfer has a {rtype} record of class {class}, not IN")
            }
            TransferError::LastSerial { first, last } => {
                write!(f, "the transfer starts with SOA serial {first} but ends with {last}")
            }
            TransferError::LastSoa => f.write_str("the last SOA record of the transfer differs from the first one"),
            TransferError::AfterEnd => f.write_str("records follow the last SOA record of the transfer"),
            TransferError::NoNs => f.write_str("the transferred zone has no NS record at its apex"),
            TransferError::NotNewer { ours, theirs } => {
                write!(f, "the transferred zone has SOA serial {theirs}, which is not newer than {ours}")
            }
            TransferError::NoDifferences => f.write_str("the primary sent a newer serial but no differences"),
            TransferError::Start { ours, theirs } => {
                write!(f, "the differences start at SOA serial {theirs}, but the zone has {ours}")
            }
            TransferError::Gap { from, to } => {
                write!(f, "the differences do not follow each other: SOA serial {to} after {from}")
            }
            TransferError::Differences => f.write_str("the differences do not match the local version of the zone"),
            TransferError::ManyDifferences => f.write_str("too many differences for an incremental transfer"),
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

/// Parses a message of a response and checks its header and question. A message may have no question (RFC 5936 §2.2.1).
///
/// # Errors
/// The message is not a successful response for the zone.
pub(crate) fn read<'m>(message: &'m [u8], zone: NameRef<'_>) -> Result<Message<'m>, TransferError> {
    let message = Message::parse(message).map_err(|error| TransferError::Message(error.to_string()))?;
    let header = message.header();
    if !header.flags.is_response() || header.flags.opcode() != wire::Opcode::QUERY {
        return Err(TransferError::NotAResponse);
    }
    if header.flags.rcode() != Rcode::NOERROR {
        return Err(TransferError::Refused(header.flags.rcode()));
    }
    let is_ours = |(name, rtype, class): (Name, Type, Class)| {
        name.as_ref().same(zone) && rtype.is_transfer() && class == Class::IN
    };
    let fits = if header.questions == 0 { true } else { message.question().is_some_and(is_ours) };
    if fits { Ok(message) } else { Err(TransferError::Question) }
}

/// Returns the records of the answer section, which has the zone.
pub(crate) fn answers<'m>(message: &Message<'m>) -> impl Iterator<Item = Record<'m>> + use<'m> {
    message.records().filter(|record| record.section() == Section::Answer)
}

/// SOA record of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TransferSoa {
    pub(crate) soa: Soa,
    /// RDATA with names in lower case.
    rdata: Vec<u8>,
}

impl TransferSoa {
    /// Decodes the zone's SOA record. Returns `None` for any other record.
    ///
    /// # Errors
    /// The record is malformed, belongs to another zone, or has another class.
    pub(crate) fn of(record: &Record<'_>, zone: NameRef<'_>) -> Result<Option<TransferSoa>, TransferError> {
        if record.class() != Class::IN {
            return Err(TransferError::Class(record.rtype(), record.class()));
        }
        if record.rtype() != Type::SOA {
            return Ok(None);
        }
        let invalid = |error| TransferError::Record(Type::SOA, error);
        let owner = record.owner().map_err(invalid)?;
        if !owner.as_ref().same(zone) {
            return Err(TransferError::OtherSoa(Box::new(owner)));
        }
        let mut rdata = Vec::new();
        expand(record, &mut rdata).map_err(invalid)?;
        lowercase_names(Type::SOA, &mut rdata);
        Ok(Soa::read(&rdata).map(|soa| TransferSoa { soa, rdata }))
    }

    /// Checks that this SOA record, the last one of a transfer, is the same as the first one. Case does not matter.
    pub(crate) fn must_end(&self, first: &TransferSoa) -> Result<(), TransferError> {
        let (first_serial, last) = (first.soa.serial, self.soa.serial);
        match (first_serial == last, first.rdata == self.rdata) {
            (false, _) => Err(TransferError::LastSerial { first: first_serial, last }),
            (true, false) => Err(TransferError::LastSoa),
            (true, true) => Ok(()),
        }
    }
}
