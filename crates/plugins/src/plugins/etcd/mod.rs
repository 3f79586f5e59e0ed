//! The plugin *etcd*: answers queries from records in etcd, in the format of SkyDNS.
//!
//! The process keeps the records in an index in memory (crate `skydns`). `walk` converts the records of a name to
//! addresses and texts, and follows CNAMEs. `services` builds SRV, MX and NS records. `outside` resolves targets
//! outside of the zones with subqueries.

mod manifest;
mod outside;
mod services;
mod walk;
mod wanted;

use core::time::Duration;
use std::rc::Rc;
use std::sync::Arc;

use config::setup::{LocalZones, Part, Setup, SetupError, StartupGate};
use engine::{Failure, Hooks, Plugin, Query, Response, Verdict, Worker, Zones};
use metrics::{self, Counter, Metric};
use skydns::{Index, LeaseBounds, Record, RecordFilter, Selection, StoreHandle, Stores, View};
use wire::{EdeCode, Owner, Rcode, Section, Type};

use common_plugins::shared::option_helpers::zones_label;
use common_plugins::shared::soa_record;

pub(crate) use manifest::MANIFEST;

use manifest::Config;
use outside::Outside;
use walk::{ApexFallback, Walk, below};
use wanted::Wanted;

static STALE: Metric = Metric {
    name: "portolan_etcd_stale_answers_total",
    help: "Answers given from the index while etcd could not be reached.",
    kind: metrics::Kind::Counter,
    labels: &["zone"],
};
static CUT: Metric = Metric {
    name: "portolan_etcd_answers_cut_total",
    help: "Answers that may lack records because the name has more keys below it than are examined for one answer.",
    kind: metrics::Kind::Counter,
    labels: &["zone"],
};

static RECORDS: Metric = Metric {
    name: "portolan_etcd_records",
    help: "Records in the index.",
    kind: metrics::Kind::Gauge,
    labels: &["zones"],
};
static CURRENT: Metric = Metric {
    name: "portolan_etcd_current",
    help: "1 while changes in etcd are being received, 0 while etcd cannot be reached.",
    kind: metrics::Kind::Gauge,
    labels: &["zones"],
};

/// Metrics of the plugin.
static METRICS: [&Metric; 4] = [&STALE, &CUT, &RECORDS, &CURRENT];

/// Maximum time that a reload waits for the initial list of records.
const TIMEOUT: Duration = Duration::from_secs(5);
/// TTL of the SOA record and of denials in seconds. It is short because names can appear at any time.
const SOA_TTL: u32 = 30;
/// Labels, in wire format, of the name below a zone that has the name servers of the zone.
const SERVERS: &[u8] = b"\x02ns\x03dns";

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let zones = setup.zones_or_keys(&config.zones);
    let request = config.request(zones.names(), |name| setup.path(name));
    let stores: Rc<dyn Stores> =
        setup.process.find().ok_or_else(|| SetupError::new("no etcd can be followed in this process"))?;
    let handle = stores.follow(&request).map_err(SetupError::from_error)?;
    let index = Arc::clone(handle.index());
    let watched = Arc::clone(&index);
    setup.requests.readiness.add(MANIFEST.name, move || watched.is_listed());

    setup.requests.startup_gates.push(startup_gates(&index));
    measure(&index, &zones, setup);

    let fallthrough: Zones = config.fallthrough.iter().cloned().collect();
    LocalZones::add(setup.below, &zones, &fallthrough);
    let counters = |metric: &'static Metric| {
        zones.names().iter().map(|zone| setup.registry.counter(metric, &[&zone.to_string()])).collect()
    };
    let (lease, fallback) = (config.lease, config.fallback);
    let plugin = Etcd { index, handle, lease, fallback, stale: counters(&STALE), cut: counters(&CUT) };
    Ok(Some(Part { zones: Some(zones), fallthrough, ..Part::new(plugin, Hooks::DOWN) }))
}

/// Returns the condition that a reload waits for: all records are listed, so that no known name is denied.
fn startup_gates(index: &Arc<Index>) -> StartupGate {
    let index = Arc::clone(index);
    StartupGate {
        directive: MANIFEST.name,
        is_there: Box::new(move || index.is_listed()),
        timeout: TIMEOUT,
        waiting: "waiting for etcd before this is served",
        missing: "serving although etcd has not been read yet",
    }
}

