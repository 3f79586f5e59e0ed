//! Answers for the hosts of Istio's ServiceEntries.
//!
//! The index of hosts (`cluster::Mesh`) is in memory, and the edge keeps it up to date. `view` decides which records a
//! host has for a client.

mod manifest;
mod view;

use core::time::Duration;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use cluster::mesh::{Entry, Exports};
use cluster::{Clusters, Index, Kind};
use config::setup::{LocalAnswers, Part, Setup, SetupError, StartupGate};
use engine::{Failure, Hooks, Plugin, Query, Response, Subquery, SubqueryTarget, Verdict, Worker, Zones};
use metrics::{self, Metric, Table};
use wire::{EdeCode, Name, Owner, Rcode, Section, Type};

use common_plugins::shared::cluster_view::mark_stale;
use common_plugins::shared::option_helpers::zones_label;
use common_plugins::shared::service_records::end_alias;
use common_plugins::shared::soa_record;

pub(crate) use manifest::MANIFEST;

use manifest::Config;
use view::{Target, View};

static ANSWERS: Metric = Metric {
    name: "portolan_istio_answers_total",
    help: "Answers for hosts, by source: addresses (of the entry), default (addresses), endpoints, names (of \
           endpoints), none (no record of the type), dns (passed to the next plugin).",
    kind: metrics::Kind::Counter,
    labels: &["zone", "from"],
};
static ENTRIES: Metric = Metric {
    name: "portolan_istio_service_entries",
    help: "Service entries that are served.",
    kind: metrics::Kind::Gauge,
    labels: &["zones"],
};
static HOSTS: Metric = Metric {
    name: "portolan_istio_hosts",
    help: "Hosts of the served entries, including wildcards.",
    kind: metrics::Kind::Gauge,
    labels: &["zones"],
};

/// Metrics of `istio`.
static METRICS: [&Metric; 3] = [&ANSWERS, &ENTRIES, &HOSTS];

/// Maximum time that a reload waits until the ServiceEntries are listed, as for `kubernetes`.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Values of the metric label `from`.
const FROM: &[&str] = &["addresses", "default", "endpoints", "names", "none", "dns"];
const NONE: usize = 4;

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    config.sources.warn(setup);
    if !config.default_addresses.is_empty() {
        let text = "default_address gives all hosts without addresses the same ones: only ports tell them apart";
        setup.warn(text);
    }
    let view = Arc::new(follow(&config, setup)?);
    let zones = setup.zones_or_keys(&config.zones);
    let index = Arc::clone(&view.index);
    setup.requests.readiness.add(MANIFEST.name, move || index.is_synced());
    setup.requests.startup_gates.push(startup_gates(&view.index));
    show_counts(&view.index, &zones, setup);
    offer_answers(&view, &zones, setup);
    let counters = |zone: &Name| setup.registry.table(&ANSWERS, &[&zone.to_string()], &[FROM]);
    let plugin = Istio { view, ttl: config.ttl, answers: zones.names().iter().map(counters).collect() };
    let fallthrough = config.fallthrough.into_iter().collect();
    Ok(Some(Part { zones: Some(zones), fallthrough, ..Part::new(plugin, Hooks::BOTH) }))
}

fn follow(config: &Config, setup: &mut Setup<'_>) -> Result<View, SetupError> {
    let clusters: Rc<dyn Clusters> =
        setup.process.find().ok_or_else(|| SetupError::new("this process cannot watch a cluster"))?;
    let handle = clusters.follow(&config.request(|name| setup.path(name)));
    let handle = handle.map_err(SetupError::from_error)?;
    handle.warnings().iter().for_each(|warning| setup.warn(warning));
    let index = Arc::clone(handle.index());
    let mesh =
        index.mesh().cloned().ok_or_else(|| SetupError::new("the ServiceEntries of the cluster are not watched"))?;
    let default_exports = mesh.exports(config.default_export_to.iter().map(String::as_str));
    Ok(View {
        default_exports: default_exports.unwrap_or_else(Exports::everywhere),
        index,
        mesh,
        handle,
        default_addresses: config.default_addresses.as_slice().into(),
        vips: config.vips,
        has_pods: config.pods,
    })
}

