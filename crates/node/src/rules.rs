//! Which packets of the node are to be left alone: those to and from the cache are not tracked, so that nothing rewrites
//! their addresses (kube-proxy would) and no table of connections fills with them.

use core::net::IpAddr;

use crate::settings::Settings;

/// Where a rule sees packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// What arrives, before it is tracked.
    RawPrerouting,
    /// What is sent from here, before it is tracked.
    RawOutput,
    /// What arrives for this machine.
    FilterInput,
    /// What is sent from here.
    FilterOutput,
}

/// Which end of a packet a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Where it goes.
    Destination,
    /// Where it comes from.
    Source,
}

/// Of which protocol it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is not tracked.
    NoTrack,
    /// It is let through.
    Accept,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where.
    pub hook: Hook,
    /// Which end.
    pub side: Side,
    /// The address at that end.
    pub ip: IpAddr,
    /// The port at that end.
    pub port: u16,
    /// The protocol.
    pub protocol: Protocol,
    /// What becomes of it.
    pub verdict: Verdict,
}

/// The rules for these settings: twelve an address, those of node-cache.
#[must_use]
pub fn rules(settings: &Settings) -> Vec<Rule> {
    settings.local.iter().flat_map(|ip| rules_of(*ip, settings.port, settings.health_port)).collect()
}

fn rules_of(ip: IpAddr, dns: u16, health: u16) -> impl Iterator<Item = Rule> {
    use Hook::{FilterInput, FilterOutput, RawOutput, RawPrerouting};
    use Protocol::{Tcp, Udp};
    use Side::{Destination, Source};
    use Verdict::{Accept, NoTrack};
    [
        (RawPrerouting, Destination, dns, Tcp, NoTrack),
        (RawPrerouting, Destination, dns, Udp, NoTrack),
        (FilterInput, Destination, dns, Tcp, Accept),
        (FilterInput, Destination, dns, Udp, Accept),
        (RawOutput, Source, dns, Tcp, NoTrack),
        (RawOutput, Source, dns, Udp, NoTrack),
        (FilterOutput, Source, dns, Tcp, Accept),
        (FilterOutput, Source, dns, Udp, Accept),
        // Clients in the network of the host.
        (RawOutput, Destination, dns, Tcp, NoTrack),
        (RawOutput, Destination, dns, Udp, NoTrack),
        // The kubelet's probes.
        (RawOutput, Destination, health, Tcp, NoTrack),
        (RawOutput, Source, health, Tcp, NoTrack),
    ]
    .into_iter()
    .map(move |(hook, side, port, protocol, verdict)| Rule { hook, side, ip, port, protocol, verdict })
}
