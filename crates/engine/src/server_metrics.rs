//! Metrics of every query, with CoreDNS's names and labels, so that existing dashboards and alerts keep working.

use wire::{Rcode, Type};

use crate::query::Query;
use crate::response::Response;
use crate::transaction::Transaction;
use crate::worker::Worker;
use metrics::{Counter, Histogram, Kind, Metric, Registry, SIZE, TIME, Table};

const SITE: [&str; 3] = ["server", "zone", "view"];

/// Queries by protocol, address family and type.
static REQUESTS: Metric = Metric {
    name: "coredns_dns_requests_total",
    help: "Counter of DNS requests made per zone, protocol and family.",
    kind: Kind::Counter,
    labels: &[SITE[0], SITE[1], SITE[2], "proto", "family", "type"],
};
static REQUEST_DURATION: Metric = Metric {
    name: "coredns_dns_request_duration_seconds",
    help: "Histogram of the time (in seconds) each request took per zone.",
    kind: Kind::Histogram(&TIME),
    labels: &SITE,
};
static REQUEST_SIZE: Metric = Metric {
    name: "coredns_dns_request_size_bytes",
    help: "Size of the request as received, in bytes.",
    kind: Kind::Histogram(&SIZE),
    labels: &[SITE[0], SITE[1], SITE[2], "proto"],
};
static RESPONSE_SIZE: Metric = Metric {
    name: "coredns_dns_response_size_bytes",
    help: "Size of the answer before its OPT record, in bytes.",
    kind: Kind::Histogram(&SIZE),
    labels: &[SITE[0], SITE[1], SITE[2], "proto"],
};
static DO_REQUESTS: Metric = Metric {
    name: "coredns_dns_do_requests_total",
    help: "Counter of DNS requests with the DO bit set per zone.",
    kind: Kind::Counter,
    labels: &SITE,
};
static RESPONSES: Metric = Metric {
    name: "coredns_dns_responses_total",
    help: "Counter of response status codes, by the plugin that answered.",
    kind: Kind::Counter,
    labels: &[SITE[0], SITE[1], SITE[2], "rcode", "plugin"],
};
static PANICS: Metric = Metric {
    name: "coredns_panics_total",
    help: "A metric that counts the number of panics.",
    kind: Kind::Counter,
    labels: &[],
};

/// Metrics of the server itself, for the documentation.
pub static SERVER_METRICS: [&Metric; 7] =
    [&REQUESTS, &REQUEST_DURATION, &REQUEST_SIZE, &RESPONSE_SIZE, &DO_REQUESTS, &RESPONSES, &PANICS];

const PROTOCOLS: [&str; 2] = ["udp", "tcp"];
const FAMILIES: [&str; 2] = ["1", "2"];
/// Types with their own label value. All other types share `other`.
const TYPES: [(Type, &str); 19] = [
    (Type::A, "A"),
    (Type::AAAA, "AAAA"),
    (Type::CNAME, "CNAME"),
    (Type::DNSKEY, "DNSKEY"),
    (Type::DS, "DS"),
    (Type::MX, "MX"),
    (Type::NSEC, "NSEC"),
    (Type::NSEC3, "NSEC3"),
    (Type::NS, "NS"),
    (Type::PTR, "PTR"),
    (Type::RRSIG, "RRSIG"),
    (Type::SOA, "SOA"),
    (Type::SRV, "SRV"),
    (Type::TXT, "TXT"),
    (Type::HTTPS, "HTTPS"),
    (Type::SVCB, "SVCB"),
    (Type::IXFR, "IXFR"),
    (Type::AXFR, "AXFR"),
    (Type::ANY, "ANY"),
];
/// Number of response codes with their own label value: those in the header, and those of EDNS.
const RCODES: usize = 24;

/// Query metrics of one site.
#[derive(Clone, Copy)]
pub struct QueryMetrics {
    requests: Table,
    duration: Option<Histogram>,
    request_size: Table,
    response_size: Table,
    do_requests: Counter,
    responses: Table,
}

