//! `resolver.arpa`, the names that ask a resolver about itself (RFC 9462).
//!
//! What another resolver says about itself is wrong here, so these names are never forwarded. They are served locally,
//! and nothing exists there unless *ddr* announces it (RFC 9462 §6.4).

use engine::Response;
use wire::{Class, NameRef, Owner, Section, Type};

/// The zone.
pub const RESOLVER_ARPA: &[u8] = b"\x08resolver\x04arpa\0";
/// TTL and SOA fields in seconds, as in RFC 6303 §3.
const TTL: u32 = 10_800;
const SERIAL_AND_TIMERS: [u32; 5] = [1, 3600, 1200, 604_800, TTL];
const MAILBOX: &[u8] = b"\x06nobody\x07invalid\0";

/// Returns true for the zone and all names below it. The name is in lower case.
pub fn contains(key: NameRef<'_>) -> bool {
    key.as_bytes().ends_with(RESOLVER_ARPA) && key.is_within(zone())
}

fn zone() -> NameRef<'static> {
    NameRef::from_bytes(RESOLVER_ARPA).unwrap_or(NameRef::ROOT)
}

/// Answers with NODATA.
pub fn deny(response: &mut Response) {
    response.set_local();
    let soa = (Type::SOA, Class::IN, TTL);
    response.message.push(Section::Authority, Owner::Name(zone()), soa, |rdata| {
        rdata.name(zone());
        rdata.bytes(MAILBOX);
        SERIAL_AND_TIMERS.into_iter().for_each(|number| rdata.u32(number));
    });
}
