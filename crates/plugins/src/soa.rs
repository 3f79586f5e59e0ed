//! The SOA of a zone that no file has: for the plugins that make zones of what they know.

use engine::{Query, Response};
use wire::{Class, HEADER_LEN, Owner, Section, Type};

/// The times of such an SOA (RFC 1035 §3.3.13), in seconds: a secondary server could live with them.
const REFRESH: u32 = 7200;
const RETRY: u32 = 1800;
const EXPIRE: u32 = 86_400;

/// The name server and the mailbox below a zone, as labels in wire form.
pub(crate) type Below<'a> = (&'a [u8], &'a [u8]);

/// What most of these zones call them.
pub(crate) const USUAL: Below<'static> = (b"\x02ns\x03dns", b"\x0ahostmaster");

/// The numbers of an SOA: serial, refresh, retry, expire and minimum (RFC 1035 §3.3.13).
pub(crate) fn numbers(serial: u32, minimum: u32) -> [u32; 5] {
    [serial, REFRESH, RETRY, EXPIRE, minimum]
}

/// Appends the SOA of the zone that was asked in, in the case of the question.
pub(crate) fn push(
    section: Section,
    (server, mailbox): Below<'_>,
    (ttl, numbers): (u32, [u32; 5]),
    query: &Query,
    response: &mut Response,
) {
    let zone = HEADER_LEN + query.zone_at();
    response.message.push(section, Owner::At(zone), (Type::SOA, Class::IN, ttl), |rdata| {
        rdata.labels_to(server, zone);
        rdata.labels_to(mailbox, zone);
        numbers.into_iter().for_each(|number| rdata.u32(number));
    });
}
