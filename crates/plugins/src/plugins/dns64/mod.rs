//! DNS64: synthesises AAAA records from A records for clients without IPv4 (RFC 6147).

use core::net::{Ipv4Addr, Ipv6Addr};

use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use ipnet::Ipv6Net;
use metrics::{Counter, Kind, Metric};
use wire::{Class, NameError, Owner, Rcode, Section, Type};

use crate::shared::per_site::PerSite;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "dns64",
    "synthesise AAAA records from A records (DNS64)",
    include_str!("README.md"),
    Config::default,
    build,
)
.first_line_wins()
.arguments("dns64 [PREFIX]", |config, args| if args.rest().is_empty() { Ok(()) } else { config.read_prefix(args) })
.properties(&[
    Property {
        usage: Usage("prefix PREFIX"),
        default: "64:ff9b::/96",
        doc: "IPv6 prefix that IPv4 addresses are embedded in (RFC 6052): 32, 40, 48, 56, 64 or 96 bits long.",
        set: Config::read_prefix,
    },
    Property {
        usage: Usage("translate_all"),
        default: "off",
        doc: "Replace the AAAA records of names that have some by synthesised ones, if the name has A records.",
        set: |config, _| {
            config.translate_all = true;
            Ok(())
        },
    },
    Property {
        usage: Usage("allow_ipv4"),
        default: "off",
        doc: "Synthesise records also for queries that come over IPv4.",
        set: |config, _| {
            config.allow_ipv4 = true;
            Ok(())
        },
    },
])
.metrics(&METRICS)
.asks_server()
.role(|_| Role::new(Effect::OnAnswers, &[]));

static TRANSLATED: Metric = Metric {
    name: "coredns_dns64_requests_translated_total",
    help: "Counter of DNS requests translated by dns64.",
    kind: Kind::Counter,
    labels: &["server"],
};
static METRICS: [&Metric; 1] = [&TRANSLATED];

/// The well-known prefix (RFC 6052 §2.1).
const PREFIX: [u8; 16] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// Lengths of a prefix in bits (RFC 6052 §2.2).
const PREFIX_LENGTHS: [u8; 6] = [32, 40, 48, 56, 64, 96];
/// Index of the byte that is always zero in a synthesised address (RFC 6052 §2.2).
const ZERO_OCTET: usize = 8;
/// Maximum TTL in seconds if no SOA record limits the TTL of the missing AAAA records (RFC 6147 §5.1.7).
const TTL_MAX: u32 = 600;

pub struct Config {
    prefix: [u8; 16],
    /// Length of the prefix in bytes.
    length: usize,
    translate_all: bool,
    allow_ipv4: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { prefix: PREFIX, length: 12, translate_all: false, allow_ipv4: false }
    }
}

impl Config {
    fn read_prefix(&mut self, args: &mut Args<'_>) -> Result<(), Problem> {
        let word = args.word()?;
        let network: Option<Ipv6Net> = word.text.parse().ok();
        let network = network.filter(|net| PREFIX_LENGTHS.contains(&net.prefix_len()));
        let wanted = "an IPv6 network of 32, 40, 48, 56, 64 or 96 bits, such as `64:ff9b::/96`";
        let network = network.ok_or_else(|| args.bad(word, wanted))?;
        self.prefix = network.network().octets();
        self.length = usize::from(network.prefix_len() / 8);
        Ok(())
    }

