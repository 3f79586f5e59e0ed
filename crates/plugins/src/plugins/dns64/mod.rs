//! DNS64: synthesises AAAA records from A records for clients without IPv4 (RFC 6147).

use core::net::Ipv4Addr;

use config::options::{Effect, Manifest, Property, Role, Usage};
use config::setup::{Part, Setup, SetupError};
use engine::{Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker};
use metrics::{Counter, Kind, Metric};
use wire::{Class, NameError, Owner, Rcode, Record, Section, Type};

use crate::shared::embedded_addresses::{Prefix, has, translate_response};
use common_plugins::shared::soa_record::negative_ttl;
use plugin::PerSite;

pub static MANIFEST: Manifest<Config> =
    Manifest::new("dns64", "synthesise AAAA records from A records (DNS64)", Config::default, build)
        .first_line_wins()
        .arguments("dns64 [PREFIX]", |config, args| {
            if !args.rest().is_empty() {
                config.prefix = Prefix::read(args)?;
            }
            Ok(())
        })
        .properties(&[
            Property {
                usage: Usage("prefix PREFIX"),
                default: "64:ff9b::/96",
                doc: "IPv6 prefix that IPv4 addresses are embedded in (RFC 6052): 32, 40, 48, 56, 64 or 96 bits long.",
                set: |config, args| {
                    config.prefix = Prefix::read(args)?;
                    Ok(())
                },
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

pub struct Config {
    prefix: Prefix,
    translate_all: bool,
    allow_ipv4: bool,
}

impl Default for Config {
    fn default() -> Config {
        Config { prefix: Prefix::WELL_KNOWN, translate_all: false, allow_ipv4: false }
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
        if !is_for || response.rcode() == Rcode::NXDOMAIN || is_decision(response) {
            return Verdict::Pass;
        }
        if has(response, Type::AAAA) && !self.config.translate_all {
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
        if !has(sub, Type::A) {
            // NODATA for AAAA and a failure for A: NODATA would be cached, although the name may have addresses.
            let is_nodata = response.rcode() == Rcode::NOERROR && !has(response, Type::AAAA);
            if is_nodata && sub.rcode() != Rcode::NOERROR {
                response.begin(query);
                self.translate_response(sub, response, None);
                response.copy_ede(sub);
                return Verdict::Done;
            }
            return Verdict::Pass;
        }
        let ttl_max = negative_ttl(response);
        response.begin(query);
        self.translate_response(sub, response, ttl_max);
        if let Some(counter) = self.translated.of(query) {
            worker.counters.count(*counter);
        }
        Verdict::Done
    }
}

/// Returns true if a plugin below refused the query, as *tsig* does if it is not signed. Codes of upstreams other than
/// NXDOMAIN count as an empty answer (RFC 6147 §5.1.2), but this one is about the client. The A query would be exempt,
/// because the server sends it.
fn is_decision(response: &Response) -> bool {
    response.failure().is_some_and(|failure| failure.rcode != Rcode::SERVFAIL)
}

impl Dns64 {
    /// Makes a response of the answer to the A query, with the A records translated.
    fn translate_response(&self, sub: &Response, response: &mut Response, ttl_max: Option<u32>) {
        translate_response(sub, response, ttl_max, |record, ttl_max, response| {
            self.translate(record, ttl_max, response)
        });
    }

    /// Writes an A record as an AAAA record. Returns false for other records.
    fn translate(&self, record: &Record<'_>, ttl_max: u32, response: &mut Response) -> Result<bool, NameError> {
        let address = record.rdata().first_chunk::<4>().filter(|_| record.rtype() == Type::A);
        let Some(address) = address else { return Ok(false) };
        let (owner, address) = (record.owner()?, self.config.prefix.embed(Ipv4Addr::from(*address)));
        response.message.push_aaaa(Section::Answer, Owner::Name(owner.as_ref()), record.ttl().min(ttl_max), address);
        Ok(true)
    }
}
