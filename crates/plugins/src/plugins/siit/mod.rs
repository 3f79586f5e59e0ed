//! SIIT-DC: makes A records for services that have only IPv6 addresses (RFC 7755, RFC 7757).

mod table;

use core::net::{IpAddr, Ipv6Addr};
use std::collections::HashSet;

use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use ipnet::{Ipv4Net, Ipv6Net};
use metrics::{Counter, Kind, Metric};
use wire::{Class, NameError, Owner, Rcode, Section, Type};

use crate::shared::embedded_addresses::{Prefix, has, take_over};
use crate::shared::soa_record::negative_ttl;
use plugin::PerSite;
use table::Table;

pub static MANIFEST: Manifest<Config> = Manifest::new(
    "siit",
    "synthesise A records from AAAA records (SIIT)",
    Config::default,
    build,
)
.repeated()
.properties(&[
    Property {
        usage: Usage("ipv6_prefix PREFIX"),
        default: "64:ff9b::/96",
        doc: "IPv6 prefix whose addresses contain IPv4 addresses (RFC 6052): 32, 40, 48, 56, 64 or 96 bits long.",
        set: |config, args| {
            let word = args.rest().first();
            let prefix = Prefix::read(args)?;
            if let Some(word) = word.filter(|_| prefix.is_reserved()) {
                return Err(args.bad(word, "a prefix whose bits 64 to 71 are zero (RFC 6052 §2.2)"));
            }
            config.prefix = Some(prefix);
            Ok(())
        },
    },
    Property {
        usage: Usage("eam IPV4 IPV6"),
        default: "",
        doc: "Explicit mapping of an IPv6 address to an IPv4 address, or of a network to one with as many addresses \
              (RFC 7757). The longest network wins, and any wins over `ipv6_prefix`.",
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

#[derive(Default)]
pub struct Config {
    prefix: Option<Prefix>,
    mappings: Vec<(Ipv4Net, Ipv6Net)>,
}

impl Config {
    fn read_mapping(&mut self, args: &mut Args<'_>) -> Result<(), Problem> {
        let word = args.word()?;
        let v4 = match word.text.parse().map(|address: IpAddr| address.to_canonical()) {
            Ok(IpAddr::V4(address)) => Ok(Ipv4Net::from(address)),
            _ => word.text.parse::<Ipv4Net>(),
        };
        let v4 = v4.map_err(|_| args.bad(word, "an IPv4 address or network"))?;
        let word = args.word()?;
        let v6 = word.text.parse::<Ipv6Addr>().map(Ipv6Net::from).or_else(|_| word.text.parse());
        let v6: Ipv6Net = v6.map_err(|_| args.bad(word, "an IPv6 address or network"))?;
        if v6.max_prefix_len() - v6.prefix_len() != v4.max_prefix_len() - v4.prefix_len() {
            let wanted = format!("a network with as many addresses as {v4} (RFC 7757)");
            return Err(args.bad(word, &wanted));
        }
        self.mappings.push((v4.trunc(), v6.trunc()));
        Ok(())
    }
}

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let mut table = Table::new(Prefix::WELL_KNOWN);
    for Config { prefix, mappings } in configs {
        table.prefix = prefix.unwrap_or(table.prefix);
        mappings.into_iter().for_each(|(v4, v6)| table.map(v4, v6));
    }
    let translated = PerSite::new(setup.block, |site| setup.registry.counter(&TRANSLATED, &[&site.server]));
    Ok(Some(Part::new(Siit { table, translated }, Hooks::UP)))
}

struct Siit {
    table: Table,
    translated: PerSite<Counter>,
}

impl Plugin for Siit {
    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        // Lookups of the server itself stay as they are. Otherwise siit and dns64 would ask each other in turns.
        let is_for = query.qtype == Type::A && query.qclass == Class::IN && !query.is_own();
        let is_nodata = response.rcode() == Rcode::NOERROR && !has(response, Type::A);
        if !is_for || !is_nodata || response.message.flags().truncated() {
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
        if sub.rcode() == Rcode::NOERROR && !self.maps_any(sub) {
            return Verdict::Pass;
        }
        let is_translated = sub.rcode() == Rcode::NOERROR;
        let ttl_max = negative_ttl(response);
        response.begin(query);
        let mut seen = HashSet::new();
        take_over(sub, response, ttl_max, |record, ttl_max, response| {
            if record.rtype() != Type::AAAA {
                // The signatures are not those of the records that are made.
                return Ok(is_translated && record.rtype() == Type::RRSIG);
            }
            let address = record.rdata().first_chunk().and_then(|address| self.table.translate((*address).into()));
            let Some(address) = address else { return Ok(true) };
            let owner = record.owner()?;
            // Two addresses may be mapped to one (RFC 2181 §5.2).
            if seen.insert((owner.as_bytes().to_vec(), address)) {
                let (owner, ttl) = (Owner::Name(owner.as_ref()), record.ttl().min(ttl_max));
                response.message.push_a(Section::Answer, owner, ttl, address);
            }
            Ok::<_, NameError>(true)
        });
        if is_translated {
            if let Some(counter) = self.translated.of(query) {
                worker.counters.count(*counter);
            }
        } else {
            response.copy_ede(sub);
        }
        Verdict::Done
    }
}

impl Siit {
    /// Returns true if an AAAA record of the answer has an IPv4 address.
    fn maps_any(&self, sub: &Response) -> bool {
        let addresses = sub.message.section(Section::Answer).filter(|mark| mark.rtype == Type::AAAA);
        let data = addresses.filter_map(|mark| sub.message.bytes_at(mark.rdata_range()).first_chunk::<16>());
        data.into_iter().any(|address| self.table.translate((*address).into()).is_some())
    }
}
