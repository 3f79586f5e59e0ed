//! Classification of responses, used by *log* and *cache*.

use engine::{Query, Response};
use wire::{Opcode, Rcode, Section, Type};

/// Class of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The answer section has records, or the message is NOERROR with neither SOA nor NS in the authority section.
    NoError,
    /// The name exists but has no records of the queried type (NODATA).
    NoData,
    /// The name does not exist (NXDOMAIN).
    NameError,
    /// A referral to the name servers of a subzone.
    Delegation,
    /// SERVFAIL or NOTIMP.
    ServerError,
    /// Any other response code, an NXDOMAIN with an answer, or no response at all.
    OtherError,
    /// A zone transfer or a NOTIFY.
    Meta,
}

impl Kind {
    /// Returns the name of the class as CoreDNS writes it.
    pub const fn label(self) -> &'static str {
        match self {
            Kind::NoError => "NOERROR",
            Kind::NoData => "NODATA",
            Kind::NameError => "NXDOMAIN",
            Kind::Delegation => "DELEGATION",
            Kind::ServerError => "SERVERERROR",
            Kind::OtherError => "OTHERERROR",
            Kind::Meta => "META",
        }
    }

    /// Classifies a response.
    pub fn of(query: &Query, response: &Response) -> Kind {
        if query.qtype.is_transfer() || query.flags().opcode() == Opcode::NOTIFY {
            return Kind::Meta;
        }
        if response.is_dropped() {
            return Kind::OtherError;
        }
        let has = |section: Section, rtype: Type| response.message.section(section).any(|mark| mark.rtype == rtype);
        let answered = response.message.section(Section::Answer).next().is_some();
        match response.rcode() {
            Rcode::NOERROR if answered => Kind::NoError,
            Rcode::NOERROR if has(Section::Authority, Type::SOA) => Kind::NoData,
            Rcode::NOERROR if has(Section::Authority, Type::NS) => Kind::Delegation,
            Rcode::NOERROR => Kind::NoError,
            Rcode::NXDOMAIN if !answered => Kind::NameError,
            Rcode::SERVFAIL | Rcode::NOTIMP => Kind::ServerError,
            _ => Kind::OtherError,
        }
    }
}
