//! Metrics of `grpc`.

use metrics::{Counter, Histogram, Kind, Metric, Registry, TIME};

use common_plugins::shared::upstream_options::ByRcode;

static REQUESTS: Metric = Metric {
    name: "coredns_grpc_requests_total",
    help: "Counter of requests made per upstream.",
    kind: Kind::Counter,
    labels: &["to"],
};
static RESPONSES: Metric = Metric {
    name: "coredns_grpc_responses_total",
    help: "Counter of responses received per upstream.",
    kind: Kind::Counter,
    labels: &["to", "rcode"],
};
static DURATION: Metric = Metric {
    name: "coredns_grpc_request_duration_seconds",
    help: "Histogram of the time each request took.",
    kind: Kind::Histogram(&TIME),
    labels: &["to"],
};

pub(super) static ALL: [&Metric; 3] = [&REQUESTS, &RESPONSES, &DURATION];

/// Metrics of one upstream.
#[derive(Clone, Copy)]
pub(super) struct UpstreamMetrics {
    pub(super) requests: Counter,
    pub(super) responses: ByRcode,
    pub(super) duration: Option<Histogram>,
}

impl UpstreamMetrics {
    pub(super) fn new(registry: &Registry, to: &str) -> UpstreamMetrics {
        UpstreamMetrics {
            requests: registry.counter(&REQUESTS, &[to]),
            responses: ByRcode::new(registry, &RESPONSES, &[to]),
            duration: registry.histogram(&DURATION, &[to]),
        }
    }
}
