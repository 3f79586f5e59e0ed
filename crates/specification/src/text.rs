//! Text form of the cases, with which any server can be tested.
//!
//! A block has a zone and its questions:
//!
//! ~~~ txt
//! zone
//! a CNAME b
//! ? a A: NOERROR aa: a CNAME b: soa
//! ~~~
//!
//! Names without a dot at their end are relative to the origin of the zone, which is `@`; give each zone an origin of
//! its own. Each zone also has an SOA record and the NS record `@ NS ns.invalid.`.
//!
//! A block of a cluster has a line for each namespace and each Service in place of the records, and absolute names:
//!
//! ~~~ txt
//! cluster
//! namespace n0
//! service s.n0 headless ports http/tcp/80 endpoints 10.0.0.5/ready/a
//! ~~~
//!
//! Its zones are `cluster.local.`, `in-addr.arpa.` and `ip6.arpa.`. The parts of a line of a question are:
//!
//! 1. QNAME and QTYPE.
//! 2. Response codes, one of which is right, and `aa`, `noaa` or nothing if both are right.
//! 3. Records that the answer section must have; after `?`, further ones that it may have, and after `!` too, of which
//!    it must have at least one; `...` if it may have any others. Records are separated by `;`.
//! 4. Authority section: `soa` for the SOA record of the zone, `referral` and NS records, `any` if nothing is said
//!    about it, or nothing for no record or the NS records of the zone. After `+`, records that the additional section
//!    must have.

use std::fmt::Write as _;

use crate::answer::{Answer, Authority};
use crate::cluster::{Cluster, Endpoint, Kind, Port, Service, State};
use crate::record::{Data, Record, is_within};
use crate::scope::{Block, Case, ORIGIN};
use crate::zone::Zone;

/// Returns the text of a block.
#[must_use]
pub fn block(block: &Block) -> String {
    let lines = block.cases.iter().map(case);
    zone(&block.zone) + &lines.collect::<String>()
}

/// Returns the lines of a zone.
#[must_use]
pub fn zone(zone: &Zone) -> String {
    let records = zone.records.iter().filter(|record| !is_given(record));
    let lines = records.map(|record| format!("{}\n", relative_record(record)));
    format!("zone\n{}", lines.collect::<String>())
}

/// Returns the lines of a cluster.
#[must_use]
pub fn cluster(cluster: &Cluster) -> String {
    let namespaces = cluster.namespaces.iter().map(|name| format!("namespace {name}\n"));
    let services = cluster.services.iter().map(service);
    format!("cluster\n{}", namespaces.chain(services).collect::<String>())
}

fn service(service: &Service) -> String {
    let kind = match &service.kind {
        Kind::ClusterIp(addresses) => {
            let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
            format!("cluster-ip {}", addresses.join(" "))
        }
        Kind::Headless => "headless".to_owned(),
        Kind::ExternalName(target) => format!("external-name {target}"),
    };
    let ports: String = service.ports.iter().map(port).collect();
    let endpoints: String = service.endpoints.iter().map(endpoint).collect();
    format!("service {}.{} {kind} ports{ports} endpoints{endpoints}\n", service.name, service.namespace)
}

fn port(Port { name, protocol, number }: &Port) -> String {
    format!(" {name}/{protocol}/{number}")
}

fn endpoint(Endpoint { address, hostname, state }: &Endpoint) -> String {
    let state = match state {
        State::Ready => "ready",
        State::Unknown => "unknown",
        State::NotReady => "not-ready",
        State::Terminating => "terminating",
    };
    format!(" {address}/{state}/{}", hostname.unwrap_or_default())
}

/// Returns true for the records that each zone has.
fn is_given(record: &Record) -> bool {
    record.owner == ORIGIN && matches!(record.data, Data::Soa | Data::Ns(_))
}

/// Returns the line of a case.
#[must_use]
pub fn case(case: &Case) -> String {
    let Case { question, answer, .. } = case;
    let rcodes: Vec<&str> = answer.rcodes.iter().map(|rcode| rcode.name()).collect();
    let flag = answer.authoritative.map_or("", |is_set| if is_set { " aa" } else { " noaa" });
    let mut text = format!("? {} {}: {}{flag}:", relative(&question.name), question.qtype, rcodes.join(" "));
    let mut parts = vec![records(&answer.required)];
    if !answer.permitted.is_empty() {
        parts.push(format!("{} {}", if answer.is_some { '!' } else { '?' }, records(&answer.permitted)));
    }
    parts.push(if answer.is_open { "...".to_owned() } else { String::new() });
    parts.retain(|part| !part.is_empty());
    let _ = write!(text, " {}: {}", parts.join(" "), authority(answer));
    format!("{}\n", text.trim_end())
}

fn authority(answer: &Answer) -> String {
    let mut text = match &answer.authority {
        Authority::Positive(_) => String::new(),
        Authority::Soa(_) => "soa".to_owned(),
        Authority::Referral(servers) => format!("referral {}", records(servers)),
        Authority::Open => "any".to_owned(),
    };
    if !answer.glue.is_empty() {
        let _ = write!(text, " + {}", records(&answer.glue));
    }
    text
}

/// Returns records on one line.
#[must_use]
pub fn records(all: &[Record]) -> String {
    let texts: Vec<String> = all.iter().map(relative_record).collect();
    texts.join("; ")
}

/// Returns a record with names relative to the origin.
fn relative_record(record: &Record) -> String {
    let text = record.to_string();
    let words: Vec<String> = text.split(' ').map(relative).collect();
    words.join(" ")
}

/// Returns a word relative to the origin, if it is a name in it.
fn relative(word: &str) -> String {
    let name = word.to_ascii_lowercase();
    match word.len().checked_sub(ORIGIN.len()) {
        Some(0) if name == ORIGIN => "@".to_owned(),
        Some(length) if is_within(&name, ORIGIN) && length > 0 => word[..length - 1].to_owned(),
        _ => word.to_owned(),
    }
}
