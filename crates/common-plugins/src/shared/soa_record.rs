//! SOA records of zones that are generated from a cluster (RFC 1035 §3.3.13), and the TTL that those of other zones
//! give to denials.

use engine::{Query, Response};
use wire::{Class, HEADER_LEN, Owner, Section, Type};

/// Timers in seconds, chosen so that a secondary server works with them.
const REFRESH: u32 = 7200;
const RETRY: u32 = 1800;
const EXPIRE: u32 = 86_400;

/// Default labels of the name server and the mailbox below a zone, in wire format.
pub const NAMES: (&[u8], &[u8]) = (b"\x02ns\x03dns", b"\x0ahostmaster");

/// Returns serial, refresh, retry, expire and minimum.
pub fn numbers(serial: u32, minimum: u32) -> [u32; 5] {
    [serial, REFRESH, RETRY, EXPIRE, minimum]
}

/// Returns the TTL and the numbers of kube-dns's SOA record: a TTL of one hour in the answer section, one minute in a
/// negative response.
pub const fn fields_of_kube_dns(section: Section, serial: u32) -> (u32, [u32; 5]) {
    const DENIAL_TTL: u32 = 60;
    let ttl = if matches!(section, Section::Answer) { 3600 } else { DENIAL_TTL };
    (ttl, [serial, 28_800, 7200, 604_800, DENIAL_TTL])
}

/// Appends the SOA record of the queried zone. Its owner has the case of the query.
pub fn push(
    section: Section,
    (server, mailbox): (&[u8], &[u8]),
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

/// Returns the TTL in seconds of a negative answer (RFC 2308 §5): the lower of the SOA record's TTL and its minimum
/// field.
pub fn negative_ttl(response: &Response) -> Option<u32> {
    let soa = response.message.section(Section::Authority).find(|mark| mark.rtype == Type::SOA)?;
    let data = response.message.bytes_at(soa.rdata_range());
    let minimum = u32::from_be_bytes(*data.last_chunk::<4>()?);
    Some(response.message.ttl(soa).min(minimum))
}
