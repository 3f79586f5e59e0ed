//! View into the upstreams, for people who look at the server from outside.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::setup::{InspectUpstreams, InspectedUpstream, UpstreamHealth};
use engine::{ExchangeError, Instant};
use upstream::Protocol;

use super::stanza::{Stanza, Upstream};

/// Beginning of the error of a query over TCP to an upstream that is usually asked over UDP.
pub const OVER_TCP: &str = "over TCP: ";

/// Outcome of the health checks of an upstream, and its last failure.
#[derive(Default)]
pub(super) struct Outage(Mutex<Last>);

#[derive(Clone, Default)]
struct Last {
    /// Time at which the upstream went down.
    since: Option<Instant>,
    error: Option<String>,
    /// Time and error of the last exchange that failed.
    failed: Option<(Instant, String)>,
}

impl Outage {
    /// Records the outcome of a health check.
    pub(super) fn probed(&self, outcome: &Result<(), ExchangeError>) {
        self.lock().error = outcome.as_ref().err().map(ToString::to_string);
    }

    /// Records that the upstream went down, or is up again.
    pub(super) fn changed(&self, down_since: Option<Instant>) {
        self.lock().since = down_since;
    }

    /// Records a failed exchange, unless somebody else uses the record: a worker does not wait for it.
    /// `over` comes before the error, and is empty for the usual transport of the upstream.
    pub(super) fn failed(&self, now: Instant, over: &str, error: &ExchangeError) {
        if let Ok(mut last) = self.0.try_lock() {
            last.failed = Some((now, format!("{over}{error}")));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// View into the upstreams of all lines of a server block.
pub(super) struct UpstreamsView(pub(super) Vec<Arc<Stanza>>);

impl InspectUpstreams for UpstreamsView {
    fn upstreams(&self) -> Vec<InspectedUpstream> {
        self.0.iter().flat_map(|stanza| stanza.upstreams.iter().map(|upstream| shown(stanza, upstream))).collect()
    }
}

pub(super) fn shown(stanza: &Stanza, upstream: &Upstream) -> InspectedUpstream {
    let Last { since, error, failed } = upstream.outage.lock().clone();
    InspectedUpstream {
        address: upstream.address,
        transport: match (upstream.protocol, stanza.force_tcp) {
            (Protocol::Quic, _) => "quic",
            (Protocol::Https, _) => "https",
            (Protocol::Tls, _) => "tls",
            (Protocol::Dns, true) => "tcp",
            (Protocol::Dns, false) => "udp",
        },
        health: if upstream.health.is_down(stanza.limits.max_fails) {
            UpstreamHealth::Down
        } else if upstream.health.is_suspected() {
            UpstreamHealth::Suspected
        } else {
            UpstreamHealth::Up
        },
        down_since: since,
        error,
        last_failure: failed,
    }
}
