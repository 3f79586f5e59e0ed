//! Metrics of the relay.

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use host::invariant::{Expected as _, holds};
use metrics::{Counter, Counters, Kind as MetricKind, Metric, Registry};
use relay::{Kind, KindState, Refusal};

static SUBSCRIBERS: Metric = Metric {
    name: "portolan_relay_subscribers",
    help: "Open watches of subscribers, by resource.",
    kind: MetricKind::Gauge,
    labels: &["resource"],
};
static OBJECTS: Metric = Metric {
    name: "portolan_relay_objects",
    help: "Objects that the relay knows, by resource.",
    kind: MetricKind::Gauge,
    labels: &["resource"],
};
static HISTORY: Metric = Metric {
    name: "portolan_relay_history_bytes",
    help: "Size of the objects in the history from which subscribers continue, by resource.",
    kind: MetricKind::Gauge,
    labels: &["resource"],
};
static AGE: Metric = Metric {
    name: "portolan_relay_view_age_seconds",
    help: "Time since the API server last confirmed what the relay knows, by resource.",
    kind: MetricKind::Gauge,
    labels: &["resource"],
};
static READY: Metric = Metric {
    name: "portolan_relay_ready",
    help: "1 if the relay has listed all kinds and serves.",
    kind: MetricKind::Gauge,
    labels: &[],
};
static CONNECTIONS: Metric = Metric {
    name: "portolan_relay_connections",
    help: "Open connections of subscribers.",
    kind: MetricKind::Gauge,
    labels: &[],
};
static REFUSED_CONNECTIONS: Metric = Metric {
    name: "portolan_relay_connections_refused_total",
    help: "Connections that were closed at once, because the maximum was open.",
    kind: MetricKind::Counter,
    labels: &[],
};
static REFUSALS: Metric = Metric {
    name: "portolan_relay_refusals_total",
    help: "Refused requests, by reason.",
    kind: MetricKind::Counter,
    labels: &["reason"],
};
static SLOW: Metric = Metric {
    name: "portolan_relay_slow_subscribers_total",
    help: "Subscribers that were closed because they did not read for too long.",
    kind: MetricKind::Counter,
    labels: &[],
};
static UNREADABLE: Metric = Metric {
    name: "portolan_relay_unreadable_objects_total",
    help: "Objects of the API server that could not be stored.",
    kind: MetricKind::Counter,
    labels: &[],
};

/// Metrics of this command, for the documentation.
pub static METRICS: [&Metric; 10] =
    [&SUBSCRIBERS, &OBJECTS, &HISTORY, &AGE, &READY, &CONNECTIONS, &REFUSED_CONNECTIONS, &REFUSALS, &SLOW, &UNREADABLE];

/// Published state of a kind, with the number of its subscribers.
type Published = Vec<(KindState, usize)>;

/// Counters, which belong to one thread.
pub(super) struct Meter {
    counters: Counters,
    refusals: Vec<(&'static str, Counter)>,
    slow: Counter,
    unreadable: Counter,
    refused_connections: Counter,
    pub(super) shared: Arc<Shared>,
}

/// Values of the gauges, which the metrics page reads.
#[derive(Default)]
pub(super) struct Shared {
    connections: AtomicU64,
    published: Mutex<Published>,
    pub(super) is_ready: AtomicBool,
}

impl Meter {
    pub(super) fn new(registry: &Arc<Registry>, kinds: &[Kind]) -> Rc<Meter> {
        let meter = Rc::new(Meter {
            counters: registry.counters(),
            refusals: Refusal::LABELS.iter().map(|label| (*label, registry.counter(&REFUSALS, &[label]))).collect(),
            slow: registry.counter(&SLOW, &[]),
            unreadable: registry.counter(&UNREADABLE, &[]),
            refused_connections: registry.counter(&REFUSED_CONNECTIONS, &[]),
            shared: Arc::default(),
        });
        for kind in kinds {
            meter.gauge(registry, &SUBSCRIBERS, *kind, |(_, subscribers)| Some(float(*subscribers)));
            meter.gauge(registry, &OBJECTS, *kind, |(state, _)| Some(float(state.objects)));
            meter.gauge(registry, &HISTORY, *kind, |(state, _)| Some(float(state.history_bytes)));
            meter.gauge(registry, &AGE, *kind, |(state, _)| state.age.map(|age| age.as_secs_f64()));
        }
        let own = Arc::clone(&meter.shared);
        registry.gauge(&READY, &[], move || Some(f64::from(u8::from(own.is_ready.load(Ordering::Relaxed)))));
        let own = Arc::clone(&meter.shared);
        registry.gauge(&CONNECTIONS, &[], move || {
            u32::try_from(own.connections.load(Ordering::Relaxed)).ok().map(f64::from)
        });
        meter
    }

    fn gauge(
        &self,
        registry: &Arc<Registry>,
        metric: &'static Metric,
        kind: Kind,
        read: fn(&(KindState, usize)) -> Option<f64>,
    ) {
        let own = Arc::clone(&self.shared);
        registry.gauge(metric, &[kind.resource()], move || {
            let published = own.published.lock().unwrap_or_else(PoisonError::into_inner);
            published.iter().find(|(state, _)| state.kind == kind).and_then(read)
        });
    }

    pub(super) fn publish(&self, states: &[KindState], subscribers: impl Fn(Kind) -> usize) {
        let states = states.iter().map(|state| (*state, subscribers(state.kind))).collect();
        *self.shared.published.lock().unwrap_or_else(PoisonError::into_inner) = states;
    }

    pub(super) fn refused(&self, refusal: &Refusal) {
        let label = refusal.label();
        let counter = self.refusals.iter().find(|(known, _)| *known == label);
        if let Some((_, counter)) = counter.expected("the counter of a refusal") {
            self.counters.count(*counter);
        }
    }

    pub(super) fn slow(&self) {
        self.counters.count(self.slow);
    }

    pub(super) fn unreadable(&self) {
        self.counters.count(self.unreadable);
    }

    /// Counts a connection, unless `max` are open. The count ends when the result is dropped.
    pub(super) fn connect(&self, max: u64) -> Option<OpenConnection> {
        if self.shared.connections.load(Ordering::Relaxed) >= max {
            self.counters.count(self.refused_connections);
            return None;
        }
        let before = self.shared.connections.fetch_add(1, Ordering::Relaxed);
        holds(before < max, "the number of connections is bounded");
        Some(OpenConnection(Arc::clone(&self.shared)))
    }
}

/// Open connection, counted until dropped.
pub(super) struct OpenConnection(Arc<Shared>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let open = self.0.connections.fetch_sub(1, Ordering::Relaxed);
        holds(open > 0, "a connection that ends was counted");
    }
}

fn float(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::from(u32::MAX), f64::from)
}
