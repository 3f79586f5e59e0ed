//! Query metrics under the names that the process `kube-dns` used.

use config::setup::Setup;
use engine::{Query, Response, Worker};
use metrics::{Buckets, Histogram, Kind, Metric, Table};
use wire::Rcode;

use common_plugins::shared::cache_statistics::CacheStatistics;
use common_plugins::shared::cluster_view::is_reverse;

static TIMES: Buckets = Buckets {
    bounds: &[
        1_000_000,
        3_000_000,
        5_000_000,
        10_000_000,
        25_000_000,
        50_000_000,
        100_000_000,
        250_000_000,
        500_000_000,
        1_000_000_000,
        2_500_000_000,
        5_000_000_000,
        10_000_000_000,
    ],
    per_unit: 1e9,
};
static SIZES: Buckets = Buckets {
    bounds: &[
        0, 512, 1024, 1500, 2048, 4096, 8192, 12_288, 16_384, 20_480, 24_576, 28_672, 32_768, 36_864, 40_960, 45_056,
        49_152, 53_248, 57_344, 61_440, 65_536,
    ],
    per_unit: 1.0,
};

static REQUESTS: Metric = Metric {
    name: "skydns_skydns_dns_request_count_total",
    help: "Counter of DNS requests made.",
    kind: Kind::Counter,
    labels: &["system"],
};
static DURATIONS: Metric = Metric {
    name: "skydns_skydns_dns_request_duration_seconds",
    help: "Histogram of the time (in seconds) each request took to resolve.",
    kind: Kind::Histogram(&TIMES),
    labels: &["system"],
};
static RESPONSE_SIZES: Metric = Metric {
    name: "skydns_skydns_dns_response_size_bytes",
    help: "Size of the returned response in bytes.",
    kind: Kind::Histogram(&SIZES),
    labels: &["system"],
};
static ERRORS: Metric = Metric {
    name: "skydns_skydns_dns_error_count_total",
    help: "Counter of DNS requests resulting in an error.",
    kind: Kind::Counter,
    labels: &["system", "cause"],
};
static MISSES: Metric = Metric {
    name: "skydns_skydns_dns_cachemiss_count_total",
    help: "Counter of DNS requests that result in a cache miss.",
    kind: Kind::Counter,
    labels: &["cache"],
};

pub(super) static METRICS: [&Metric; 5] = [&REQUESTS, &DURATIONS, &RESPONSE_SIZES, &ERRORS, &MISSES];

/// Default prefix of the metric names.
const PREFIX: &str = "skydns_skydns_";
/// Values of the label `system`: source of the answer.
const SYSTEMS: [&str; 5] = ["auth", "cache", "recursive", "reverse", "stub"];
const AUTH: usize = 0;
const CACHE: usize = 1;
const RECURSIVE: usize = 2;
const REVERSE: usize = 3;
const STUB: usize = 4;
/// Values of the label `cause`.
const CAUSES: [&str; 6] = ["nxdomain", "nodata", "truncated", "refused", "overflow", "servfail"];
const NXDOMAIN: usize = 0;
const TRUNCATED: usize = 2;
const REFUSED: usize = 3;
const SERVFAIL: usize = 5;

/// Handles of the metrics.
pub(super) struct Count {
    requests: Table,
    durations: Table,
    sizes: Table,
    errors: Table,
    /// System of each directive of the block.
    systems: Vec<usize>,
}

impl Count {
    /// Registers the metrics with the given namespace and subsystem as prefix.
    pub(super) fn new([namespace, subsystem]: &[String; 2], is_stub: bool, setup: &Setup<'_>) -> Count {
        let named = |metric: &'static Metric| {
            let rest = metric.name.strip_prefix(PREFIX).unwrap_or(metric.name);
            metric.renamed(&format!("{namespace}_{subsystem}_{rest}"))
        };
        let table = |metric, dimensions: &[&[&str]]| setup.registry.table(named(metric), &[], dimensions);
        if let Some(cache) = setup.below.find::<std::sync::Arc<CacheStatistics>>() {
            setup.registry.alias(named(&MISSES), &["response"], &cache.misses);
        }
        let system = |name: &&str| match *name {
            "cache" => CACHE,
            "forward" if is_stub => STUB,
            "forward" => RECURSIVE,
            _ => AUTH,
        };
        Count {
            requests: table(&REQUESTS, &[&SYSTEMS]),
            durations: table(&DURATIONS, &[&SYSTEMS]),
            sizes: table(&RESPONSE_SIZES, &[&SYSTEMS]),
            errors: table(&ERRORS, &[&SYSTEMS, &CAUSES]),
            systems: setup.block.directives.iter().map(system).collect(),
        }
    }

    /// Counts a query and its response.
    pub(super) fn count(&self, query: &Query, response: &Response, worker: &Worker) {
        let counters = &worker.counters;
        let system = self.system(query, response);
        counters.count(self.requests.counter([system, 0, 0]));
        let observe = |histogram: Option<Histogram>, value: u64| {
            if let Some(histogram) = histogram {
                counters.observe(histogram, value);
            }
        };
        let taken = worker.now().since(query.received);
        observe(self.durations.histogram([system, 0, 0]), u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX));
        observe(self.sizes.histogram([system, 0, 0]), response.message.len() as u64);
        let cause = match response.rcode() {
            Rcode::NXDOMAIN => Some(NXDOMAIN),
            Rcode::REFUSED => Some(REFUSED),
            Rcode::SERVFAIL => Some(SERVFAIL),
            _ if response.message.is_truncated() => Some(TRUNCATED),
            _ => None,
        };
        if let Some(cause) = cause {
            counters.count(self.errors.counter([system, cause, 0]));
        }
    }

    fn system(&self, query: &Query, response: &Response) -> usize {
        let source = response.source().and_then(|at| self.systems.get(at)).copied();
        match source.unwrap_or(AUTH) {
            AUTH if is_reverse(query.key()) => REVERSE,
            system => system,
        }
    }
}
