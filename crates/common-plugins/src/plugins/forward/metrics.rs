//! Metrics of *forward*.

use engine::{Transport, Unwanted};
use metrics::{Counter, Kind, Metric, Registry, TIME, Table};
use upstream::Protocol;

use crate::shared::upstream_options::ByRcode;

static DURATION: Metric = Metric {
    name: "coredns_proxy_request_duration_seconds",
    help: "Histogram of the time each request took.",
    kind: Kind::Histogram(&TIME),
    labels: &["proxy_name", "to", "rcode"],
};
static PROBE_FAILURES: Metric = Metric {
    name: "coredns_proxy_healthcheck_failures_total",
    help: "Counter of the number of failed healthchecks.",
    kind: Kind::Counter,
    labels: &["proxy_name", "to"],
};
static FAILURES: Metric = Metric {
    name: "portolan_upstream_failures_total",
    help: "Number of exchanges with an upstream that failed: no reply in time, a network error, or an invalid reply.",
    kind: Kind::Counter,
    labels: &["proxy_name", "to"],
};
static UNWANTED: Metric = Metric {
    name: "portolan_upstream_unwanted_replies_total",
    help: "Replies of an upstream that were ignored because they match no query: too late or a second time (late), with an unknown message ID (id), or with another question (question).",
    kind: Kind::Counter,
    labels: &["proxy_name", "to", "reason"],
};
static CASE_CHANGES: Metric = Metric {
    name: "portolan_upstream_case_changes_total",
    help: "Replies of an upstream to queries with random case (use_caps_for_id) whose name has another case.",
    kind: Kind::Counter,
    labels: &["proxy_name", "to"],
};
static COOKIE_FAILURES: Metric = Metric {
    name: "portolan_upstream_cookie_failures_total",
    help: "Replies of an upstream over UDP that were not used because they lack the DNS cookie of the query (send_cookie).",
    kind: Kind::Counter,
    labels: &["proxy_name", "to"],
};
static REUSED: Metric = Metric {
    name: "coredns_proxy_conn_cache_hits_total",
    help: "Counter of connection cache hits per upstream and protocol.",
    kind: Kind::Counter,
    labels: &["proxy_name", "to", "proto"],
};
static OPENED: Metric = Metric {
    name: "coredns_proxy_conn_cache_misses_total",
    help: "Counter of connection cache misses per upstream and protocol.",
    kind: Kind::Counter,
    labels: &["proxy_name", "to", "proto"],
};
static ALL_DOWN: Metric = Metric {
    name: "coredns_forward_healthcheck_broken_total",
    help: "Counter of the number of complete failures of the healthchecks.",
    kind: Kind::Counter,
    labels: &[],
};
static REJECTED: Metric = Metric {
    name: "coredns_forward_max_concurrent_rejects_total",
    help: "Counter of the number of queries rejected because the concurrent queries were at maximum.",
    kind: Kind::Counter,
    labels: &[],
};

pub(super) static ALL: [&Metric; 10] = [
    &DURATION,
    &PROBE_FAILURES,
    &FAILURES,
    &UNWANTED,
    &CASE_CHANGES,
    &COOKIE_FAILURES,
    &REUSED,
    &OPENED,
    &ALL_DOWN,
    &REJECTED,
];

const PROXY: &str = "forward";
/// Values of the label `proto`, in the order of [`place_of`].
const PROTOCOLS: [&str; 5] = ["udp", "tcp", "tcp-tls", "https", "quic"];

/// Returns the place of a connection in [`PROTOCOLS`]. CoreDNS calls TLS `tcp-tls`.
const fn place_of(over: Transport, protocol: Protocol) -> usize {
    match (protocol, over) {
        (Protocol::Dns, Transport::Udp) => 0,
        (Protocol::Dns, _) => 1,
        (Protocol::Tls, _) => 2,
        (Protocol::Https, _) => 3,
        (Protocol::Quic, _) => 4,
    }
}

/// Series of one upstream.
#[derive(Clone, Copy)]
pub(super) struct UpstreamMetrics {
    pub(super) duration: ByRcode,
    pub(super) probe_failures: Counter,
    pub(super) failures: Counter,
    pub(super) case_changes: Counter,
    pub(super) cookie_failures: Counter,
    unwanted: Table,
    reused: Table,
    opened: Table,
}

impl UpstreamMetrics {
    pub(super) fn new(registry: &Registry, to: &str) -> UpstreamMetrics {
        UpstreamMetrics {
            duration: ByRcode::new(registry, &DURATION, &[PROXY, to]),
            probe_failures: registry.counter(&PROBE_FAILURES, &[PROXY, to]),
            failures: registry.counter(&FAILURES, &[PROXY, to]),
            case_changes: registry.counter(&CASE_CHANGES, &[PROXY, to]),
            cookie_failures: registry.counter(&COOKIE_FAILURES, &[PROXY, to]),
            unwanted: registry.table(&UNWANTED, &[PROXY, to], &[&Unwanted::LABELS]),
            reused: registry.table(&REUSED, &[PROXY, to], &[&PROTOCOLS]),
            opened: registry.table(&OPENED, &[PROXY, to], &[&PROTOCOLS]),
        }
    }

    /// Returns the counter of a reason in [`Unwanted::LABELS`].
    pub(super) fn unwanted(&self, reason: usize) -> Counter {
        self.unwanted.counter([reason, 0, 0])
    }

    pub(super) fn connection(&self, over: Transport, protocol: Protocol, reused: bool) -> Counter {
        let table = if reused { self.reused } else { self.opened };
        table.counter([place_of(over, protocol), 0, 0])
    }
}

/// Series of all upstreams together.
#[derive(Clone, Copy)]
pub(super) struct ForwardMetrics {
    pub(super) all_down: Counter,
    pub(super) rejected: Counter,
}

impl ForwardMetrics {
    pub(super) fn new(registry: &Registry) -> ForwardMetrics {
        ForwardMetrics { all_down: registry.counter(&ALL_DOWN, &[]), rejected: registry.counter(&REJECTED, &[]) }
    }
}
