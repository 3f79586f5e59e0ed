//! SIIT-DC: makes A records for services that have only IPv6 addresses (RFC 7755, RFC 7757).

mod table;

use core::net::{IpAddr, Ipv6Addr};
use std::collections::HashSet;

use config::options::{Args, Effect, Manifest, Problem, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use ipnet::{Ipv4Net, Ipv6Net};
use metrics::{Counter, Kind, Metric};
use wire::{Class, Name, NameError, Owner, Rcode, Section, Type, address_of, reverse_name};

use crate::shared::embedded_addresses::{Prefix, has, translate_response};
use common_plugins::shared::soa_record::negative_ttl;
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

/// TTL in seconds of the alias to the reverse name of an IPv6 address: that of a translated record without an SOA
/// record (RFC 6147 §5.1.7). The mapping itself changes with the configuration only.
const ALIAS_TTL: u32 = 600;

/// Returns true if a name exists without a record of this type.
fn is_nodata(response: &Response, rtype: Type) -> bool {
    response.rcode() == Rcode::NOERROR && !has(response, rtype)
}

/// Returns true if the name does not exist, or if it is asked for names of an address and has none.
fn is_without_names(query: &Query, response: &Response) -> bool {
    response.rcode() == Rcode::NXDOMAIN || query.qtype == Type::PTR && is_nodata(response, Type::PTR)
}

struct Siit {
    table: Table,
    translated: PerSite<Counter>,
}

impl Plugin for Siit {
    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        // Lookups of the server itself stay as they are. Otherwise siit and dns64 would ask each other in turns.
        let is_for = query.qclass == Class::IN && !query.is_own() && !response.message.flags().truncated();
        let other = match query.qtype {
            Type::A if is_for && is_nodata(response, Type::A) => Some((query.name().to_name(), Type::AAAA)),
            // A name that has an alias for PTR queries exists, so that no query for it is answered with NXDOMAIN (RFC
            // 8020 §2).
            _ if is_for && is_without_names(query, response) => {
                self.reverse_of(query).map(|reverse| (reverse, Type::PTR))
            }
            _ => None,
        };
        let Some((name, qtype)) = other else { return Verdict::Pass };
        Verdict::Subquery(Box::new(Subquery { name, qtype, target: SubqueryTarget::Top }))
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        worker: &mut Worker,
    ) -> Verdict {
        if is_without_names(query, response) {
            return self.name_mapped(query, sub, response, worker);
        }
        if sub.rcode() == Rcode::NOERROR && !self.maps_any(sub) {
            return Verdict::Pass;
        }
        let is_translated = sub.rcode() == Rcode::NOERROR;
        let ttl_max = negative_ttl(response);
        response.begin(query);
        let mut seen = HashSet::new();
        translate_response(sub, response, ttl_max, |record, ttl_max, response| {
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
            self.count(query, worker);
        } else {
            response.copy_ede(sub);
        }
        Verdict::Done
    }
}

impl Siit {
    /// Returns the reverse name of the IPv6 address that the IPv4 address of a question is mapped to.
    fn reverse_of(&self, query: &Query) -> Option<Name> {
        match address_of(query.key())? {
            IpAddr::V4(address) => Some(reverse_name(self.table.translate_back(address).into())),
            IpAddr::V6(_) => None,
        }
    }

    /// Answers a question for the names of an IPv4 address with those of its IPv6 address, behind an alias as *dns64*
    /// would have it the other way round (RFC 6147 §5.3.1), and one for another type with the alias alone. If that
    /// address has no names, the answer stays as it is.
    fn name_mapped(&self, query: &Query, sub: &Response, response: &mut Response, worker: &mut Worker) -> Verdict {
        if sub.rcode() != Rcode::NOERROR || !has(sub, Type::PTR) {
            return Verdict::Pass;
        }
        let Some(reverse) = self.reverse_of(query) else { return Verdict::Pass };
        response.begin(query);
        response.set_rcode(Rcode::NOERROR);
        response.message.push_name(Section::Answer, Owner::Question, (Type::CNAME, ALIAS_TTL), reverse.as_ref());
        translate_response(sub, response, None, |_, _, _| Ok::<_, NameError>(query.qtype != Type::PTR));
        self.count(query, worker);
        Verdict::Done
    }

    fn count(&self, query: &Query, worker: &mut Worker) {
        if let Some(counter) = self.translated.of(query) {
            worker.counters.count(*counter);
        }
    }

    /// Returns true if an AAAA record of the answer has an IPv4 address.
    fn maps_any(&self, sub: &Response) -> bool {
        let addresses = sub.message.section(Section::Answer).filter(|mark| mark.rtype == Type::AAAA);
        let data = addresses.filter_map(|mark| sub.message.bytes_at(mark.rdata_range()).first_chunk::<16>());
        data.into_iter().any(|address| self.table.translate((*address).into()).is_some())
    }
}
