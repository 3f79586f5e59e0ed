//! View into the upstreams, for people who look at the server from outside.

use std::sync::Arc;

use config::setup::{InspectUpstreams, InspectedUpstream, UpstreamHealth};
use upstream::Protocol;

use super::outage::Last;
use super::stanza::{Stanza, Upstream};

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
