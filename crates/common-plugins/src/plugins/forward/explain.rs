//! Explanations of where queries go, for people.

use engine::{ExplainedUpstream, Explanation, Instant, Query, ReasonCode};

use super::Forward;
use super::inspection::shown;

/// Codes of the reasons.
pub(crate) static REASONS: [&ReasonCode; 2] = [&ALL_DOWN, &ASKED];

static ALL_DOWN: ReasonCode = ReasonCode {
    code: "PE-F01",
    meaning: "All upstreams for the name are down",
    advice: "Check that the upstreams run and that no NetworkPolicy blocks them: `portolan status` shows their errors",
};
static ASKED: ReasonCode = ReasonCode {
    code: "PE-F02",
    meaning: "The answer is that of an upstream, which an explanation does not ask",
    advice: "To query it: `portolan explain NAME --fresh`",
};

impl Forward {
    /// Explains where a query goes; `None` if no line forwards it.
    pub(super) fn explained(&self, query: &Query, now: Instant) -> Option<Explanation> {
        let stanza = &self.stanzas[self.stanza_for(query, 0)?];
        let upstream = |upstream| {
            let shown = shown(stanza, upstream);
            ExplainedUpstream {
                address: shown.address,
                transport: shown.transport,
                state: shown.health.name(),
                down_for: shown.down_since.map(|since| now.since(since)),
                error: shown.error,
                last_failure: shown.last_failure.map(|(at, error)| (now.since(at), error)),
            }
        };
        let upstreams: Vec<ExplainedUpstream> = stanza.upstreams.iter().map(upstream).collect();
        let addresses: Vec<String> = upstreams.iter().map(|upstream| upstream.address.to_string()).collect();
        let is_lost = upstreams.iter().all(|upstream| upstream.state == "down");
        let zone = if stanza.zone().as_ref().is_root() { String::new() } else { format!("zone {}, ", stanza.zone()) };
        let text = format!("{zone}upstream {}", addresses.join(" "));
        let explanation = Explanation { upstreams, ..Explanation::new(text) };
        Some(if is_lost {
            explanation.because(&ALL_DOWN, format!("all upstreams are down: {}", addresses.join(", ")))
        } else {
            explanation.because(&ASKED, "the answer is that of an upstream, which has not been asked")
        })
    }
}