/// Registers the gauges of an index. They disappear with the last user of the index.
fn measure(index: &Arc<Index>, zones: &Zones, setup: &Setup<'_>) {
    let names = zones_label(zones.names());
    let records = Arc::downgrade(index);
    #[allow(clippy::cast_precision_loss, reason = "the number of records is far below 2^52")]
    let records = move || records.upgrade().map(|index| index.counts().records as f64);
    setup.registry.gauge(&RECORDS, &[&names], records);
    let current = Arc::downgrade(index);
    let current = move || current.upgrade().map(|index| f64::from(u8::from(index.is_current())));
    setup.registry.gauge(&CURRENT, &[&names], current);
}

/// Plugin instance: the zones of one `etcd` directive.
struct Etcd {
    index: Arc<Index>,
    /// Keeps the watch of etcd running.
    #[allow(dead_code, reason = "dropping it ends the watch")]
    handle: Arc<dyn StoreHandle>,
    lease: LeaseBounds,
    fallback: ApexFallback,
    /// Answers while etcd could not be reached, by zone.
    stale: Box<[Counter]>,
    /// Answers that may be incomplete, by zone.
    cut: Box<[Counter]>,
}

/// Result of looking up a query in the index.
enum LookupResult {
    /// The response has the answer.
    Answered,
    /// The name has no record of the type.
    NoData,
    /// The name has no records, and is denied with this response code or falls through.
    Nothing(Rcode),
    /// The name has a value that is not a record.
    Unreadable,
    /// A subquery is needed to complete the answer.
    Elsewhere(Verdict),
}

impl Plugin for Etcd {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if query.qtype.is_transfer() {
            return Verdict::Fail(Failure::refused(EdeCode::NOT_SUPPORTED, "zone transfer is not offered"));
        }
        if !self.index.is_listed() {
            return Verdict::Fail(Failure::servfail(EdeCode::NOT_READY, "etcd has not been read yet"));
        }
        response.set_authoritative(true);
        response.set_local();
        let found = self.find(query, response, worker);
        self.mark_stale(matches!(found, LookupResult::Nothing(Rcode::NXDOMAIN)), query, response, worker);
        match found {
            LookupResult::Answered => Verdict::Done,
            LookupResult::NoData => {
                self.push_soa(Section::Authority, query, response);
                Verdict::Done
            }
            LookupResult::Nothing(rcode) => {
                response.set_rcode(rcode);
                self.push_soa(Section::Authority, query, response);
                Verdict::Missing
            }
            LookupResult::Unreadable => {
                Verdict::Fail(Failure::servfail(EdeCode::INVALID_DATA, "the value of the key in etcd is not a record"))
            }
            LookupResult::Elsewhere(verdict) => verdict,
        }
    }

    fn on_subresponse(
        &self,
        query: &mut Query,
        sub: &mut Response,
        response: &mut Response,
        _: &mut Worker,
    ) -> Verdict {
        outside::on_subresponse(query, sub, response)
    }
}

