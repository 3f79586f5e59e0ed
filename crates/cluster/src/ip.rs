//! IP addresses in the text form of Kubernetes objects.

use std::net::{IpAddr, Ipv6Addr};

/// Parses an address of either family.
pub(crate) fn read_ip(text: &str) -> Option<IpAddr> {
    text.parse().ok().map(IpAddr::V4).or_else(|| read_v6(text).map(IpAddr::V6))
}

/// Parses an IPv6 address. Rejects IPv4-mapped addresses (RFC 4291 §2.5.5.2), like recent API servers: as a label
/// with dashes, such an address would parse as a different one.
pub(crate) fn read_v6(text: &str) -> Option<Ipv6Addr> {
    text.parse().ok().filter(|address: &Ipv6Addr| address.to_ipv4_mapped().is_none())
}
