//! SIIT: makes A records of AAAA records, for IPv4 clients of services that only have IPv6 addresses (RFC 7915, RFC
//! 7757).

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::collections::HashMap;

use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use metrics::{Counter, Kind, Metric};
use wire::{Class, Mark, NameError, Owner, Rcode, Section, Type};

use crate::shared::embedded_ipv4::{PREFIX, Prefix};
use crate::shared::per_site::PerSite;
use crate::shared::soa_record::negative_ttl;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "siit",
    "synthesise A records from AAAA records (SIIT)",
    include_str!("README.md"),
    Config::default,
    build,
)
.repeated()
.properties(&[
    Property {
        usage: Usage("ipv6_prefix PREFIX"),
        default: "64:ff9b::/96",
        doc: "IPv6 prefix that IPv4 addresses are embedded in (RFC 6052): 32, 40, 48, 56, 64 or 96 bits long.",
        set: Config::read_prefix,
    },
    Property {
        usage: Usage("eam IPV4 IPV6"),
        default: "",
        doc: "Explicit mapping of an IPv6 address to an IPv4 address (RFC 7757), which precedes the prefix.",
        set: Config::read_mapping,
    },
])
.metrics(&METRICS)
.asks_server()
.role(|_| Role::new(Effect::OnAnswers, &[]));

static TRANSLATED: Metric = Metric {
    name: "coredns_siit_requests_translated_total",
    help: "Counter of DNS requests translated by siit.",
    kind: Kind::Counter,
    labels: &["server"],
};
static METRICS: [&Metric; 1] = [&TRANSLATED];

/// Maximum TTL in seconds if no SOA record limits the TTL of the missing A records, as in *dns64* (RFC 6147 §5.1.7).
const TTL_MAX: u32 = 600;

/// One `siit` line.
#[derive(Default)]
pub struct Config {
    prefix: Option<Prefix>,
    mappings: Vec<(Ipv6Addr, Ipv4Addr)>,
}

impl Config {
    fn read_prefix(&mut self, args: &mut Args<'_>) -> Result<(), Problem> {
        let word = args.word()?;
        let prefix = Prefix::parse(&word.text).ok_or_else(|| args.bad(word, PREFIX))?;
        if !prefix.has_zero_byte() {
            return Err(args.bad(word, "a prefix whose bits 64 to 71 are zero (RFC 6052 §2.2)"));
        }
        self.prefix = Some(prefix);
        Ok(())
    }

    fn read_mapping(&mut self, args: &mut Args<'_>) -> Result<(), Problem> {
        let word = args.word()?;
        let v4 = match word.text.parse().map(|address: IpAddr| address.to_canonical()) {
            Ok(IpAddr::V4(v4)) => v4,
            _ => return Err(args.bad(word, "an IPv4 address")),
        };
        let word = args.word()?;
        let v6 = word.text.parse().ok().filter(|v6: &Ipv6Addr| v6.to_ipv4_mapped().is_none());
        self.mappings.push((v6.ok_or_else(|| args.bad(word, "an IPv6 address"))?, v4));
        Ok(())
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let prefix = configs.iter().rev().find_map(|config| config.prefix).unwrap_or(Prefix::WELL_KNOWN);
    // A later mapping of the same address replaces an earlier one.
    let mappings = configs.into_iter().flat_map(|config| config.mappings).collect();
    let translated = PerSite::new(setup.block, |site| setup.registry.counter(&TRANSLATED, &[&site.server]));
    Ok(Some(Part::new(Siit { prefix, mappings, translated }, Hooks::UP)))
}

struct Siit {
    prefix: Prefix,
    mappings: HashMap<Ipv6Addr, Ipv4Addr>,
    translated: PerSite<Counter>,
}

impl Plugin for Siit {
    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        // The lookups of other plugins, such as *dns64*, end here: their own responses come by.
        let is_for = query.qtype == Type::A && query.qclass == Class::IN && !query.is_own();
        let is_final = response.is_dropped() || response.message.is_truncated() || response.rcode() == Rcode::NXDOMAIN;
        if !is_for || is_final || response.message.section(Section::Answer).any(|mark| mark.rtype == Type::A) {
            return Verdict::Pass;
        }
        Verdict::Subquery(Box::new(Subquery {
            name: query.name().to_name(),
            qtype: Type::AAAA,
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
        let maps = |mark: Mark| self.mapped(sub, mark).is_some();
        let is_mapped = sub.message.section(Section::Answer).any(maps);
        if sub.rcode() == Rcode::NOERROR && !is_mapped {
            return Verdict::Pass;
        }
        let ttl_max = negative_ttl(response).unwrap_or(TTL_MAX);
        response.begin(query);
        let theirs = sub.message.flags();
        let flags = &mut response.message.header.flags;
        *flags = flags
            .with_authoritative(theirs.authoritative())
            .with_recursion_available(theirs.recursion_available())
            .with_truncated(theirs.truncated());
        response.set_rcode(sub.rcode());
        response.copy_ede(sub);
        // Records that cannot be parsed are left out.
        let _ = self.copy_translated(sub, response, ttl_max);
        if let Some(counter) = self.translated.of(query).filter(|_| is_mapped) {
            worker.counters.count(*counter);
        }
        Verdict::Done
    }
}

impl Siit {
    /// Returns the IPv4 address for an AAAA record: that of the table, or the one that the address contains.
    fn mapped(&self, sub: &Response, mark: Mark) -> Option<Ipv4Addr> {
        let record = sub.message.record(mark);
        let bytes: [u8; 16] = record.rdata().try_into().ok().filter(|_| mark.rtype == Type::AAAA)?;
        let address = Ipv6Addr::from(bytes);
        self.mappings.get(&address).copied().or_else(|| self.prefix.extract(address))
    }

    /// Copies a response with its AAAA records translated, each address once. AAAA records without an IPv4 address are
    /// left out, and so are the signatures of AAAA records, which do not fit any more. Other records stay as they are.
    fn copy_translated(&self, sub: &Response, response: &mut Response, ttl_max: u32) -> Result<(), NameError> {
        for mark in sub.message.section(Section::Answer) {
            let record = sub.message.record(mark);
            let signs_addresses = mark.rtype == Type::RRSIG && record.rdata().starts_with(&Type::AAAA.0.to_be_bytes());
            match self.mapped(sub, mark) {
                Some(address) => {
                    let owner = record.owner()?;
                    let is_known = response.message.section(Section::Answer).any(|known| {
                        known.rtype == Type::A
                            && *response.message.bytes_at(known.rdata_range()) == address.octets()
                            && response.message.owner(known).is_ok_and(|other| other == owner)
                    });
                    if !is_known {
                        let (owner, ttl) = (Owner::Name(owner.as_ref()), record.ttl().min(ttl_max));
                        response.message.push_a(Section::Answer, owner, ttl, address);
                    }
                }
                None if mark.rtype == Type::AAAA || signs_addresses => {}
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