impl Etcd {
    fn find(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> LookupResult {
        let view = self.index.view();
        let is_apex = query.zone_at() == 0;
        match query.qtype {
            Type::SOA if is_apex => {
                self.push_soa(Section::Answer, query, response);
                LookupResult::Answered
            }
            Type::NS if is_apex => {
                let servers = view.select(below(SERVERS, query.key()).as_ref(), SERVERS.len(), RecordFilter::Hosts);
                self.answer(&servers, &view, query, response, worker)
            }
            Type::CNAME | Type::PTR => self.pointer(&view, query, response, worker),
            Type::A | Type::AAAA | Type::TXT | Type::SRV | Type::MX => {
                let selection = self.select(&view, query, worker);
                self.answer(&selection, &view, query, response, worker)
            }
            _ => absent(&self.select(&view, query, worker), query).unwrap_or(LookupResult::NoData),
        }
    }

    /// Returns the records of the queried name. Counts a selection that is cut off.
    fn select<'v>(&self, view: &'v View, query: &Query, worker: &mut Worker) -> Selection<'v> {
        let selection = walk::select((view, self.fallback), query.key(), query.zone_at(), Some(query.qtype));
        if selection.is_cut()
            && let Some(counter) = self.cut.get(query.zone_index())
        {
            worker.counters.count(*counter);
        }
        selection
    }

    /// Answers a query for addresses or texts, following CNAMEs, or for records with a target (SRV, MX, NS), with the
    /// addresses of the targets.
    fn answer(
        &self,
        selection: &Selection<'_>,
        view: &View,
        query: &mut Query,
        response: &mut Response,
        worker: &Worker,
    ) -> LookupResult {
        if let Some(found) = absent(selection, query) {
            return found;
        }
        let names_targets = matches!(query.qtype, Type::NS | Type::SRV | Type::MX);
        let wanted = if names_targets {
            Wanted { qtype: None, section: Section::Additional }
        } else {
            Wanted { qtype: Some(query.qtype), section: Section::Answer }
        };
        let mut outside = Outside::default();
        let time = (worker.now().nanos(), self.lease);
        let mut walk = Walk::new((view, self.fallback, selection), query.zone(), wanted, time, &mut outside);
        if names_targets {
            services::push(selection, query.qtype, &mut walk, response);
        } else {
            walk.push(selection, (Owner::Question, query.name()), None, response);
        }
        outside.ask(query).map_or_else(|| LookupResult::of_message(response), LookupResult::Elsewhere)
    }

    /// Answers a CNAME or PTR query. Only the key of exactly the queried name counts.
    fn pointer(&self, view: &View, query: &Query, response: &mut Response, worker: &mut Worker) -> LookupResult {
        match view.exactly(query.key()) {
            Some(Some(record)) => {
                let Some(target) = record.host.name() else { return LookupResult::NoData };
                let fields = (query.qtype, self.ttl(record, worker));
                response.message.push_name(Section::Answer, Owner::Question, fields, target);
                LookupResult::of_message(response)
            }
            Some(None) => LookupResult::Unreadable,
            // The name exists if others exist below it. It still falls through, because another plugin may have its PTR
            // record.
            None => {
                let selection = self.select(view, query, worker);
                match absent(&selection, query) {
                    None if query.qtype == Type::CNAME => self.only_alias(&selection, query, response, worker),
                    None | Some(LookupResult::Unreadable) => LookupResult::Nothing(Rcode::NOERROR),
                    Some(found) => found,
                }
            }
        }
    }

    /// Answers a CNAME query for a name whose only record, below it, is an alias. Address queries get this record too.
    fn only_alias(&self, all: &Selection<'_>, query: &Query, response: &mut Response, worker: &Worker) -> LookupResult {
        let mut records = all.records();
        let (Some(only), None) = (records.next(), records.next()) else { return LookupResult::Nothing(Rcode::NOERROR) };
        // The records below a name are among its own records, so such an alias is not followed either.
        let target = only.record.host.name().filter(|target| !target.is_within(query.name()));
        let Some(target) = target else { return LookupResult::Nothing(Rcode::NOERROR) };
        let fields = (Type::CNAME, self.ttl(only.record, worker));
        response.message.push_name(Section::Answer, Owner::Question, fields, target);
        LookupResult::of_message(response)
    }

    fn ttl(&self, record: &Record, worker: &Worker) -> u32 {
        record.ttl(worker.now().nanos(), self.lease)
    }

    fn push_soa(&self, section: Section, query: &Query, response: &mut Response) {
        let numbers = soa_record::numbers(self.index.serial(), SOA_TTL);
        soa_record::push(section, soa_record::NAMES, (SOA_TTL, numbers), query, response);
    }

    /// Counts an answer that may be stale, and marks it with an EDE (RFC 8914 §4.4, §4.20).
    fn mark_stale(&self, denies: bool, query: &Query, response: &mut Response, worker: &Worker) {
        if self.index.is_current() {
            return;
        }
        let code = if denies { EdeCode::STALE_NXDOMAIN } else { EdeCode::STALE_ANSWER };
        response.set_ede(code, "etcd cannot be reached");
        if let Some(counter) = self.stale.get(query.zone_index()) {
            worker.counters.count(*counter);
        }
    }
}

/// Returns the result for a name without usable records; `None` if it has some. The apex of a zone always exists.
fn absent(selection: &Selection<'_>, query: &Query) -> Option<LookupResult> {
    if selection.is_unreadable() {
        return Some(LookupResult::Unreadable);
    }
    let rcode = if query.zone_at() == 0 { Rcode::NOERROR } else { Rcode::NXDOMAIN };
    selection.is_empty().then_some(LookupResult::Nothing(rcode))
}

impl LookupResult {
    fn of_message(response: &Response) -> LookupResult {
        let has_answer = response.message.section(Section::Answer).next().is_some();
        if has_answer || response.message.is_truncated() { LookupResult::Answered } else { LookupResult::NoData }
    }
}
