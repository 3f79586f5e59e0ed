//! The gate: parses and filters incoming packets, before routing and before any plugin.
//!
//! Every transport passes its packets through [`admit`], so no transport can skip a check (the class of
//! CVE-2026-86003).

use wire::{Header, Malformed, Opcode, Rcode, Request};

/// Decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// A query. `request` contains the parsed message.
    Query,
    /// Answered with this response code only.
    Reject(Header, Rcode),
    /// Not answered. The packet is too short to contain an ID, or it is a response itself. Answering responses could
    /// make two servers send each other messages forever.
    Silence,
}

/// Parses a packet into `request` and decides whether to process, reject or ignore it. UPDATE messages are processed if
/// the listener takes them.
pub fn admit(packet: &[u8], request: &mut Request, takes_updates: bool) -> Admission {
    let Some(header) = Header::read(packet).filter(|header| !header.flags.is_response()) else {
        return Admission::Silence;
    };
    let is_taken = match header.flags.opcode() {
        Opcode::QUERY | Opcode::NOTIFY => true,
        Opcode::UPDATE => takes_updates,
        _ => false,
    };
    if !is_taken {
        return Admission::Reject(header, Rcode::NOTIMP);
    }
    match request.read(header, packet) {
        Ok(()) => Admission::Query,
        Err(Malformed::Short | Malformed::Counts | Malformed::Name(_) | Malformed::Opt) => {
            Admission::Reject(header, Rcode::FORMERR)
        }
    }
}
