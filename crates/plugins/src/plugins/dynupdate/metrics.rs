//! Metrics of dynamic zones.

use std::sync::{Arc, Weak};

use config::setup::Setup;
use metrics::{Counter, Counters, Histogram, Kind, Metric, TIME};
use wire::Rcode;

use super::limit::Limit;
use super::zone::DynamicZone;

/// Response codes of updates. Others are counted as SERVFAIL.
const RCODES: [Rcode; 11] = [
    Rcode::SERVFAIL,
    Rcode::NOERROR,
    Rcode::FORMERR,
    Rcode::NXDOMAIN,
    Rcode::NOTIMP,
    Rcode::REFUSED,
    Rcode::YXDOMAIN,
    Rcode::YXRRSET,
    Rcode::NXRRSET,
    Rcode::NOTAUTH,
    Rcode::NOTZONE,
];

static UPDATES: Metric = Metric {
    name: "portolan_dynupdate_updates_total",
    help: "Updates of dynamic zones, by response code.",
    kind: Kind::Counter,
    labels: &["zone", "rcode"],
};
static LIMITED: Metric = Metric {
    name: "portolan_dynupdate_limited_total",
    help: "Updates that exceeded a limit: one of the options, or the queue of updates that wait for a zone.",
    kind: Kind::Counter,
    labels: &["zone", "limit"],
};
static COMMIT: Metric = Metric {
    name: "portolan_dynupdate_commit_duration_seconds",
    help: "Time to build and store a new version of a dynamic zone.",
    kind: Kind::Histogram(&TIME),
    labels: &["zone"],
};
static SERIAL: Metric = Metric {
    name: "portolan_dynupdate_serial",
    help: "Serial of a dynamic zone.",
    kind: Kind::Gauge,
    labels: &["zone"],
};
static RECORDS: Metric = Metric {
    name: "portolan_dynupdate_records",
    help: "Records of a dynamic zone.",
    kind: Kind::Gauge,
    labels: &["zone"],
};
static BYTES: Metric = Metric {
    name: "portolan_dynupdate_bytes",
    help: "Length of all records of a dynamic zone, uncompressed.",
    kind: Kind::Gauge,
    labels: &["zone"],
};
pub(super) static METRICS: [&Metric; 6] = [&UPDATES, &LIMITED, &COMMIT, &SERIAL, &RECORDS, &BYTES];

/// Counters of one zone.
pub(super) struct ZoneCounters {
    updates: [Counter; RCODES.len()],
    limited: [Counter; Limit::NAMES.len()],
    commit: Option<Histogram>,
}

impl ZoneCounters {
    pub(super) fn new(zone: &Arc<DynamicZone>, setup: &Setup<'_>) -> ZoneCounters {
        let (registry, name) = (setup.registry, zone.held.origin.to_string());
        let gauge = |metric, read: fn(&DynamicZone) -> Option<u32>| {
            let zone: Weak<DynamicZone> = Arc::downgrade(zone);
            registry.gauge(metric, &[&name], move || read(&*zone.upgrade()?).map(f64::from));
        };
        gauge(&SERIAL, |zone| Some(zone.held.soa()?.serial));
        gauge(&RECORDS, |zone| u32::try_from(zone.held.known()?.len()).ok());
        gauge(&BYTES, |zone| u32::try_from(zone.bytes()).ok());
        ZoneCounters {
            updates: RCODES.map(|rcode| registry.counter(&UPDATES, &[&name, &rcode.to_string()])),
            limited: Limit::NAMES.map(|limit| registry.counter(&LIMITED, &[&name, limit])),
            commit: registry.histogram(&COMMIT, &[&name]),
        }
    }

    /// Counts an update, and the limit that it exceeded.
    pub(super) fn count(&self, counters: &Counters, rcode: Rcode, limit: Option<Limit>) {
        let at = RCODES.iter().position(|known| *known == rcode).unwrap_or_default();
        counters.count(self.updates[at]);
        if let Some(limit) = limit {
            counters.count(self.limited[limit as usize]);
        }
    }

    /// Records the time of a commit in nanoseconds.
    pub(super) fn observe(&self, counters: &Counters, nanos: u64) {
        if let Some(histogram) = self.commit {
            counters.observe(histogram, nanos);
        }
    }
}
