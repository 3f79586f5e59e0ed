//! What kind of answer a response is: what *log* and *cache* go by.

use engine::{Query, Response};
use wire::{Opcode, Rcode, Section, Type};

/// The kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// There is an answer, or an empty message without an error.
    NoError,
    /// The name exists without a record of the type.
    NoData,
    /// The name does not exist.
    NameError,
    /// The answer is elsewhere.
    Delegation,
    /// The server failed.
    ServerError,
    /// Any other error, contradictions, and silence.
    OtherError,
    /// Not a question and an answer: a transfer, a notification.
    Meta,
}

impl Kind {
    /// As CoreDNS writes it.
    pub(crate) const fn label(self) -> &'static str {
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

    /// The kind of a response.
    pub(crate) fn of(query: &Query, response: &Response) -> Kind {
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
