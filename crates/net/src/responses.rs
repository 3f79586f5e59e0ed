//! Metrics of responses over HTTP and QUIC, with CoreDNS's names and labels.

use engine::Scheme;
use metrics::{Counter, Counters, Kind, Metric, Registry};

static QUIC_RESPONSES: Metric = Metric {
    name: "coredns_dns_quic_responses_total",
    help: "Counter of DoQ responses per server and QUIC application code.",
    kind: Kind::Counter,
    labels: &["server", "status"],
};
static HTTPS_RESPONSES: Metric = Metric {
    name: "coredns_dns_https_responses_total",
    help: "Counter of DoH responses per server and http status code.",
    kind: Kind::Counter,
    labels: &["server", "status"],
};
static HTTPS3_RESPONSES: Metric = Metric {
    name: "coredns_dns_https3_responses_total",
    help: "Counter of DoH3 responses per server and http status code.",
    kind: Kind::Counter,
    labels: &["server", "status"],
};

/// Metrics of this module, for the documentation.
pub static RESPONSE_METRICS: [&Metric; 3] = [&HTTPS_RESPONSES, &HTTPS3_RESPONSES, &QUIC_RESPONSES];

/// Codes of DNS over QUIC that CoreDNS counts: no error, internal error, protocol error.
const QUIC_CODES: [u32; 3] = [0, 1, 2];
/// Status codes of the server.
const HTTP_CODES: [u32; 10] = [200, 400, 404, 405, 408, 413, 415, 431, 500, 503];

/// Counters of the responses of one listener, by status.
pub(crate) struct Responses(Vec<(u32, Counter)>);

impl Responses {
    pub(crate) fn new(registry: &Registry, server: &str, scheme: Scheme) -> Responses {
        let (metric, codes): (_, &[u32]) = match scheme {
            Scheme::Https => (&HTTPS_RESPONSES, &HTTP_CODES),
            Scheme::Https3 => (&HTTPS3_RESPONSES, &HTTP_CODES),
            Scheme::Quic => (&QUIC_RESPONSES, &QUIC_CODES),
            Scheme::Dns | Scheme::Tls | Scheme::Grpc => return Responses(Vec::new()),
        };
        let text = |code: u32| if scheme == Scheme::Quic { format!("{code:#x}") } else { code.to_string() };
        let counter = |code: &u32| (*code, registry.counter(metric, &[server, &text(*code)]));
        Responses(codes.iter().map(counter).collect())
    }

    /// Counts a response. Codes without a label in CoreDNS are not counted.
    pub(crate) fn count(&self, status: u32, counters: &Counters) {
        if let Some((_, counter)) = self.0.iter().find(|(known, _)| *known == status) {
            counters.count(*counter);
        }
    }
}
