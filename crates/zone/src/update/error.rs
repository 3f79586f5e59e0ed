//! Reasons for refusing an update.

use core::error::Error;
use core::fmt;

use wire::{Name, Rcode, Type};

use crate::ZoneError;

/// Reason why an update was not applied. The zone is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateError {
    /// A record is malformed: a TTL, RDATA, class or type that its section does not allow.
    Form(&'static str),
    /// The owner of a record is outside the zone.
    NotZone(Box<Name>),
    /// The type cannot be kept correct under updates ([`super::is_unsupported`]).
    NotImplemented(Type),
    /// Prerequisite: the name must have records.
    NoName(Box<Name>),
    /// Prerequisite: the name must have no records.
    NameExists(Box<Name>),
    /// Prerequisite: the RRset must exist, or have these records.
    NoSet(Box<Name>, Type),
    /// Prerequisite: the RRset must not exist.
    SetExists(Box<Name>, Type),
    /// No rule allows the change of this name and type.
    NotAllowed(Box<Name>, Type),
    /// The zone would have more records than this.
    ManyRecords(usize),
    /// The zone would have more bytes than this, as uncompressed records.
    ManyBytes(usize),
    /// An RRset would have more records than this.
    LargeSet(usize),
    /// The zone cannot be built.
    Zone(ZoneError),
}

impl UpdateError {
    /// Returns the response code.
    #[must_use]
    pub const fn rcode(&self) -> Rcode {
        match self {
            UpdateError::Form(_) => Rcode::FORMERR,
            UpdateError::NotZone(_) => Rcode::NOTZONE,
            UpdateError::NotImplemented(_) => Rcode::NOTIMP,
            UpdateError::NoName(_) => Rcode::NXDOMAIN,
            UpdateError::NameExists(_) => Rcode::YXDOMAIN,
            UpdateError::NoSet(..) => Rcode::NXRRSET,
            UpdateError::SetExists(..) => Rcode::YXRRSET,
            UpdateError::NotAllowed(..)
            | UpdateError::ManyRecords(_)
            | UpdateError::ManyBytes(_)
            | UpdateError::LargeSet(_) => Rcode::REFUSED,
            UpdateError::Zone(_) => Rcode::SERVFAIL,
        }
    }
}

impl fmt::Display for UpdateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UpdateError::Form(what) => f.write_str(what),
            UpdateError::NotZone(name) => write!(f, "{name} is outside the zone"),
            UpdateError::NotImplemented(rtype) => write!(f, "records of type {rtype} cannot be updated"),
            UpdateError::NoName(name) => write!(f, "prerequisite: {name} has no records"),
            UpdateError::NameExists(name) => write!(f, "prerequisite: {name} has records"),
            UpdateError::NoSet(name, rtype) => write!(f, "prerequisite: {name} {rtype} does not exist or differs"),
            UpdateError::SetExists(name, rtype) => write!(f, "prerequisite: {name} {rtype} exists"),
            UpdateError::NotAllowed(name, rtype) => write!(f, "no allow rule of the key covers {name} {rtype}"),
            UpdateError::ManyRecords(most) => write!(f, "zone exceeds max_records ({most})"),
            UpdateError::ManyBytes(most) => write!(f, "zone exceeds max_bytes ({most})"),
            UpdateError::LargeSet(most) => write!(f, "an RRset exceeds {most} records"),
            UpdateError::Zone(error) => error.fmt(f),
        }
    }
}

impl Error for UpdateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if let UpdateError::Zone(error) = self { Some(error) } else { None }
    }
}