    /// Embeds an IPv4 address in the prefix (RFC 6052 §2.2).
    fn translate(&self, address: Ipv4Addr) -> Ipv6Addr {
        let mut bytes = self.prefix;
        let free = (self.length..bytes.len()).filter(|at| *at != ZERO_OCTET);
        for (at, byte) in free.zip(address.octets()) {
            bytes[at] = byte;
        }
        bytes.into()
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let translated = PerSite::new(setup.block, |site| setup.registry.counter(&TRANSLATED, &[&site.server]));
    Ok(Some(Part::new(Dns64 { config, translated }, Hooks::UP)))
}

struct Dns64 {
    config: Config,
    translated: PerSite<Counter>,
}

impl Plugin for Dns64 {
    fn reads_client(&self, query: &Query) -> bool {
        query.qtype == Type::AAAA && !self.config.allow_ipv4
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        let over_ipv6 = query.peer.address.ip().to_canonical().is_ipv6();
        let is_for = query.qtype == Type::AAAA && query.qclass == Class::IN && (over_ipv6 || self.config.allow_ipv4);
        if !is_for || response.rcode() == Rcode::NXDOMAIN {
            return Verdict::Pass;
        }
        let has_one = response.message.section(Section::Answer).any(|mark| mark.rtype == Type::AAAA);
        if has_one && !self.config.translate_all {
            return Verdict::Pass;
        }
        Verdict::Subquery(Box::new(Subquery {
            name: query.name().to_name(),
            qtype: Type::A,
            target: SubqueryTarget::Top,
        }))
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        let has = |response: &Response, rtype| {
            response.message.section(Section::Answer).any(|mark: wire::Mark| mark.rtype == rtype)
        };
        if !has(sub, Type::A) {
            // NODATA for AAAA and a failure for A: NODATA would be cached, although the name may have addresses.
            let is_nodata = response.rcode() == Rcode::NOERROR && !has(response, Type::AAAA);
            if is_nodata && sub.rcode() != Rcode::NOERROR {
                response.begin(query);
                self.take_over(sub, response, TTL_MAX);
                response.copy_ede(sub);
                return Verdict::Done;
            }
            return Verdict::Pass;
        }
        let ttl_max = negative_ttl(response).unwrap_or(TTL_MAX);
        response.begin(query);
        self.take_over(sub, response, ttl_max);
        if let Some(counter) = self.translated.of(query) {
            worker.counters.count(*counter);
        }
        Verdict::Done
    }
}

impl Dns64 {
    /// Makes a response of the answer to the A query: its code, flags and records, with the A records translated.
    fn take_over(&self, sub: &Response, response: &mut Response, ttl_max: u32) {
        let theirs = sub.message.flags();
        let flags = &mut response.message.header.flags;
        *flags = flags
            .with_authoritative(theirs.authoritative())
            .with_recursion_available(theirs.recursion_available())
            .with_truncated(theirs.truncated());
        response.set_rcode(sub.rcode());
        // Records that cannot be parsed are left out.
        let _ = self.copy_translated(sub, response, ttl_max);
    }

    /// Copies a response with its A records translated. CNAME records and the other sections stay as they are (RFC 6147
    /// §5.4).
    fn copy_translated(&self, sub: &Response, response: &mut Response, ttl_max: u32) -> Result<(), NameError> {
        for mark in sub.message.section(Section::Answer) {
            let record = sub.message.record(mark);
            let owner = record.owner()?;
            match record.rdata().first_chunk::<4>().filter(|_| mark.rtype == Type::A) {
                Some(address) => {
                    let address = self.config.translate(Ipv4Addr::from(*address));
                    let (owner, ttl) = (Owner::Name(owner.as_ref()), record.ttl().min(ttl_max));
                    response.message.push_aaaa(Section::Answer, owner, ttl, address);
                }
                None => {
                    response.message.push_record(Section::Answer, &record)?;
                }
            }
        }
        for section in [Section::Authority, Section::Additional] {
            for mark in sub.message.section(section) {
                response.message.push_record(section, &sub.message.record(mark))?;
            }
        }
        Ok(())
    }
}

/// Returns the TTL in seconds of a negative answer (RFC 2308 §5): the lower of the SOA record's TTL and its minimum
/// field.
fn negative_ttl(response: &Response) -> Option<u32> {
    let soa = response.message.section(Section::Authority).find(|mark| mark.rtype == Type::SOA)?;
    let data = response.message.bytes_at(soa.rdata_range());
    let minimum = u32::from_be_bytes(*data.last_chunk::<4>()?);
    Some(response.message.ttl(soa).min(minimum))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of RFC 6052 §2.4.
    #[test]
    fn translates_the_examples_of_rfc_6052() {
        let cases = [
            ("2001:db8::/32", "2001:db8:c000:221::"),
            ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
            ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
            ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
            ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
            ("2001:db8:122:344::/96", "2001:db8:122:344::192.0.2.33"),
        ];
        for (prefix, address) in cases {
            let network: Ipv6Net = prefix.parse().unwrap();
            let length = usize::from(network.prefix_len() / 8);
            let config = Config { prefix: network.network().octets(), length, ..Config::default() };
            assert_eq!(config.translate([192, 0, 2, 33].into()), address.parse::<Ipv6Addr>().unwrap(), "{prefix}");
        }
    }
}
