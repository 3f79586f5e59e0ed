//! Caches responses.
//!
//! Queries are looked up on the way down. On the way up, responses are stored, or replaced by an expired entry if they
//! failed and `serve_stale` is on.

mod class;
mod entry;
mod explain;
mod inspection;
mod manifest;
mod metrics;
mod store;

use core::time::Duration;
use std::sync::Arc;

use ::metrics::Counter;
use config::setup::{CachesAbove, InspectCache, Kept, LocalAnswers, LocalZones, Part, Setup, SetupError};
use engine::{Explanation, Hook, Hooks, Instant, Plugin, Query, Response, SiteId, Verdict, Worker, Zones};
use host::invariant::{Expected as _, holds};
use wire::{EdeCode, Mark, Opcode, Rcode, Section, Type};

pub(crate) use explain::REASONS;
pub(crate) use manifest::MANIFEST;

use self::metrics::{CacheMetrics, ENTRIES};
use crate::shared::cache_statistics::CacheStatistics;
use crate::shared::response_class::Kind;
use class::{Class, Freshness, PerClass};
use entry::{Entry, Key};
use inspection::CacheView;
use manifest::{Bounds, Config, Stale};
use store::Store;

/// Note of a query: the client set AD.
const CLIENT_AD: u64 = 1;
/// Note of a query: an expired entry can replace a bad response.
const HAS_STALE: u64 = 2;
/// Note of a query: it is a refresh without a waiting client.
const REFRESH: u64 = 4;
/// Note of a query: the cache ignores it.
const PASSED: u64 = 8;
/// TTL in seconds of messages without records.
const TTL_OF_NOTHING: u32 = 5;
/// Memory of a full cache of the default capacity in bytes: successes and denials.
pub const MEMORY: usize = 2 * manifest::CAPACITY * store::BYTES_EACH;

/// Maximum length of a CNAME chain. Answers with longer chains are not cached.
const ALIASES_MAX: usize = 16;

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let zones_label = config.zones_label(setup.block);
    // Blocks for the same zones on other addresses or for other clients may use other upstreams, so they never share
    // entries.
    let on: Vec<_> = setup.block.sites.iter().map(|site| (&site.server, &site.zone, &site.view)).collect();
    let key = format!("cache {on:?} {zones_label} {config:?}");
    let capacities = PerClass::new(|class| config.bounds(class).capacity);
    let stores = setup.keep(key, move || PerClass::new(|class| Store::new(capacities[class])));
    let sites: Vec<_> = setup
        .block
        .sites
        .iter()
        .map(|site| {
            for class in Class::ALL {
                let stores = Arc::downgrade(&stores);
                #[allow(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
                let read = move || stores.upgrade().map(|stores| stores[class].len() as f64);
                let labels = [&site.server, class.label(), &zones_label, &setup.block.view];
                setup.registry.gauge(&ENTRIES, &labels, read);
            }
            CacheMetrics::new(setup.registry, &site.server, &zones_label, &site.view)
        })
        .collect();
    holds(sites.len() == setup.block.sites.len(), "each site has its counters");
    setup.below.provide(Arc::new(statistics(&sites, config.success.capacity)));
    let capacity = config.success.capacity + config.denial.capacity;
    let view: Arc<dyn InspectCache> = Arc::new(CacheView::new(setup.block, capacity, &stores));
    if let Some(caches) = setup.below.find::<CachesAbove>() {
        caches.add(&view);
    }
    setup.requests.inspection.caches.push(view);
    let zones = setup.zones_or_keys(&config.zones);
    let local = setup.below.find::<LocalZones>().unwrap_or_default();
    let plugin = Cache {
        first_site: setup.block.sites.first().map(|site| site.id).unwrap_or_default(),
        sites,
        stores,
        local: local.0,
        local_answers: setup.below.find(),
        not_kept: PerClass::new(|class| config.bounds(class).disabled.iter().cloned().collect()),
        config,
    };
    Ok(Some(Part { zones: Some(zones), ..Part::new(plugin, Hooks::BOTH) }))
}

