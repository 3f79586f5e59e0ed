//! Metrics of *cache*.

use super::class::Class;
use metrics::{Counter, Kind, Metric, Registry, Table};

const LABELS: [&str; 3] = ["server", "zones", "view"];
const TYPED: [&str; 4] = ["server", "type", "zones", "view"];

pub(super) static ENTRIES: Metric = Metric {
    name: "coredns_cache_entries",
    help: "The number of elements in the cache.",
    kind: Kind::Gauge,
    labels: &TYPED,
};
static REQUESTS: Metric = Metric {
    name: "coredns_cache_requests_total",
    help: "The count of cache requests.",
    kind: Kind::Counter,
    labels: &LABELS,
};
static HITS: Metric = Metric {
    name: "coredns_cache_hits_total",
    help: "The count of cache hits.",
    kind: Kind::Counter,
    labels: &["server", "zones", "view", "type"],
};
static MISSES: Metric = Metric {
    name: "coredns_cache_misses_total",
    help: "The count of cache misses. Deprecated, derive misses from cache hits/requests counters.",
    kind: Kind::Counter,
    labels: &LABELS,
};
static PREFETCHES: Metric = Metric {
    name: "coredns_cache_prefetch_total",
    help: "The number of times the cache has prefetched a cached item.",
    kind: Kind::Counter,
    labels: &LABELS,
};
static DROPS: Metric = Metric {
    name: "coredns_cache_drops_total",
    help: "The number of responses that are not cached, because the reply is malformed.",
    kind: Kind::Counter,
    labels: &LABELS,
};
static STALE: Metric = Metric {
    name: "coredns_cache_served_stale_total",
    help: "The number of requests served from stale cache entries.",
    kind: Kind::Counter,
    labels: &LABELS,
};
static EVICTIONS: Metric = Metric {
    name: "coredns_cache_evictions_total",
    help: "The count of cache evictions.",
    kind: Kind::Counter,
    labels: &["server", "zones", "view", "type"],
};

static INSERTIONS: Metric = Metric {
    name: "portolan_cache_insertions_total",
    help: "Entries inserted into the cache.",
    kind: Kind::Counter,
    labels: &["server", "zones", "view", "type"],
};

pub(super) static ALL: [&Metric; 9] =
    [&ENTRIES, &REQUESTS, &HITS, &MISSES, &PREFETCHES, &DROPS, &STALE, &EVICTIONS, &INSERTIONS];

/// Label values of the two classes of entries, by index.
const TYPES: [&str; 2] = [Class::Answer.label(), Class::Denial.label()];

/// Series of one site.
#[derive(Clone, Copy)]
pub(super) struct CacheMetrics {
    pub(super) requests: Counter,
    hits: Table,
    pub(super) misses: Counter,
    pub(super) prefetches: Counter,
    pub(super) drops: Counter,
    pub(super) stale: Counter,
    evictions: Table,
    insertions: Table,
}

impl CacheMetrics {
    pub(super) fn new(registry: &Registry, server: &str, zones: &str, view: &str) -> CacheMetrics {
        let labels = [server, zones, view];
        CacheMetrics {
            requests: registry.counter(&REQUESTS, &labels),
            hits: registry.table(&HITS, &labels, &[&TYPES]),
            misses: registry.counter(&MISSES, &labels),
            prefetches: registry.counter(&PREFETCHES, &labels),
            drops: registry.counter(&DROPS, &labels),
            stale: registry.counter(&STALE, &labels),
            evictions: registry.table(&EVICTIONS, &labels, &[&TYPES]),
            insertions: registry.table(&INSERTIONS, &labels, &[&TYPES]),
        }
    }

    pub(super) fn hits(&self, class: Class) -> Counter {
        self.hits.counter([class as usize, 0, 0])
    }

    pub(super) fn insertions(&self, class: Class) -> Counter {
        self.insertions.counter([class as usize, 0, 0])
    }

    pub(super) fn evictions(&self, class: Class) -> Counter {
        self.evictions.counter([class as usize, 0, 0])
    }
}
