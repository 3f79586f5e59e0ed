//! Checks of the zone that a dynamic zone starts with.

use core::error::Error;
use core::fmt;

use wire::{Name, Type};

use super::types::is_unsupported;
use crate::Zone;

/// Reason why a zone cannot be updated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidSeed {
    /// The serial is 0, which clients may read as "no serial" (RFC 2136 §7.11).
    SerialZero,
    /// A name has a CNAME record and other records.
    Alias(Box<Name>),
    /// A record has a type that updates make wrong.
    Unsupported(Type),
}

impl fmt::Display for InvalidSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvalidSeed::SerialZero => f.write_str("zone contains an SOA with serial zero"),
            InvalidSeed::Alias(name) => write!(f, "zone contains CNAME data conflict at {name}"),
            InvalidSeed::Unsupported(rtype) => write!(f, "zone contains unsupported RR type {rtype}"),
        }
    }
}

impl Error for InvalidSeed {}

/// Checks that updates can keep a zone correct.
///
/// # Errors
/// The first reason against it.
pub fn check_seed(zone: &Zone) -> Result<(), InvalidSeed> {
    if zone.soa().is_none_or(|soa| soa.serial == 0) {
        return Err(InvalidSeed::SerialZero);
    }
    for owner in zone.in_order() {
        if let Some(set) = owner.sets().find(|set| is_unsupported(set.rtype)) {
            return Err(InvalidSeed::Unsupported(set.rtype));
        }
        let records: usize = owner.sets().map(|set| set.data().count()).sum();
        if records > 1 && owner.sets().any(|set| set.rtype == Type::CNAME) {
            return Err(InvalidSeed::Alias(Box::new(owner.name)));
        }
    }
    Ok(())
}
