//! Selection of the records of a name that a query asks for.

use core::net::IpAddr;

use skydns::{Record, RecordFilter, RecordRole};
use wire::{Section, Type};

/// Type of the selected records, and the section for them.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// A, AAAA or TXT; `None` for A and AAAA.
    pub(super) qtype: Option<Type>,
    pub(super) section: Section,
}

impl Wanted {
    /// Returns the kind of the records that have this type.
    pub(super) fn filter(self) -> RecordFilter {
        if self.qtype == Some(Type::TXT) { RecordFilter::Texts } else { RecordFilter::Hosts }
    }

    /// Returns true if the record has this type.
    pub(super) fn wants(self, record: &Record) -> bool {
        match record.role(self.filter()) {
            RecordRole::Address(address) => self.wants_address(address),
            RecordRole::Text(_) => true,
            RecordRole::Alias(_) | RecordRole::Nothing => false,
        }
    }

    /// Returns true if the record of an address has this type.
    pub(super) fn wants_address(self, address: IpAddr) -> bool {
        match self.qtype {
            None => true,
            Some(Type::A) => address.is_ipv4(),
            Some(Type::AAAA) => address.is_ipv6(),
            Some(_) => false,
        }
    }
}
