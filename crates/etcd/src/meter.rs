//! Metrics of the connection to etcd, and log lines about single keys.

use std::cell::Cell;
use std::sync::Arc;

use metrics::{Counters, Kind, Metric, Registry};
use skydns::RecordError;
use tracing::warn;

use crate::LOG;
use crate::error::EtcdError;

static FAILURES: Metric = Metric {
    name: "portolan_etcd_failures_total",
    help: "Failed or broken watches of etcd members, by reason. Known records are still served.",
    kind: Kind::Counter,
    labels: &["reason"],
};
static LISTS: Metric = Metric {
    name: "portolan_etcd_lists_total",
    help: "Complete lists of keys; one at the start and one after each reconnection that needs it.",
    kind: Kind::Counter,
    labels: &[],
};
static EVENTS: Metric =
    Metric { name: "portolan_etcd_events_total", help: "Watch events about keys.", kind: Kind::Counter, labels: &[] };
static REFUSED: Metric = Metric {
    name: "portolan_etcd_refused_records_total",
    help: "Invalid keys, which are not served, by reason.",
    kind: Kind::Counter,
    labels: &["reason"],
};

/// All metrics of this crate, for the documentation.
pub static METRICS: [&Metric; 4] = [&FAILURES, &LISTS, &EVENTS, &REFUSED];

/// Maximum number of log lines about single keys per process. This is enough to find the cause.
const LOGGED_MAX: u32 = 1000;

/// Counters of the thread that follows the stores.
pub(crate) struct Meter {
    registry: Arc<Registry>,
    counters: Counters,
    logged: Cell<u32>,
}

impl Meter {
    pub(crate) fn new(registry: &Arc<Registry>) -> Meter {
        for metric in METRICS.iter().filter(|metric| metric.labels.is_empty()) {
            registry.counter(metric, &[]);
        }
        for reason in EtcdError::LABELS {
            registry.counter(&FAILURES, &[reason]);
        }
        Meter { registry: Arc::clone(registry), counters: registry.counters(), logged: Cell::new(0) }
    }

    pub(crate) fn failure(&self, failure: &EtcdError) {
        self.counters.count(self.registry.counter(&FAILURES, &[failure.label()]));
    }

    pub(crate) fn list(&self) {
        self.counters.count(self.registry.counter(&LISTS, &[]));
    }

    pub(crate) fn events(&self, many: usize) {
        self.counters.add(self.registry.counter(&EVENTS, &[]), many as u64);
    }

    /// Counts and logs a key that is not served.
    pub(crate) fn refused(&self, key: &[u8], error: &RecordError) {
        self.counters.count(self.registry.counter(&REFUSED, &[error.label()]));
        self.logged.set(self.logged.get().saturating_add(1));
        if self.logged.get() <= LOGGED_MAX {
            warn!(target: LOG, "{} is not served: {error}", key.escape_ascii());
        }
    }
}
