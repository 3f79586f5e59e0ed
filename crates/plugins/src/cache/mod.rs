//! Keeps answers for a while.
//!
//! On the way down a question is looked up; on the way up an answer is kept, or replaced by one that is past its time.

mod config;
mod entry;
mod metrics;
mod store;

use core::time::Duration;
use std::sync::Arc;

use engine::metrics::Counter;
use engine::setup::{LocalAnswers, LocalZones, Part, Setup, SetupError};
use engine::{Hooks, Moment, Plugin, Query, Response, Verdict, Worker, Zones};
use wire::{EdeCode, Mark, Opcode, Rcode, Section, Type};

pub(crate) use config::MANIFEST;

use crate::cached::CacheStatistics;
use crate::classify::Kind;
use config::{Class, Config, Stale};
use entry::{Entry, Key};
use metrics::{CacheMetrics, ENTRIES, TYPES};
use store::Store;

/// A note of a query: the client had set AD.
const CLIENT_AD: u64 = 1;
/// A note of a query: an entry past its time takes the place of an answer that is not good.
const HAS_STALE: u64 = 2;
/// A note of a query: it asks for an entry anew, and nobody waits for it.
const REFRESH: u64 = 4;
/// A note of a query: it is none of the cache's.
const PASSED: u64 = 8;
/// The time to live of messages that have none of their own.
const TTL_OF_NOTHING: u32 = 5;
/// Aliases that are followed from a name to its answer; longer chains are not kept.
const ALIASES_MAX: usize = 16;

fn build(configs: Vec<Config>, setup: &mut Setup<'_>) -> Result<Option<Part>, SetupError> {
    let Some(config) = configs.into_iter().next() else { return Ok(None) };
    let zones_label = config.zones_label(setup.block);
    // Blocks of the same zones on other addresses, or for other clients, may ask others: what is kept is theirs alone.
    let on: Vec<_> = setup.block.sites.iter().map(|site| (&site.server, &site.zone, &site.view)).collect();
    let key = format!("cache {on:?} {zones_label} {config:?}");
    let stores =
        setup.carried.take_over(key, || [Store::new(config.success.capacity), Store::new(config.denial.capacity)]);
    let sites: Vec<_> = setup
        .block
        .sites
        .iter()
        .map(|site| {
            for (place, name) in TYPES.into_iter().enumerate() {
                let stores = Arc::downgrade(&stores);
                #[allow(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
                let read = move || stores.upgrade().map(|stores| stores[place].len() as f64);
                setup.registry.gauge(&ENTRIES, &[&site.server, name, &zones_label, &setup.block.view], read);
            }
            CacheMetrics::new(setup.registry, &site.server, &zones_label, &site.view)
        })
        .collect();
    setup.below.provide(Arc::new(statistics(&sites, config.success.capacity)));
    let zones = setup.zones_or_keys(&config.zones);
    let local = setup.below.find::<LocalZones>().unwrap_or_default();
    let plugin = Cache {
        first_site: setup.block.sites.first().map_or(0, |site| site.index),
        sites,
        stores,
        local: local.0,
        local_answers: setup.below.find(),
        not_kept: [&config.success, &config.denial].map(|class| class.disabled.iter().cloned().collect()),
        config,
    };
    Ok(Some(Part { zones: Some(zones), ..Part::new(plugin, Hooks::BOTH) }))
}

