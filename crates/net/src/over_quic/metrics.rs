//! Metrics of responses over QUIC, with CoreDNS's names and labels.

use engine::Scheme;
use metrics::{Counter, Counters, Kind, Metric, Registry};

static QUIC_RESPONSES: Metric = Metric {
    name: "coredns_dns_quic_responses_total",
    help: "Counter of DoQ responses per server and QUIC application code.",
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
pub static QUIC_METRICS: [&Metric; 2] = [&QUIC_RESPONSES, &HTTPS3_RESPONSES];

/// Codes of DNS over QUIC that CoreDNS counts: no error, internal error, protocol error.
const QUIC_CODES: [u32; 3] = [0, 1, 2];
/// Status codes of the server.
const HTTP_CODES: [u32; 10] = [200, 400, 404, 405, 408, 413, 415, 431, 500, 503];

/// Counters of the responses of one listener, by status.
pub(super) struct Responses(Vec<(u32, Counter)>);

impl Responses {
    pub(super) fn new(registry: &Registry, server: &str, scheme: Scheme) -> Responses {
        let counters: Vec<_> = match scheme {
            Scheme::Https3 => HTTP_CODES
                .iter()
                .map(|code| (*code, registry.counter(&HTTPS3_RESPONSES, &[server, &code.to_string()])))
                .collect(),
            _ => QUIC_CODES
                .iter()
                .map(|code| (*code, registry.counter(&QUIC_RESPONSES, &[server, &format!("{code:#x}")])))
                .collect(),
        };
        Responses(counters)
    }

    /// Counts a response. Codes without a label in CoreDNS are not counted.
    pub(super) fn count(&self, status: u32, counters: &Counters) {
        if let Some((_, counter)) = self.0.iter().find(|(known, _)| *known == status) {
            counters.count(*counter);
        }
    }
}
