//! Names outside of the cluster: what upstreams answer, and what a client may get.
//!
//! An address says for which name and when an upstream has answered, so that each answer to a client shows its age.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use host::Instant;
use testkit::Parsed;
use wire::{Class, Flags, Header, MessageBuf, Name, NameRef, Opt, Owner, Rcode, Section, Type};

use crate::objects::outside;

/// TTL in seconds of the names that have addresses.
const TTLS: [u32; 4] = [5, 30, 60, 300];
/// Number of the name that exists without addresses.
const EMPTY: u64 = 5;
/// TTL in seconds of denials.
const DENIAL_TTL: u32 = 10;
/// Address in answers that no client must get.
const FORGED: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 66);
/// Size of a datagram in bytes that an upstream sends.
const UDP_SIZE: u16 = 1232;

/// Returns the number of a name.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    (0..crate::objects::OUTSIDE).find(|number| outside(*number).eq_ignore_ascii_case(name))
}

/// Kind of a response of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    True,
    Truncated,
    ServFail,
    /// Addresses that are wrong, in a message that must not be accepted.
    Forged,
}

/// Returns the response of an upstream to a query; `None` for what is no query.
pub(crate) fn respond(query: &[u8], now: Instant, kind: Reply) -> Option<Vec<u8>> {
    let parsed = Parsed::read(query).ok()?;
    let (name, qtype, qclass) = parsed.question.clone()?;
    let number = number_of(&name.to_string());
    let rcode = match (kind, number) {
        (Reply::ServFail, _) => Rcode::SERVFAIL,
        (_, Some(number)) if number == EMPTY || number < TTLS.len() as u64 => Rcode::NOERROR,
        (_, Some(_)) => Rcode::NXDOMAIN,
        (_, None) => Rcode::NOERROR,
    };
    let flags = Flags::default().with_response(true).with_recursion_available(true);
    let flags = flags.with_recursion_desired(parsed.header.flags.recursion_desired());
    let flags = flags.with_checking_disabled(parsed.header.flags.checking_disabled()).with_rcode(rcode);
    let header = Header { id: parsed.header.id, flags, ..Header::default() };
    let mut message = MessageBuf::new();
    message.start(header, Some((name.as_ref(), qtype, qclass)));
    if kind != Reply::Truncated && rcode != Rcode::SERVFAIL {
        records(&mut message, number, qtype, now, kind);
    }
    message.header.flags = flags.with_truncated(kind == Reply::Truncated);
    let opt = parsed.opt.map(|asked| Opt { udp_size: UDP_SIZE, extended_rcode: 0, ..asked });
    Some(message.finish(opt, core::iter::empty()).to_vec())
}

fn records(message: &mut MessageBuf, number: Option<u64>, qtype: Type, now: Instant, kind: Reply) {
    let seconds = seconds(now);
    let ttl = number.and_then(|number| TTLS.get(usize::try_from(number).ok()?)).copied();
    let byte = u8::try_from(number.unwrap_or_default()).unwrap_or_default();
    let [high, low] = seconds.to_be_bytes();
    let v4 = if kind == Reply::Forged { FORGED } else { Ipv4Addr::new(100, byte, high, low) };
    let v6 = Ipv6Addr::new(0x2001, 0xdb8, u16::from(byte), seconds, 0, 0, 0, u16::from(kind == Reply::Forged));
    match (ttl, qtype) {
        (Some(ttl), Type::A) => {
            let fixed = (Type::A, Class::IN, ttl);
            message.push(Section::Answer, Owner::Question, fixed, |data| data.bytes(&v4.octets()));
        }
        (Some(ttl), Type::AAAA) => {
            let fixed = (Type::AAAA, Class::IN, ttl);
            message.push(Section::Answer, Owner::Question, fixed, |data| data.bytes(&v6.octets()));
        }
        _ => {
            let zone = Name::from_text("outside.invalid.").unwrap_or_default();
            message.push(Section::Authority, Owner::Name(zone.as_ref()), (Type::SOA, Class::IN, DENIAL_TTL), |data| {
                (0..2).for_each(|_| data.plain_name(NameRef::ROOT));
                [1, 60, 60, 60, DENIAL_TTL].into_iter().for_each(|number| data.u32(number));
            });
        }
    }
}

fn seconds(now: Instant) -> u16 {
    u16::try_from(now.since(Instant::START).as_secs()).expect("a simulation of hours")
}

/// Limits of the answers for names outside of the cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Time for which expired answers are served.
    pub(crate) stale: Duration,
    /// True if a failure may be answered.
    pub(crate) may_fail: bool,
    /// True if the query may be refused, because others wait for upstreams.
    pub(crate) may_be_refused: bool,
    /// True if the answer may be truncated, so that the client asks again over TCP.
    pub(crate) may_be_truncated: bool,
    /// Longest time of an exchange, which is part of the age of its answer.
    pub(crate) exchange: Duration,
}

/// Checks a response for the name with this number, for A or AAAA.
///
/// # Errors
/// Returns a description of the violation.
pub(crate) fn check(response: &Parsed, number: u64, now: Instant, limits: Limits) -> Result<(), String> {
    let rcode = response.rcode();
    if rcode == Rcode::SERVFAIL {
        return if limits.may_fail { Ok(()) } else { Err("SERVFAIL without a fault".to_owned()) };
    }
    if rcode == Rcode::REFUSED && limits.may_be_refused {
        return Ok(());
    }
    if response.header.flags.truncated() {
        return if limits.may_be_truncated { Ok(()) } else { Err("truncated over a stream".to_owned()) };
    }
    let has_addresses = number < TTLS.len() as u64;
    let wanted = if has_addresses || number == EMPTY { Rcode::NOERROR } else { Rcode::NXDOMAIN };
    let addresses = response.section(Section::Answer).iter();
    let mut addresses = addresses.filter(|record| matches!(record.rtype, Type::A | Type::AAAA)).peekable();
    if rcode != wanted || has_addresses != addresses.peek().is_some() {
        return Err(format!("{rcode} with {} addresses", addresses.count()));
    }
    addresses.try_for_each(|record| check_address(record, number, now, limits))
}

fn check_address(record: &testkit::Record, number: u64, now: Instant, limits: Limits) -> Result<(), String> {
    let (of, at, is_forged) = match record.rdata[..] {
        [100, of, high, low] => (u64::from(of), u16::from_be_bytes([high, low]), false),
        [0x20, 1, 0x0d, 0xb8, 0, of, high, low, .., forged] => {
            (u64::from(of), u16::from_be_bytes([high, low]), forged != 0)
        }
        _ => (0, 0, true),
    };
    if is_forged || of != number {
        return Err(format!("a forged answer: {record}"));
    }
    let ttl = TTLS.get(usize::try_from(number).unwrap_or_default()).copied().unwrap_or_default();
    if record.ttl > ttl {
        return Err(format!("a TTL above that of the upstream: {record}"));
    }
    let answered = Instant::START + Duration::from_secs(at.into());
    let age_max = Duration::from_secs(u64::from(ttl) + 1) + limits.stale + limits.exchange;
    let age = now.since(answered);
    if age > age_max { Err(format!("an answer of {} s ago: {record}", age.as_secs())) } else { Ok(()) }
}
