//! What a question wants of the records of a name.

use core::net::IpAddr;

use skydns::{Meaning, Record};
use wire::{Section, Type};

/// What is made of the records, and where it goes.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// A, AAAA or TXT; `None` is all addresses.
    pub(super) qtype: Option<Type>,
    pub(super) section: Section,
}

impl Wanted {
    /// Whether a record is of such a type.
    pub(super) fn wants(self, record: &Record) -> bool {
        match record.meaning() {
            Meaning::Address(address) => self.wants_address(address),
            Meaning::Text(_) => self.qtype == Some(Type::TXT),
            Meaning::Alias(_) | Meaning::Nothing => false,
        }
    }

    /// Whether an address is.
    pub(super) fn wants_address(self, address: IpAddr) -> bool {
        match self.qtype {
            None => true,
            Some(Type::A) => address.is_ipv4(),
            Some(Type::AAAA) => address.is_ipv6(),
            Some(_) => false,
        }
    }
}
