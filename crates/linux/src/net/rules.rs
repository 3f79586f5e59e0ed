//! Rules for packets to and from the cache: they bypass connection tracking, so kube-proxy does not rewrite their
//! addresses and they do not fill the conntrack table.

use core::net::IpAddr;

/// Chain that a rule belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Incoming packets before connection tracking.
    RawPrerouting,
    /// Outgoing packets before connection tracking.
    RawOutput,
    /// Incoming packets for this host.
    FilterInput,
    /// Outgoing packets.
    FilterOutput,
}

/// End of a packet that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Destination address and port.
    Destination,
    /// Source address and port.
    Source,
}

/// Transport protocol that a rule matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Skip connection tracking.
    NoTrack,
    /// Accept the packet.
    Accept,
}

/// Packet filter rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Chain.
    pub hook: Hook,
    /// End of the packet.
    pub side: Side,
    /// Address at that end.
    pub ip: IpAddr,
    /// Port at that end.
    pub port: u16,
    /// Transport protocol.
    pub protocol: Protocol,
    /// Verdict.
    pub verdict: Verdict,
}

/// Returns the rules for a cache on these addresses: twelve per address, the same as node-cache's.
#[must_use]
pub fn conntrack_bypass(addresses: &[IpAddr], dns_port: u16, health_port: u16) -> Vec<Rule> {
    addresses.iter().flat_map(|ip| rules_of(*ip, dns_port, health_port)).collect()
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
        // Clients with host networking.
        (RawOutput, Destination, dns, Tcp, NoTrack),
        (RawOutput, Destination, dns, Udp, NoTrack),
        // The kubelet's probes.
        (RawOutput, Destination, health, Tcp, NoTrack),
        (RawOutput, Source, health, Tcp, NoTrack),
    ]
    .into_iter()
    .map(move |(hook, side, port, protocol, verdict)| Rule { hook, side, ip, port, protocol, verdict })
}
