//! What `grpc` counts.

use engine::metrics::{Counter, Histogram, Kind, Metric, Registry, TIME, Table};
use wire::Rcode;

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

/// The response codes of a header.
const RCODES: u16 = 16;

/// What is counted of one upstream.
#[derive(Clone, Copy)]
pub(super) struct UpstreamMetrics {
    pub(super) requests: Counter,
    responses: Table,
    pub(super) duration: Option<Histogram>,
}

impl UpstreamMetrics {
    pub(super) fn new(registry: &Registry, to: &str) -> UpstreamMetrics {
        let rcodes: Vec<String> = (0..RCODES).map(|code| Rcode(code).to_string()).collect();
        let rcodes: Vec<&str> = rcodes.iter().map(String::as_str).collect();
        UpstreamMetrics {
            requests: registry.counter(&REQUESTS, &[to]),
            responses: registry.table(&RESPONSES, &[to], &[&rcodes]),
            duration: registry.histogram(&DURATION, &[to]),
        }
    }

    pub(super) fn response(&self, rcode: Rcode) -> Counter {
        self.responses.counter([usize::from(rcode.0.min(RCODES - 1)), 0, 0])
    }
}
