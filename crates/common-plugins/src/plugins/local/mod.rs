//! Answers for `localhost` and the reserved reverse zones (RFC 6303, RFC 6761 §6.3).

use core::net::{Ipv4Addr, Ipv6Addr};

use config::options::{Manifest, Property, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Verdict, Worker};
use metrics::{Counter, Kind, Metric};
use wire::{Class, NameRef, Owner, Rcode, Section, Type};

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "local",
    "answer queries for localhost and reserved reverse zones",
    || Config { prefix: true },
    build,
)
.first_line_wins()
.properties(&[Property {
    usage: Usage("localhost_prefix on|off"),
    default: "on",
    doc: "Answer names whose first label is `localhost` like `localhost` itself. Search paths of clients create such \
          names.",
    set: |config, args| {
        config.prefix = args.choice(&[("on", true), ("off", false)])?;
        Ok(())
    },
}])
.metrics(&METRICS);

static REQUESTS: Metric = Metric {
    name: "coredns_local_localhost_requests_total",
    help: "Counter of special localhost subdomain requests.",
    kind: Kind::Counter,
    labels: &[],
};
static METRICS: [&Metric; 1] = [&REQUESTS];

/// TTL in seconds: a week, as in RFC 6303 §3.
const TTL: u32 = 604_800;
const LOCALHOST: &[u8] = b"\x09localhost\0";
/// Only owner of a PTR record, `1.0.0.127.in-addr.arpa.`.
const LOOPBACK: &[u8] = b"\x011\x010\x010\x03127\x07in-addr\x04arpa\0";
/// Zones that are served completely.
const ZONES: [&[u8]; 4] =
    [LOCALHOST, b"\x010\x07in-addr\x04arpa\0", b"\x03127\x07in-addr\x04arpa\0", b"\x03255\x07in-addr\x04arpa\0"];

pub struct Config {
    prefix: bool,
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let requests = setup.registry.counter(&REQUESTS, &[]);
    let local = configs.into_iter().next().map(|config| Local { prefix: config.prefix, requests });
    Ok(local.map(|local| Part::new(local, Hooks::DOWN)))
}

struct Local {
    prefix: bool,
    requests: Counter,
}

impl Plugin for Local {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let name = query.key();
        if let Some(zone) = ZONES.into_iter().find(|zone| is_within(name, zone)) {
            response.set_local();
            if zone == LOCALHOST && name.as_bytes() != zone {
                worker.counters.count(self.requests);
            }
            answer_in(zone, query, response);
            return Verdict::Done;
        }
        if self.prefix && name.labels().next() == Some(b"localhost") {
            response.set_local();
            worker.counters.count(self.requests);
            answer_localhost(query, response);
            return Verdict::Done;
        }
        Verdict::Pass
    }
}

/// Returns true if a name is a zone or below it. Both are lowercase.
fn is_within(name: NameRef<'_>, zone: &[u8]) -> bool {
    name.as_bytes().ends_with(zone) && NameRef::from_bytes(zone).is_ok_and(|zone| name.is_within(zone))
}

/// Answers a query in one of the zones.
fn answer_in(zone: &[u8], query: &Query, response: &mut Response) {
    let name = query.key().as_bytes();
    let localhost = || NameRef::from_bytes(LOCALHOST).unwrap_or(NameRef::ROOT);
    match query.qtype {
        Type::A | Type::AAAA if zone == LOCALHOST => answer_localhost(query, response),
        Type::NS if name == zone => {
            response.message.push_name(Section::Answer, Owner::Question, (Type::NS, TTL), localhost());
        }
        Type::SOA if name == zone => push_soa(Section::Answer, zone.len(), query, response),
        Type::PTR if name == LOOPBACK => {
            response.message.push_name(Section::Answer, Owner::Question, (Type::PTR, TTL), localhost());
        }
        _ => {
            let exists = zone == LOCALHOST || name == zone || name == LOOPBACK;
            response.set_rcode(if exists { Rcode::NOERROR } else { Rcode::NXDOMAIN });
            push_soa(Section::Authority, zone.len(), query, response);
        }
    }
}

/// Answers with the loopback addresses.
fn answer_localhost(query: &Query, response: &mut Response) {
    match query.qtype {
        Type::A => response.message.push_a(Section::Answer, Owner::Question, TTL, Ipv4Addr::LOCALHOST),
        Type::AAAA => response.message.push_aaaa(Section::Answer, Owner::Question, TTL, Ipv6Addr::LOCALHOST),
        _ => {
            push_soa(Section::Authority, query.name().len(), query, response);
            None
        }
    };
}

/// Adds the SOA record of the zone in the last `zone_len` bytes of the name, in the letters of the question.
fn push_soa(section: Section, zone_len: usize, query: &Query, response: &mut Response) {
    let name = query.name().as_bytes();
    let zone = &name[name.len().saturating_sub(zone_len)..];
    let (Ok(zone), Ok(localhost)) = (NameRef::from_bytes(zone), NameRef::from_bytes(LOCALHOST)) else { return };
    response.message.push(section, Owner::Name(zone), (Type::SOA, Class::IN, TTL), |rdata| {
        rdata.name(localhost);
        rdata.bytes(b"\x04root\x09localhost\0");
        for number in [1, 0, 0, 0, TTL] {
            rdata.u32(number);
        }
    });
}