impl QueryMetrics {
    /// Registers the series of a site. `steps` are the names of its plugins.
    #[must_use]
    pub fn new(registry: &Registry, [server, zone, view]: [&str; 3], steps: &[&str]) -> QueryMetrics {
        let site = [server, zone, view];
        let mut types = TYPES.map(|(_, name)| name).to_vec();
        types.push("other");
        let rcodes: Vec<String> = (0..RCODES).map(rcode_label).collect();
        let rcodes: Vec<&str> = rcodes.iter().map(String::as_str).collect();
        let plugins: Vec<&str> = core::iter::once("").chain(steps.iter().copied()).collect();
        QueryMetrics {
            requests: registry.table(&REQUESTS, &site, &[&PROTOCOLS, &FAMILIES, &types]),
            duration: registry.histogram(&REQUEST_DURATION, &site),
            request_size: registry.table(&REQUEST_SIZE, &site, &[&PROTOCOLS]),
            response_size: registry.table(&RESPONSE_SIZE, &site, &[&PROTOCOLS]),
            do_requests: registry.counter(&DO_REQUESTS, &site),
            responses: registry.table(&RESPONSES, &site, &[&rcodes, &plugins]),
        }
    }

    /// Counts a query and its response.
    pub fn count(&self, query: &Query, response: &Response, worker: &Worker) {
        let counters = &worker.counters;
        let protocol = usize::from(query.peer.transport.label() == PROTOCOLS[1]);
        let family = usize::from(!query.peer.address.ip().to_canonical().is_ipv4());
        let asked = query.request.qtype;
        let qtype = TYPES.iter().position(|(known, _)| *known == asked).unwrap_or(TYPES.len());
        counters.count(self.requests.counter([protocol, family, qtype]));
        if query.dnssec_ok {
            counters.count(self.do_requests);
        }
        if let Some(duration) = self.duration {
            let taken = worker.now().since(query.received);
            counters.observe(duration, u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX));
        }
        if let Some(size) = self.request_size.histogram([protocol, 0, 0]) {
            counters.observe(size, query.packet.len() as u64);
        }
        if response.is_dropped() {
            return;
        }
        if let Some(size) = self.response_size.histogram([protocol, 0, 0]) {
            counters.observe(size, response.message.len() as u64);
        }
        let rcode = usize::from(response.rcode().0).min(RCODES - 1);
        counters.count(self.responses.counter([rcode, response.source().map_or(0, |step| step + 1), 0]));
    }
}

fn rcode_label(number: usize) -> String {
    let rcode = Rcode(u16::try_from(number).unwrap_or(u16::MAX));
    rcode.mnemonic().map_or_else(|| rcode.0.to_string(), str::to_owned)
}

/// Metrics that no plugin counts.
#[derive(Default)]
pub struct ServerMetrics {
    dropped: Vec<QueryMetrics>,
    panics: Option<Counter>,
}

impl ServerMetrics {
    /// Registers the series of listeners with these labels.
    #[must_use]
    pub fn new<'a>(registry: &Registry, listeners: impl Iterator<Item = &'a str>) -> ServerMetrics {
        let dropped = listeners.map(|server| QueryMetrics::new(registry, [server, "dropped", ""], &[])).collect();
        ServerMetrics { dropped, panics: Some(registry.counter(&PANICS, &[])) }
    }

    /// Counts a query for which there is no server block.
    pub(crate) fn count_dropped(&self, transaction: &Transaction, worker: &Worker) {
        if let Some(metrics) = self.dropped.get(transaction.listener.0) {
            metrics.count(&transaction.query, &transaction.response, worker);
        }
    }

    pub(crate) fn count_panic(&self, worker: &Worker) {
        if let Some(panics) = self.panics {
            worker.counters.count(panics);
        }
    }
}