/// Collects the statistics for the plugins above.
fn statistics(sites: &[CacheMetrics], capacity: usize) -> CacheStatistics {
    let of_both = |counter: fn(&CacheMetrics, Class) -> Counter| {
        sites.iter().flat_map(|site| Class::ALL.map(|class| counter(site, class))).collect()
    };
    CacheStatistics {
        capacity,
        hits: of_both(CacheMetrics::hits),
        misses: sites.iter().map(|site| site.misses).collect(),
        insertions: of_both(CacheMetrics::insertions),
        evictions: of_both(CacheMetrics::evictions),
    }
}

struct Cache {
    config: Config,
    first_site: SiteId,
    sites: Vec<CacheMetrics>,
    stores: Arc<Kept<PerClass<Store>>>,
    /// Zones that a plugin below answers from memory.
    local: Zones,
    /// Queries that a plugin below answers from memory, even if another plugin answered them before.
    local_answers: Option<LocalAnswers>,
    /// Zones in which a class is not cached.
    not_kept: PerClass<Zones>,
}

/// Purpose of a run through the chain.
trait Mode {
    /// True if it may change the entries.
    const KEEPS: bool;
}

/// A client waits, or an entry is refreshed.
struct Serving;

impl Mode for Serving {
    const KEEPS: bool = true;
}

/// An explanation of what would be answered.
struct Rehearsing;

impl Mode for Rehearsing {
    const KEEPS: bool = false;
}

impl Plugin for Cache {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        self.down::<Serving>(query, response, worker)
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        self.up::<Serving>(query, response, worker)
    }

    fn rehearse_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        self.down::<Rehearsing>(query, response, worker)
    }

    fn rehearse_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        self.up::<Rehearsing>(query, response, worker)
    }

    fn explain(&self, hook: Hook, query: &Query, response: &Response, now: Instant) -> Option<Explanation> {
        if hook == Hook::Query || response.ede().is_some() { self.explained(query, now) } else { None }
    }
}

impl Cache {
    fn down<M: Mode>(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        holds(query.note() == 0, "a query comes down once");
        if query.qtype.is_transfer() || self.is_local(query) {
            query.set_note(PASSED);
            return Verdict::Pass;
        }
        self.count(query, worker, |metrics| metrics.requests);
        query.set_note(if query.flags().authentic_data() { CLIENT_AD } else { 0 });
        let is_question = query.flags().opcode() == Opcode::QUERY;
        if is_question {
            // AD in a query asks the upstream to report in AD if the data is authentic (RFC 6840 §5.7).
            query.request.header.flags = query.flags().with_authentic_data(true);
        }
        if self.answer::<M>(query, response, worker) {
            restrict_ad(query, response);
            response.set_local();
            return Verdict::Done;
        }
        if !is_question {
            // A response to a NOTIFY (RFC 1996 §4.7) does not answer a question and is not cached.
            query.set_note(PASSED);
        }
        Verdict::Pass
    }

    fn up<M: Mode>(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let note = query.note();
        holds(note & PASSED == 0 || note == PASSED, "nothing is known about a query that the cache ignores");
        let both = REFRESH | HAS_STALE;
        holds(note & both != both, "a refresh does not verify an entry for a client");
        if query.qtype.is_transfer() {
            // A secondary gets the records as they are in the zone (RFC 5936 §2.2).
            return Verdict::Pass;
        }
        if note & PASSED != 0 || response.is_local() {
            self.cap_ttls(query, response);
            return Verdict::Pass;
        }
        let now = worker.now();
        if note & REFRESH != 0 && !is_good(response) {
            self.refresh_failed(query, now);
        } else if note & HAS_STALE != 0 && self.is_outdone_by_stale(query, response, now) {
            if M::KEEPS && !query.has_timed_out() {
                self.refresh_failed(query, now);
            }
            if query.is_awaited() {
                self.replace_by_stale(query, response, worker);
                restrict_ad(query, response);
            }
            return Verdict::Done;
        } else {
            if M::KEEPS && note & HAS_STALE != 0 {
                // Another query may verify the entry, unless this response replaces it.
                self.end_refresh(query, now);
            }
            self.keep::<M>(query, response, worker, now);
        }
        restrict_ad(query, response);
        Verdict::Pass
    }
}

