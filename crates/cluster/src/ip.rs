//! Addresses as objects write them.

use std::net::{IpAddr, Ipv6Addr};

/// Reads an address of either family.
pub(crate) fn read_ip(text: &str) -> Option<IpAddr> {
    text.parse().ok().map(IpAddr::V4).or_else(|| read_v6(text).map(IpAddr::V6))
}

/// Reads an IPv6 address. Those that stand for an IPv4 address (RFC 4291 §2.5.5.2) are refused, as by newer API servers:
/// written with dashes they read back as another address.
pub(crate) fn read_v6(text: &str) -> Option<Ipv6Addr> {
    text.parse().ok().filter(|address: &Ipv6Addr| address.to_ipv4_mapped().is_none())
}