/// Condition that a reload waits for. Until then the old configuration keeps serving.
fn startup_gates(index: &Arc<Index>) -> StartupGate {
    let index = Arc::clone(index);
    StartupGate {
        directive: MANIFEST.name,
        is_there: Box::new(move || index.is_synced()),
        timeout: TIMEOUT,
        waiting: "waiting for ServiceEntries before starting server",
        missing: "starting server before all ServiceEntries are listed",
    }
}

fn show_counts(index: &Arc<Index>, zones: &Zones, setup: &Setup<'_>) {
    let label = zones_label(zones.names());
    let entries = Arc::downgrade(index);
    setup.registry.gauge(&ENTRIES, &[&label], move || Some(entries.upgrade()?.count(Kind::ServiceEntry).into()));
    let hosts = Arc::downgrade(index);
    #[allow(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
    setup.registry.gauge(&HOSTS, &[&label], move || Some(hosts.upgrade()?.mesh()?.hosts() as f64));
}

/// Tells the plugins above which queries this plugin or one below answers from memory.
fn offer_answers(view: &Arc<View>, zones: &Zones, setup: &mut Setup<'_>) {
    let (view, zones, below) = (Arc::clone(view), zones.clone(), setup.below.find::<LocalAnswers>());
    setup.below.provide(LocalAnswers(Arc::new(move |query| {
        let is_here = zones.contain(query.key()) && has_records(query.qtype) && view.answers(query);
        is_here || below.as_ref().is_some_and(|LocalAnswers(answers)| answers(query))
    })));
}

/// Returns true if hosts can have records of this type.
const fn has_records(qtype: Type) -> bool {
    matches!(qtype, Type::A | Type::AAAA | Type::CNAME)
}

/// Plugin that serves the hosts of a mesh.
struct Istio {
    view: Arc<View>,
    ttl: u32,
    /// Answer counters per zone, by source.
    answers: Box<[Table]>,
}

/// Result of looking up a host.
enum LookupResult {
    /// The name is a host, and its records of this type are in the answer section.
    Host,
    /// The name is a host and an alias of this name.
    Alias(Box<Name>),
    /// The name is a host whose addresses come from DNS.
    Elsewhere,
    /// The name is a host, but this plugin has no say about records of this type.
    Unasked,
}

/// Query note: the name exists here, although the query passes to the next plugin.
const EXISTS: u64 = 1;

impl Plugin for Istio {
    fn reads_client(&self, query: &Query) -> bool {
        self.view.reads_client(query)
    }

    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if !self.view.index.is_synced() {
            return Verdict::Fail(Failure::servfail(EdeCode::NOT_READY, "ServiceEntries not listed yet"));
        }
        query.set_note(0);
        let found = self.view.find(query, |target| self.answer(target, query, response, worker));
        if matches!(found, Some(LookupResult::Elsewhere)) {
            return Verdict::Pass;
        }
        response.set_authoritative(true);
        response.set_local();
        let verdict = self.respond(found, query, response);
        // The refusal of a transfer has an error of its own.
        if !query.qtype.is_transfer() {
            mark_stale(&self.view.index, response.rcode() == Rcode::NXDOMAIN, response);
        }
        verdict
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, _: &mut Worker) -> Verdict {
        // The name exists here, so NXDOMAIN from another plugin would be wrong (RFC 8020).
        if query.note() == EXISTS && response.rcode() == Rcode::NXDOMAIN {
            response.set_rcode(Rcode::NOERROR);
        }
        Verdict::Pass
    }

    fn on_subresponse(&self, _: &mut Query, sub: &mut Response, response: &mut Response, _: &mut Worker) -> Verdict {
        end_alias(sub, response)
    }
}

impl Istio {
    /// Completes the response to a lookup.
    fn respond(&self, found: Option<LookupResult>, query: &mut Query, response: &mut Response) -> Verdict {
        match found {
            Some(LookupResult::Alias(name)) => {
                Verdict::Subquery(Box::new(Subquery { name: *name, qtype: query.qtype, target: SubqueryTarget::Top }))
            }
            Some(LookupResult::Host) => {
                if response.message.section(Section::Answer).next().is_none() && !response.message.is_truncated() {
                    self.push_soa(Section::Authority, query, response);
                }
                Verdict::Done
            }
            Some(LookupResult::Unasked | LookupResult::Elsewhere) => self.deny(true, query, response),
            None => self.deny(self.view.mesh.has_below(query.key()), query, response),
        }
    }