/// Result of a lookup.
enum LookupResult {
    /// A valid entry, which has been written into the response.
    Fresh {
        /// True if the entry should be prefetched.
        prefetch: bool,
    },
    /// An expired entry that can be used.
    Stale {
        /// True if it must not be refreshed yet.
        held_back: bool,
    },
}

/// Caching decision for a response.
struct Fate {
    /// Class of the response; `None` if it is not cached.
    class: Option<Class>,
    /// TTL in seconds of all its records.
    ttl: u32,
}

/// Order in which entries for a question are looked for.
type LookupOrder = [(Class, Freshness); 4];
const VALID_FIRST: LookupOrder = [
    (Class::Answer, Freshness::Valid),
    (Class::Denial, Freshness::Valid),
    (Class::Answer, Freshness::Expired),
    (Class::Denial, Freshness::Expired),
];
const ANSWERS_FIRST: LookupOrder = [
    (Class::Answer, Freshness::Valid),
    (Class::Answer, Freshness::Expired),
    (Class::Denial, Freshness::Valid),
    (Class::Denial, Freshness::Expired),
];

impl Cache {
    /// Returns true if a plugin below answers the query from memory.
    fn is_local(&self, query: &Query) -> bool {
        let answers = |LocalAnswers(answers): &LocalAnswers| answers(query);
        self.local.contain(query.key()) || self.local_answers.as_ref().is_some_and(answers)
    }

