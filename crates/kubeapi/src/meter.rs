//! Metrics of the connection to the API server and of manifests. They have CoreDNS's names where CoreDNS has them, so
//! that dashboards keep working.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use metrics::{Buckets, Counters, Kind, Metric, Registry, doubling};

use crate::age::Failing;
use crate::decode::UnreadableReason;
use crate::failure::ApiError;
use crate::health::ViewHealth;
use crate::target::Target;

/// Twenty buckets from 1 ms, each twice the previous.
static PROGRAMMING_TIME: Buckets = Buckets { bounds: &doubling::<20>(1_000_000), per_unit: 1e9 };

/// Default buckets of the Prometheus client libraries.
static REQUEST_TIME: Buckets = Buckets {
    bounds: &[
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

static PROGRAMMING: Metric = Metric {
    name: "coredns_kubernetes_dns_programming_duration_seconds",
    help: "Time from a change of endpoints to the answers that show it, by kind of Service; first lists do not count.",
    kind: Kind::Histogram(&PROGRAMMING_TIME),
    labels: &["service_kind"],
};
static PROGRAMMING_OF_ALL: Metric = Metric {
    name: "portolan_kubernetes_programming_duration_seconds",
    help: "Time from a change of endpoints to the answers that show it, for all Services with endpoints, \
           ServiceImports included.",
    kind: Kind::Histogram(&PROGRAMMING_TIME),
    labels: &["service_kind"],
};
static REQUESTS: Metric = Metric {
    name: "coredns_kubernetes_rest_client_requests_total",
    help: "Requests to the API server by status code, method and host.",
    kind: Kind::Counter,
    labels: &["code", "method", "host"],
};
static REQUEST_DURATION: Metric = Metric {
    name: "coredns_kubernetes_rest_client_request_duration_seconds",
    help: "Time until the API server began to answer, by verb and host.",
    kind: Kind::Histogram(&REQUEST_TIME),
    labels: &["verb", "host"],
};
static RATE_LIMITER_DURATION: Metric = Metric {
    name: "coredns_kubernetes_rest_client_rate_limiter_duration_seconds",
    help: "Time that requests to the API server were held back by `apiserver_qps`, by verb and host.",
    kind: Kind::Histogram(&REQUEST_TIME),
    labels: &["verb", "host"],
};
static LISTS: Metric = Metric {
    name: "portolan_kubernetes_lists_total",
    help: "Complete lists, by resource and by transfer: stream or pages.",
    kind: Kind::Counter,
    labels: &["resource", "way"],
};
static RESUMES: Metric = Metric {
    name: "portolan_kubernetes_resumes_total",
    help: "Watches that continue from the position of an earlier process, by resource. They need no list.",
    kind: Kind::Counter,
    labels: &["resource"],
};
static WATCH_FAILURES: Metric = Metric {
    name: "portolan_kubernetes_watch_failures_total",
    help: "Failed lists and watches, by resource and reason. Known objects are still served.",
    kind: Kind::Counter,
    labels: &["resource", "reason"],
};
static OBJECT_ERRORS: Metric = Metric {
    name: "portolan_kubernetes_object_errors_total",
    help: "Objects that could not be read, by kind and reason. Their last known state is still served; of `invalid` \
           objects, the valid parts are served.",
    kind: Kind::Counter,
    labels: &["kind", "reason"],
};
static MANIFEST_ERRORS: Metric = Metric {
    name: "portolan_kubernetes_manifest_errors_total",
    help: "Manifest files that could not be read completely, by reason. What was known of the unread parts is still \
           served.",
    kind: Kind::Counter,
    labels: &["reason"],
};

static RENEWALS: Metric = Metric {
    name: "portolan_kubernetes_watch_renewals_total",
    help: "Watches that were renewed after a long silence, by resource.",
    kind: Kind::Counter,
    labels: &["resource"],
};
static COUNTS: Metric = Metric {
    name: "portolan_kubernetes_counts_total",
    help: "Comparisons of the number of known objects with that of the API server, by resource and result: `equal`, \
           `different` if its watch has left out events, or `unknown` if it did not say a number or none was known.",
    kind: Kind::Counter,
    labels: &["resource", "result"],
};
static WIDENED: Metric = Metric {
    name: "portolan_kubernetes_scopes_widened_total",
    help: "Times that everything was watched because too many namespaces are selected to watch each of them.",
    kind: Kind::Counter,
    labels: &[],
};
static SYNC_AGE: Metric = Metric {
    name: "portolan_kubernetes_sync_age_seconds",
    help: "For how long a list or watch has failed, of the one that has failed longest: how old answers may be. 0 is \
           well.",
    kind: Kind::Gauge,
    labels: &[],
};
static VIEW_AGE: Metric = Metric {
    name: "portolan_kubernetes_view_age_seconds",
    help: "Time since the API server last confirmed the objects of a resource: by an event, a bookmark, the end of a \
           list or a consistent read.",
    kind: Kind::Gauge,
    labels: &["resource"],
};
static RECEIVED: Metric = Metric {
    name: "portolan_kubernetes_received_bytes_total",
    help: "Bytes of lists and watches that the API server has sent, by resource, after decompression.",
    kind: Kind::Counter,
    labels: &["resource"],
};
static WATCHES: Metric = Metric {
    name: "portolan_kubernetes_watches",
    help: "Watches by the server that they use, `relay` or `server`, if *kubernetes* has `relays`.",
    kind: Kind::Gauge,
    labels: &["server"],
};
static SNAPSHOT_ERRORS: Metric = Metric {
    name: "portolan_kubernetes_snapshot_errors_total",
    help: "Failures to write the snapshot: to append an event, or to replace the file.",
    kind: Kind::Counter,
    labels: &[],
};

/// All metrics of this crate, for the documentation.
pub static METRICS: [&Metric; 18] = [
    &PROGRAMMING,
    &PROGRAMMING_OF_ALL,
    &REQUESTS,
    &REQUEST_DURATION,
    &RATE_LIMITER_DURATION,
    &LISTS,
    &RESUMES,
    &WATCH_FAILURES,
    &RENEWALS,
    &COUNTS,
    &SYNC_AGE,
    &VIEW_AGE,
    &RECEIVED,
    &WATCHES,
    &WIDENED,
    &OBJECT_ERRORS,
    &MANIFEST_ERRORS,
    &SNAPSHOT_ERRORS,
];

/// Result of a comparison of numbers of objects.
#[derive(Clone, Copy)]
pub(crate) enum Counted {
    Equal,
    Different,
    Unknown,
}

impl Counted {
    const fn label(self) -> &'static str {
        match self {
            Counted::Equal => "equal",
            Counted::Different => "different",
            Counted::Unknown => "unknown",
        }
    }
}

/// Counters of the thread that runs the watches.
pub(crate) struct Meter {
    registry: Arc<Registry>,
    counters: Counters,
    pub(crate) failing: Arc<Failing>,
    logged: Cell<u32>,
    views: Arc<Views>,
}

/// Maximum number of log lines about single objects per process. This is enough to find the cause.
const LOGGED_MAX: u32 = 1000;

impl Meter {
    pub(crate) fn new(registry: &Arc<Registry>) -> Meter {
        let failing = Arc::new(Failing::default());
        let read = Arc::clone(&failing);
        registry.gauge(&SYNC_AGE, &[], move || Some(read.longest().as_secs_f64()));
        for metric in METRICS.iter().filter(|metric| metric.labels.is_empty() && matches!(metric.kind, Kind::Counter)) {
            registry.counter(metric, &[]);
        }
        let views = Arc::<Views>::default();
        for resource in Target::RESOURCES {
            let views = Arc::clone(&views);
            registry.gauge(&VIEW_AGE, &[resource], move || age_of(&views, resource));
        }
        for (server, is_relay) in [("relay", true), ("server", false)] {
            let views = Arc::clone(&views);
            registry.gauge(&WATCHES, &[server], move || users(&views, is_relay));
        }
        Meter { registry: Arc::clone(registry), counters: registry.counters(), failing, logged: Cell::new(0), views }
    }

    /// Adds a subscription to those whose age is shown.
    pub(crate) fn measure_age(&self, health: &Arc<ViewHealth>) {
        let mut views = lock(&self.views);
        views.retain(|view| view.strong_count() > 0);
        views.push(Arc::downgrade(health));
    }

    /// Counts bytes of a list or watch.
    pub(crate) fn received(&self, resource: &str, bytes: u64) {
        self.counters.add(self.registry.counter(&RECEIVED, &[resource]), bytes);
    }

    /// Counts a request with its status, or without one if it failed, and its duration.
    pub(crate) fn request(&self, host: &str, status: Option<u16>, time: Duration) {
        let code = status.map_or("<error>".to_owned(), |status| status.to_string());
        self.count(&REQUESTS, &[&code, "GET", host]);
        self.observe(&REQUEST_DURATION, &["GET", host], time);
    }

    /// Records how long the rate limiter delayed a request.
    pub(crate) fn delayed(&self, host: &str, time: Duration) {
        self.observe(&RATE_LIMITER_DURATION, &["GET", host], time);
    }

    /// Shows the counters of a resource before they count. Those of lists and resumed watches are missing before: an
    /// alert finds out by that.
    pub(crate) fn watches(&self, resource: &str) {
        self.registry.counter(&RENEWALS, &[resource]);
        self.registry.counter(&RECEIVED, &[resource]);
        for result in [Counted::Equal, Counted::Different, Counted::Unknown] {
            self.registry.counter(&COUNTS, &[resource, result.label()]);
        }
        for reason in ApiError::LABELS {
            self.registry.counter(&WATCH_FAILURES, &[resource, reason]);
        }
    }

    pub(crate) fn list(&self, resource: &str, way: &str) {
        self.count(&LISTS, &[resource, way]);
    }

    pub(crate) fn resume(&self, resource: &str) {
        self.count(&RESUMES, &[resource]);
    }

    pub(crate) fn failure(&self, resource: &str, reason: &str) {
        self.count(&WATCH_FAILURES, &[resource, reason]);
    }

    pub(crate) fn renewal(&self, resource: &str) {
        self.count(&RENEWALS, &[resource]);
    }

    pub(crate) fn counted(&self, resource: &str, result: Counted) {
        self.count(&COUNTS, &[resource, result.label()]);
    }

    pub(crate) fn widened(&self) {
        self.count(&WIDENED, &[]);
    }

    pub(crate) fn object_error(&self, kind: &str, reason: UnreadableReason) {
        self.count(&OBJECT_ERRORS, &[kind, reason.label()]);
    }

    /// Counts an object that was decoded but has an invalid value, in whole or in part.
    pub(crate) fn invalid(&self, kind: &str) {
        self.count(&OBJECT_ERRORS, &[kind, "invalid"]);
    }

    pub(crate) fn manifest_error(&self, reason: &str) {
        self.count(&MANIFEST_ERRORS, &[reason]);
    }

    pub(crate) fn snapshot_error(&self) {
        self.count(&SNAPSHOT_ERRORS, &[]);
    }

    /// Records the time from a change of endpoints until queries see it. CoreDNS's histogram leaves out Services of a
    /// ClusterSet (`is_common`).
    pub(crate) fn programmed(&self, service_kind: &str, is_common: bool, time: Duration) {
        if !is_common {
            self.observe(&PROGRAMMING, &[service_kind], time);
        }
        self.observe(&PROGRAMMING_OF_ALL, &[service_kind], time);
    }

    /// Returns true if another line about a single object may be logged, and counts it.
    pub(crate) fn may_log(&self) -> bool {
        self.logged.set(self.logged.get().saturating_add(1));
        self.logged.get() <= LOGGED_MAX
    }

    fn count(&self, metric: &'static Metric, values: &[&str]) {
        self.counters.count(self.registry.counter(metric, values));
    }

    fn observe(&self, metric: &'static Metric, values: &[&str], time: Duration) {
        if let Some(histogram) = self.registry.histogram(metric, values) {
            self.counters.observe(histogram, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        }
    }
}

/// Subscriptions whose age is shown.
type Views = Mutex<Vec<Weak<ViewHealth>>>;

/// Returns the greatest age of a resource in all subscriptions, in seconds.
fn age_of(views: &Views, resource: &str) -> Option<f64> {
    let views: Vec<Arc<ViewHealth>> = lock(views).iter().filter_map(Weak::upgrade).collect();
    let ages = views.iter().filter_map(|view| view.age_of(|kind| Target::resource_of(kind) == resource));
    ages.max().map(|age| age.as_secs_f64())
}

/// Returns the number of watches of all subscriptions that use a relay, or the API server.
fn users(views: &Views, of_relay: bool) -> Option<f64> {
    let views: Vec<Arc<ViewHealth>> = lock(views).iter().filter_map(Weak::upgrade).collect();
    let users = views.iter().filter_map(|view| view.users(of_relay));
    users.map(|users| u32::try_from(users).unwrap_or(u32::MAX)).reduce(u32::saturating_add).map(f64::from)
}

fn lock(views: &Views) -> MutexGuard<'_, Vec<Weak<ViewHealth>>> {
    views.lock().unwrap_or_else(PoisonError::into_inner)
}