/// What those above may tell of it.
fn statistics(sites: &[CacheMetrics], capacity: usize) -> CacheStatistics {
    let of_both = |counter: fn(&CacheMetrics, bool) -> Counter| {
        sites.iter().flat_map(|site| [counter(site, false), counter(site, true)]).collect()
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
    first_site: usize,
    sites: Vec<CacheMetrics>,
    /// Answers and denials.
    stores: Arc<[Store; 2]>,
    /// Zones that are answered from memory below.
    local: Zones,
    /// Queries that are answered from memory below, whoever answered them before.
    local_answers: Option<LocalAnswers>,
    /// Zones in which answers, and in which denials, are not kept.
    not_kept: [Zones; 2],
}

impl Plugin for Cache {
    fn on_query(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        if query.qtype.is_transfer() || self.is_local(query) {
            query.set_note(PASSED);
            return Verdict::Pass;
        }
        self.count(query, worker, |metrics| metrics.requests);
        query.set_note(if query.flags().authentic_data() { CLIENT_AD } else { 0 });
        let is_question = query.flags().opcode() == Opcode::QUERY;
        if is_question {
            // An upstream shows whether data is authentic to those who can tell it (RFC 6840 §5.7).
            query.request.header.flags = query.flags().with_authentic_data(true);
        }
        if self.answer(query, response, worker) {
            restrict_ad(query, response);
            response.set_local();
            return Verdict::Done;
        }
        if !is_question {
            // What answers a notification (RFC 1996 §4.7) answers no question, and is not kept.
            query.set_note(PASSED);
        }
        Verdict::Pass
    }

    fn on_response(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> Verdict {
        let note = query.note();
        if note & PASSED != 0 || response.is_local() {
            self.cap_ttls(query, response);
            return Verdict::Pass;
        }
        let now = worker.now();
        if note & REFRESH != 0 && !is_good(response) {
            self.refresh_failed(query, now);
        } else if note & HAS_STALE != 0 && self.is_outdone_by_stale(query, response, now) {
            self.refresh_failed(query, now);
            if query.is_awaited() {
                self.replace_by_stale(query, response, worker);
                restrict_ad(query, response);
            }
            return Verdict::Done;
        } else {
            self.keep(query, response, worker, now);
        }
        restrict_ad(query, response);
        Verdict::Pass
    }
}

/// What was found for a question.
enum Found {
    /// An entry that is alive stands in the response.
    Fresh {
        /// It is worth asking for anew.
        prefetch: bool,
    },
    /// An entry past its time is of use.
    Stale {
        /// It must not be asked for anew yet.
        held_back: bool,
    },
}

/// What becomes of an answer.
struct Fate {
    /// Where it is kept: among the answers, or among the denials.
    class: Option<bool>,
    /// The time to live of all its records, in seconds.
    ttl: u32,
}

/// Which entries are looked for, one after the other: denials or answers, alive or past their time.
type Order = [(bool, bool); 4];
const ALIVE_FIRST: Order = [(false, true), (true, true), (false, false), (true, false)];
const ANSWERS_FIRST: Order = [(false, true), (false, false), (true, true), (true, false)];

impl Cache {
    /// Whether a query is answered from memory below.
    fn is_local(&self, query: &Query) -> bool {
        let answers = |LocalAnswers(answers): &LocalAnswers| answers(query);
        self.local.contain(query.key()) || self.local_answers.as_ref().is_some_and(answers)
    }

    /// Answers out of the cache, if that is the thing to do; notes what is there otherwise.
    ///
    /// What is there counts as a hit even where it is verified first, as in CoreDNS.
    fn answer(&self, query: &mut Query, response: &mut Response, worker: &mut Worker) -> bool {
        let now = query.received;
        let Some((denial, found)) = self.find(query, response, now) else {
            self.count(query, worker, |metrics| metrics.misses);
            return false;
        };
        self.count(query, worker, |metrics| metrics.hits(denial));
        match (found, self.config.stale) {
            (Found::Fresh { prefetch }, _) => {
                if prefetch {
                    self.refresh(query, worker);
                }
                true
            }
            (Found::Stale { held_back: false }, Some(Stale { verify: Some(timeout), .. })) => {
                query.set_note(query.note() | HAS_STALE);
                if !timeout.is_zero() {
                    query.wait_until(now + timeout);
                }
                false
            }
            (Found::Stale { held_back }, _) => {
                let served = self.serve_stale(denial, query, response, worker);
                if served && !held_back && self.begin_refresh(denial, query, now) {
                    self.refresh(query, worker);
                }
                served
            }
        }
    }

    /// Asks below for an entry anew.
    fn refresh(&self, query: &mut Query, worker: &mut Worker) {
        self.count(query, worker, |metrics| metrics.prefetches);
        let note = query.note();
        query.set_note(note | REFRESH);
        worker.refresh(query);
        query.set_note(note);
    }

    /// The best entry for a question; one that is alive is put into the response.
    ///
    /// An answer and a denial of the same question are there together only if the denial is a failure, which hides no
    /// answer that is alive, or if old answers are preferred.
    fn find(&self, query: &Query, response: &mut Response, now: Moment) -> Option<(bool, Found)> {
        let order = if self.config.prefer_positive { ANSWERS_FIRST } else { ALIVE_FIRST };
        let key = Key::of(query);
        order.into_iter().filter(|(_, alive)| *alive || self.config.stale.is_some()).find_map(|(denial, alive)| {
            let look = |entry: &Entry| self.look(entry, alive, response, now);
            self.stores[usize::from(denial)].read(&key, look).flatten().map(|found| (denial, found))
        })
    }

    fn look(&self, entry: &Entry, alive: bool, response: &mut Response, now: Moment) -> Option<Found> {
        match entry.left(now) {
            Some(left) if alive => {
                entry.restore(response, if self.config.keep_ttl { entry.ttl() } else { left });
                if entry.rcode() == Rcode::SERVFAIL {
                    response.set_ede(EdeCode::CACHED_ERROR, "");
                }
                Some(Found::Fresh { prefetch: entry.hit(self.config.prefetch, left, now) })
            }
            None if !alive && entry.is_of_use(now, self.keep_stale()) => {
                Some(Found::Stale { held_back: entry.is_held_back(now) })
            }
            _ => None,
        }
    }

    fn begin_refresh(&self, denial: bool, query: &Query, now: Moment) -> bool {
        let begin = |entry: &Entry| entry.begin_refresh(now);
        self.stores[usize::from(denial)].read(&Key::of(query), begin).unwrap_or(false)
    }

    fn refresh_failed(&self, query: &Query, now: Moment) {
        let recheck = self.config.stale.map_or(Duration::ZERO, |stale| stale.recheck);
        for store in &*self.stores {
            store.read(&Key::of(query), |entry| entry.end_refresh(now + recheck));
        }
    }

    /// Puts an entry past its time into the response, and says so (RFC 8914 §4.4 and §4.20).
    fn serve_stale(&self, denial: bool, query: &Query, response: &mut Response, worker: &Worker) -> bool {
        let ttl = self.config.stale.map_or(0, |stale| stale.ttl);
        let restore = |entry: &Entry| entry.restore(response, ttl);
        if self.stores[usize::from(denial)].read(&Key::of(query), restore).is_none() {
            return false;
        }
        let is_denial = response.rcode() == Rcode::NXDOMAIN;
        response.set_ede(if is_denial { EdeCode::STALE_NXDOMAIN } else { EdeCode::STALE_ANSWER }, "");
        self.count(query, worker, |metrics| metrics.stale);
        true
    }

    /// Whether what came from below is worse than an entry past its time.
    fn is_outdone_by_stale(&self, query: &Query, response: &Response, now: Moment) -> bool {
        let of_use = |entry: &Entry| entry.is_of_use(now, self.keep_stale());
        let answer_of_use = || self.stores[0].read(&Key::of(query), of_use) == Some(true);
        let denies = || Kind::of(query, response) != Kind::NoError;
        !is_good(response) || (self.config.prefer_positive && denies() && answer_of_use())
    }

    fn replace_by_stale(&self, query: &Query, response: &mut Response, worker: &Worker) {
        let failure = response.failure().cloned();
        response.begin(query);
        if !(self.serve_stale(false, query, response, worker) || self.serve_stale(true, query, response, worker))
            && let Some(failure) = failure
        {
            response.fail(query, failure);
        }
    }

    fn keep_stale(&self) -> Duration {
        self.config.stale.map_or(Duration::ZERO, |stale| stale.keep)
    }

    /// Keeps an answer if it may be kept, and gives all its records one time to live, as CoreDNS does: the lowest among
    /// them, within the bounds.
    fn keep(&self, query: &Query, response: &mut Response, worker: &mut Worker, now: Moment) {
        if response.failure().is_some_and(|failure| failure.ede == EdeCode::INVALID_DATA) {
            self.count(query, worker, |metrics| metrics.drops);
        }
        let Some(fate) = self.fate(query, response) else { return };
        response.message.set_ttls(fate.ttl);
        let Fate { ttl, class: Some(denial) } = fate else { return };
        let place = usize::from(denial);
        if response.message.is_truncated() || self.not_kept[place].contain(query.key()) || ttl == 0 {
            return;
        }
        let entry = Entry::new(query, response, ttl, now);
        let evicted = self.stores[place].keep(entry, now, self.keep_stale(), worker.random());
        if let Some(metrics) = self.metrics(query) {
            worker.counters.count(metrics.insertions(denial));
            worker.counters.add(metrics.evictions(denial), evicted as u64);
        }
        self.outdate(denial, response.rcode(), query, now + Duration::from_secs(ttl.into()));
    }

    /// What a name has become outdates what it was; a failure outdates nothing. Where old answers are preferred to
    /// denials, an answer past its time stays, but is not asked for again while the denial holds.
    fn outdate(&self, denial: bool, rcode: Rcode, query: &Query, holds_until: Moment) {
        let key = Key::of(query);
        if !denial {
            self.stores[1].remove(&key);
        } else if self.config.prefer_positive {
            self.stores[0].read(&key, |entry| entry.end_refresh(holds_until));
        } else if rcode != Rcode::SERVFAIL {
            self.stores[0].remove(&key);
        }
    }

    /// What becomes of an answer; `None` if it is none of the cache's.
    fn fate(&self, query: &Query, response: &Response) -> Option<Fate> {
        let own = response.message.ttl_min().unwrap_or(TTL_OF_NOTHING);
        let empty = response.message.section(Section::Answer).next().is_none();
        let soa = response.message.section(Section::Authority).find(|mark| mark.rtype == Type::SOA);
        let negative = soa.map_or(own, |soa| own.min(minimum_of(response, soa)));
        let (class, ttl) = match Kind::of(query, response) {
            Kind::NoError if empty || leads_to_answer(query, response) => (Some(false), own),
            // An alias without what it leads to is a denial, if it says for how long.
            Kind::NoError | Kind::NameError => (soa.map(|_| true), negative),
            Kind::NoData => (Some(true), negative),
            Kind::Delegation => (Some(false), TTL_OF_NOTHING),
            Kind::ServerError => {
                let seconds = u32::try_from(self.config.servfail.as_secs()).unwrap_or(u32::MAX);
                let kept = seconds > 0 && is_of_upstreams(response);
                return Some(Fate { class: kept.then_some(true), ttl: seconds });
            }
            Kind::OtherError => (None, TTL_OF_NOTHING),
            Kind::Meta => return None,
        };
        let Class { ttl_max, ttl_min, .. } =
            if class == Some(true) { &self.config.denial } else { &self.config.success };
        Some(Fate { class, ttl: ttl.max(*ttl_min).min(*ttl_max) })
    }

    /// No record lives longer than the cache would keep it.
    fn cap_ttls(&self, query: &Query, response: &mut Response) {
        let denies = matches!(Kind::of(query, response), Kind::NoData | Kind::NameError);
        let cap = if denies { self.config.denial.ttl_max } else { self.config.success.ttl_max };
        for at in 0..response.message.marks().len() {
            let mark = response.message.marks()[at];
            if response.message.ttl(mark) > cap {
                response.message.set_ttl(mark, cap);
            }
        }
    }

    fn count(&self, query: &Query, worker: &Worker, pick: impl Fn(&CacheMetrics) -> Counter) {
        if let Some(metrics) = self.metrics(query) {
            worker.counters.count(pick(metrics));
        }
    }

    fn metrics(&self, query: &Query) -> Option<&CacheMetrics> {
        query.site.checked_sub(self.first_site).and_then(|at| self.sites.get(at))
    }
}

fn is_good(response: &Response) -> bool {
    response.failure().is_none() && matches!(response.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN)
}

/// Whether a failure is that of upstreams, which are to be spared for a while (RFC 9520 §3.2), and none of this server
/// alone, such as having too much to do.
fn is_of_upstreams(response: &Response) -> bool {
    const THEIRS: [EdeCode; 3] = [EdeCode::NO_REACHABLE_AUTHORITY, EdeCode::NETWORK_ERROR, EdeCode::INVALID_DATA];
    response.failure().is_none_or(|failure| THEIRS.contains(&failure.ede))
}

/// AD is for clients that know it, by having set it or DO (RFC 6840 §5.8).
fn restrict_ad(query: &Query, response: &mut Response) {
    if query.note() & CLIENT_AD == 0 && !query.dnssec_ok {
        response.message.header.flags = response.message.header.flags.with_authentic_data(false);
    }
}

/// The minimum field of a SOA record: how long a denial with it may be kept at most (RFC 2308 §5).
fn minimum_of(response: &Response, soa: Mark) -> u32 {
    let rdata = response.message.octets_at(soa.rdata_range());
    rdata.last_chunk::<4>().map_or(0, |octets| u32::from_be_bytes(*octets))
}

/// Whether the answer has a record of the type asked, at the name asked or where its aliases lead.
fn leads_to_answer(query: &Query, response: &Response) -> bool {
    let message = &response.message;
    let mut name = query.name().to_name();
    for _ in 0..ALIASES_MAX {
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