    /// Answers from the cache if possible. Otherwise records in the note of the query if there is an expired entry.
    ///
    /// As in CoreDNS, an expired entry counts as a hit even if it is verified first.
    fn answer<M: Mode>(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> bool {
        let now = query.received;
        let Some((class, found)) = self.find::<M>(query, response, now) else {
            self.count(query, worker, |metrics| metrics.misses);
            return false;
        };
        self.count(query, worker, |metrics| metrics.hits(class));
        match (found, self.config.stale) {
            (LookupResult::Fresh { prefetch }, _) => {
                if prefetch {
                    self.refresh(query, worker);
                }
                true
            }
            (LookupResult::Stale { held_back: false }, Some(Stale { verify: Some(timeout), recheck, .. })) => {
                // With a limit for the wait, or between attempts, one query at a time verifies an entry.
                let verifies_alone = !timeout.is_zero() || !recheck.is_zero();
                if M::KEEPS && verifies_alone && !self.begin_refresh(class, query, now) {
                    return self.serve_stale(class, query, response, worker);
                }
                query.set_note(query.note() | HAS_STALE);
                if !timeout.is_zero() {
                    query.wait_until(now + timeout);
                }
                false
            }
            (LookupResult::Stale { held_back }, _) => {
                let served = self.serve_stale(class, query, response, worker);
                if M::KEEPS && served && !held_back && self.begin_refresh(class, query, now) {
                    self.refresh(query, worker);
                }
                served
            }
        }
    }

    /// Refreshes an entry from below, in the background.
    fn refresh(&self, query: &mut Query, worker: &mut Worker) {
        self.count(query, worker, |metrics| metrics.prefetches);
        let note = query.note();
        holds(note & (PASSED | HAS_STALE | REFRESH) == 0, "a query that hits an entry requests one refresh");
        // The refresh starts with a copy of the query, so the note that it copies is that of the refresh. The query
        // that a client waits for gets its own back.
        query.set_note(note | REFRESH);
        holds(query.is_awaited(), "a query that a client waits for requests a refresh");
        worker.refresh(query);
        query.set_note(note);
    }

    /// Finds the best entry for a question. A valid one is written into the response.
    ///
    /// An answer and a denial for the same question exist together only if the denial is a failure, which does not hide
    /// a valid answer, or if expired answers are preferred.
    fn find<M: Mode>(&self, query: &Query, response: &mut Response, now: Instant) -> Option<(Class, LookupResult)> {
        let order = if self.config.prefer_positive { ANSWERS_FIRST } else { VALID_FIRST };
        let key = Key::of(query);
        let may_use = |freshness: Freshness| freshness == Freshness::Valid || self.config.stale.is_some();
        order.into_iter().filter(|(_, freshness)| may_use(*freshness)).find_map(|(class, freshness)| {
            let look = |entry: &Entry| self.look::<M>(entry, freshness, response, now);
            self.stores[class].read(&key, look).flatten().map(|found| (class, found))
        })
    }

    fn look<M: Mode>(
        &self,
        entry: &Entry,
        freshness: Freshness,
        response: &mut Response,
        now: Instant,
    ) -> Option<LookupResult> {
        match (freshness, entry.left(now)) {
            (Freshness::Valid, Some(left)) => {
                holds(left > 0 && left <= entry.ttl(), "a valid entry has a part of its TTL left");
                entry.restore(response, if self.config.keep_ttl { entry.ttl() } else { left });
                if entry.rcode() == Rcode::SERVFAIL {
                    response.set_ede(EdeCode::CACHED_ERROR, "an earlier query for this name failed");
                }
                Some(LookupResult::Fresh { prefetch: M::KEEPS && entry.hit(self.config.prefetch, left, now) })
            }
            (Freshness::Expired, None) if entry.is_of_use(now, self.keep_stale()) => {
                holds(self.config.stale.is_some(), "an expired entry is of use with `serve_stale`");
                Some(LookupResult::Stale { held_back: entry.is_held_back(now) })
            }
            _ => None,
        }
    }

    fn begin_refresh(&self, class: Class, query: &Query, now: Instant) -> bool {
        // Another worker may have evicted the entry since it was found: then there is nothing to refresh.
        let begin = |entry: &Entry| entry.begin_refresh(now);
        self.stores[class].read(&Key::of(query), begin).unwrap_or(false)
    }

    fn refresh_failed(&self, query: &Query, now: Instant) {
        holds(query.note() & (REFRESH | HAS_STALE) != 0, "a refresh that fails was begun");
        // Without `serve_stale`, a prefetch may fail too. It may start again at once: its entry is still valid.
        let recheck = self.config.stale.map_or(Duration::ZERO, |stale| stale.recheck);
        self.end_refresh(query, now + recheck);
    }

    /// Records that no refresh of the entries for a question is running. The next one may start at `at`.
    fn end_refresh(&self, query: &Query, at: Instant) {
        for store in self.stores.values() {
            store.read(&Key::of(query), |entry| entry.end_refresh(at));
        }
    }

    /// Writes an expired entry into the response and marks it as stale (RFC 8914 §4.4, §4.20).
    fn serve_stale(&self, class: Class, query: &Query, response: &mut Response, worker: &Worker) -> bool {
        let ttl = self.config.stale.expected("`serve_stale` is on").map_or(0, |stale| stale.ttl);
        // Another worker may have evicted or replaced the entry since it was found.
        let (received, keep) = (query.received, self.keep_stale());
        // The other class may have an entry that is too old.
        let restore = |entry: &Entry| entry.is_of_use(received, keep).then(|| entry.restore(response, ttl));
        if self.stores[class].read(&Key::of(query), restore).flatten().is_none() {
            return false;
        }
        let is_denial = response.rcode() == Rcode::NXDOMAIN;
        let code = if is_denial { EdeCode::STALE_NXDOMAIN } else { EdeCode::STALE_ANSWER };
        response.set_ede(code, "answered from an expired cache entry");
        self.count(query, worker, |metrics| metrics.stale);
        true
    }

    /// Returns true if the response from below is worse than an expired entry.
    fn is_outdone_by_stale(&self, query: &Query, response: &Response, now: Instant) -> bool {
        let of_use = |entry: &Entry| entry.is_of_use(now, self.keep_stale());
        let answer_of_use = || self.stores[Class::Answer].read(&Key::of(query), of_use) == Some(true);
        let denies = || Kind::of(query, response) != Kind::NoError;
        !is_good(response) || (self.config.prefer_positive && denies() && answer_of_use())
    }

    fn replace_by_stale(&self, query: &Query, response: &mut Response, worker: &Worker) {
        holds(self.config.stale.is_some(), "`serve_stale` is on");
        let failure = response.failure().cloned();
        response.begin(query);
        if !Class::ALL.into_iter().any(|class| self.serve_stale(class, query, response, worker))
            && let Some(failure) = failure
        {
            response.fail(query, failure);
        }
    }

    fn keep_stale(&self) -> Duration {
        self.config.stale.map_or(Duration::ZERO, |stale| stale.keep)
    }

    /// Stores a response if it is cacheable. As in CoreDNS, all its records get the same TTL: the lowest of them,
    /// within the configured bounds.
    fn keep<M: Mode>(&self, query: &Query, response: &mut Response, worker: &mut Worker, now: Instant) {
        if response.failure().is_some_and(|failure| failure.ede == EdeCode::INVALID_DATA) {
            self.count(query, worker, |metrics| metrics.drops);
        }
        let Some(fate) = self.fate(query, response) else { return };
        response.message.set_ttls(fate.ttl);
        debug_assert!(
            response.message.ttl_min().is_none_or(|ttl| ttl == fate.ttl),
            "all records of a response that is stored have the same TTL"
        );
        let Fate { ttl, class: Some(class) } = fate else { return };
        if !M::KEEPS || response.message.is_truncated() || self.not_kept[class].contain(query.key()) || ttl == 0 {
            return;
        }
        holds(
            query.qtype != Type::AXFR && query.flags().opcode() == Opcode::QUERY,
            "only answers to questions are stored",
        );
        let entry = Entry::new(query, response, ttl, now);
        let evicted = self.stores[class].keep(entry, now, self.keep_stale(), worker.random());
        if let Some(metrics) = self.metrics(query) {
            worker.counters.count(metrics.insertions(class));
            worker.counters.add(metrics.evictions(class), evicted as u64);
        }
        self.outdate(class, response.rcode(), query, now + Duration::from_secs(ttl.into()));
    }

    /// Invalidates the entry that a new one contradicts. A failure invalidates nothing. If expired answers are
    /// preferred, the old answer stays, but is not refreshed while the denial is valid.
    fn outdate(&self, class: Class, rcode: Rcode, query: &Query, holds_until: Instant) {
        let key = Key::of(query);
        let answers = &self.stores[Class::Answer];
        match class {
            Class::Answer => self.stores[Class::Denial].remove(&key),
            Class::Denial if self.config.prefer_positive => {
                answers.read(&key, |entry| entry.end_refresh(holds_until));
            }
            Class::Denial if rcode != Rcode::SERVFAIL => answers.remove(&key),
            Class::Denial => {}
        }
    }

    /// Decides if and for how long a response is cached. Returns `None` if the cache does not handle it.
    fn fate(&self, query: &Query, response: &Response) -> Option<Fate> {
        let own = response.message.ttl_min().unwrap_or(TTL_OF_NOTHING);
        let empty = response.message.section(Section::Answer).next().is_none();
        let soa = response.message.section(Section::Authority).find(|mark| mark.rtype == Type::SOA);
        let negative = soa.map_or(own, |soa| own.min(minimum_of(response, soa)));
        let (class, ttl) = match Kind::of(query, response) {
            Kind::NoError if empty || leads_to_answer(query, response) => (Some(Class::Answer), own),
            // A CNAME record without its target counts as a denial if an SOA record says for how long.
            Kind::NoError | Kind::NameError => (soa.map(|_| Class::Denial), negative),
            Kind::NoData => (Some(Class::Denial), negative),
            Kind::Delegation => (Some(Class::Answer), TTL_OF_NOTHING),
            Kind::ServerError => {
                let seconds = u32::try_from(self.config.servfail.as_secs()).unwrap_or(u32::MAX);
                let kept = seconds > 0 && is_of_upstreams(response);
                return Some(Fate { class: kept.then_some(Class::Denial), ttl: seconds });
            }
            Kind::OtherError => (None, TTL_OF_NOTHING),
            Kind::Meta => return None,
        };
        holds(class.is_none() || !response.is_dropped(), "a query without a response is not cached");
        let Bounds { ttl_max, ttl_min, .. } = self.config.bounds(class.unwrap_or(Class::Answer));
        Some(Fate { class, ttl: ttl.max(*ttl_min).min(*ttl_max) })
    }

    /// Limits the TTL of all records to the maximum of the cache.
    fn cap_ttls(&self, query: &Query, response: &mut Response) {
        let denies = matches!(Kind::of(query, response), Kind::NoData | Kind::NameError);
        let cap = if denies { self.config.denial.ttl_max } else { self.config.success.ttl_max };
        response.message.cap_ttls(cap);
    }

    fn count(&self, query: &Query, worker: &Worker, pick: impl Fn(&CacheMetrics) -> Counter) {
        if let Some(metrics) = self.metrics(query) {
            worker.counters.count(pick(metrics));
        }
    }

    fn metrics(&self, query: &Query) -> Option<&CacheMetrics> {
        let at = query.site.position_from(self.first_site).expected("a site of this block");
        at.and_then(|at| self.sites.get(at).expected("the counters of a site"))
    }
}

fn is_good(response: &Response) -> bool {
    response.failure().is_none() && matches!(response.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN)
}

/// Returns true if a failure is that of upstreams, which must get a pause (RFC 9520 §3.2), and not one of this server,
/// such as overload.
fn is_of_upstreams(response: &Response) -> bool {
    const THEIRS: [EdeCode; 3] = [EdeCode::NO_REACHABLE_AUTHORITY, EdeCode::NETWORK_ERROR, EdeCode::INVALID_DATA];
    response.failure().is_none_or(|failure| THEIRS.contains(&failure.ede))
}

/// Clears AD unless the client signalled with AD or DO that it understands it (RFC 6840 §5.8).
fn restrict_ad(query: &Query, response: &mut Response) {
    if query.note() & CLIENT_AD == 0 && !query.dnssec_ok {
        response.message.header.flags = response.message.header.flags.with_authentic_data(false);
    }
}

/// Returns the minimum field of an SOA record: the upper limit for caching a denial (RFC 2308 §5).
fn minimum_of(response: &Response, soa: Mark) -> u32 {
    let rdata = response.message.bytes_at(soa.rdata_range());
    // Data of another server: a record that is too short allows no caching.
    rdata.last_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// Returns true if the answer has a record of the queried type at the query name or at the end of its CNAME chain.
fn leads_to_answer(query: &Query, response: &Response) -> bool {
    let message = &response.message;
    let mut name = query.name().to_name();
    // One more name than aliases: the last one has the answer.
    for _ in 0..=ALIASES_MAX {
        let mut target = None;
        for mark in
            message.section(Section::Answer).filter(|mark| message.owner(*mark).is_ok_and(|owner| owner == name))
        {
            if mark.rtype == query.qtype || query.qtype == Type::ANY {
                return true;
            }
            if mark.rtype == Type::CNAME {
                target = message.name_in(mark, 0).ok();
            }
        }
        let Some(next) = target else { return false };
        name = next;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Failure;

    #[test]
    fn keeps_failures_of_upstreams_and_not_those_of_this_server() {
        let mut response = Response::default();
        response.begin(&Query::default());
        response.set_rcode(Rcode::SERVFAIL);
        assert!(is_of_upstreams(&response), "an upstream answered so");
        for (code, expected) in [
            (EdeCode::NO_REACHABLE_AUTHORITY, true),
            (EdeCode::NETWORK_ERROR, true),
            (EdeCode::INVALID_DATA, true),
            (EdeCode::OTHER, false),
            (EdeCode::NOT_READY, false),
            (EdeCode::NOT_AUTHORITATIVE, false),
        ] {
            response.set_failure(Failure::servfail(code, ""));
            assert_eq!(is_of_upstreams(&response), expected, "{code:?}");
        }
    }
}
