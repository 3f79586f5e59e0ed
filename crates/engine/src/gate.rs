//! What is let in: the same for every transport, before any plugin (the class of CVE-2026-86003 is one gate too few).

use wire::{Header, Malformed, Opcode, Rcode, Request};

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is a query, and has been read.
    Query,
    /// It gets this code and nothing else.
    Reject(Header, Rcode),
    /// It gets no answer: too short to have an id, or itself an answer (which would make two servers talk for ever).
    Silence,
}

/// Reads a packet into `request`, or says what becomes of it.
pub fn admit(packet: &[u8], request: &mut Request) -> Admission {
    let Some(header) = Header::read(packet).filter(|header| !header.flags.is_response()) else {
        return Admission::Silence;
    };
    if !matches!(header.flags.opcode(), Opcode::QUERY | Opcode::NOTIFY) {
        return Admission::Reject(header, Rcode::NOTIMP);
    }
    match request.read(header, packet) {
        Ok(()) => Admission::Query,
        Err(Malformed::Short | Malformed::Counts | Malformed::Name(_) | Malformed::Opt) => {
            Admission::Reject(header, Rcode::FORMERR)
        }
    }
}