    /// Answers a query for a host.
    fn answer(&self, target: Target<'_>, query: &Query, response: &mut Response, worker: &mut Worker) -> LookupResult {
        let (from, addresses) = match target {
            Target::Itself => {
                self.count(FROM.len() - 1, query, worker);
                return LookupResult::Elsewhere;
            }
            Target::Names(entry) if has_records(query.qtype) => {
                self.count(3, query, worker);
                return self.push_alias(entry, query, response, worker);
            }
            _ if !query.qtype.is_address() => return LookupResult::Unasked,
            Target::Addresses(addresses) => (0, addresses),
            Target::Default(addresses) => (1, addresses),
            Target::Endpoints(addresses) => (2, addresses),
            Target::Names(_) => return LookupResult::Unasked,
        };
        let wanted = || addresses.iter().filter(|ip| ip.is_ipv4() == (query.qtype == Type::A));
        self.push_addresses(wanted, response, worker);
        self.count(if wanted().next().is_some() { from } else { NONE }, query, worker);
        LookupResult::Host
    }

    /// Appends addresses. If they may not all fit, starts at a random one so that clients spread over all.
    fn push_addresses<I: Iterator<Item = IpAddr>>(
        &self,
        addresses: impl Fn() -> I,
        response: &mut Response,
        worker: &mut Worker,
    ) {
        let count = addresses().count();
        let first = if count > SHARED_OUT_FROM { worker.random_below(count) } else { 0 };
        for ip in addresses().skip(first).chain(addresses().take(first)) {
            response.message.push_address(Section::Answer, Owner::Question, self.ttl, ip);
            if response.message.is_truncated() {
                return;
            }
        }
    }

    /// Appends a CNAME record to a random endpoint name of the entry, so that clients spread over all.
    fn push_alias(&self, entry: &Entry, query: &Query, response: &mut Response, worker: &mut Worker) -> LookupResult {
        let names = || entry.names().filter(|name| !name.same(query.key()));
        let chosen = worker.random_below(names().count().max(1));
        let Some(name) = names().nth(chosen) else { return LookupResult::Unasked };
        response.message.push_name(Section::Answer, Owner::Question, (Type::CNAME, self.ttl), name);
        if query.qtype == Type::CNAME { LookupResult::Host } else { LookupResult::Alias(Box::new(name.to_name())) }
    }

    /// Answers NODATA or NXDOMAIN, unless a plugin below has an answer.
    fn deny(&self, exists: bool, query: &mut Query, response: &mut Response) -> Verdict {
        let is_apex = query.zone_at() == 0;
        if exists {
            query.set_note(EXISTS);
        }
        match query.qtype {
            qtype if qtype.is_transfer() => {
                response.set_rcode(Rcode::REFUSED);
                response.set_ede(EdeCode::NOT_SUPPORTED, "zone transfer is not offered");
            }
            Type::SOA if is_apex => self.push_soa(Section::Answer, query, response),
            _ => {
                response.set_rcode(if exists || is_apex { Rcode::NOERROR } else { Rcode::NXDOMAIN });
                self.push_soa(Section::Authority, query, response);
            }
        }
        Verdict::Missing
    }

    fn push_soa(&self, section: Section, query: &Query, response: &mut Response) {
        let fields = (self.ttl, soa_record::numbers(self.view.index.serial(), self.ttl));
        soa_record::push(section, soa_record::NAMES, fields, query, response);
    }

    fn count(&self, from: usize, query: &Query, worker: &Worker) {
        if let Some(table) = self.answers.get(query.zone_index()) {
            worker.counters.count(table.counter([from, 0, 0]));
        }
    }
}

/// Number of addresses above which they may not all fit: the capacity of 512 bytes with a long name.
const SHARED_OUT_FROM: usize = 16;
