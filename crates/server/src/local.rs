//! What this machine is.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;

use plugins::LocalAddresses;

/// The addresses of this machine's interfaces, without loopback.
pub(crate) fn addresses() -> LocalAddresses {
    LocalAddresses(interface_addresses().into_iter().filter(|address| !address.is_loopback()).collect::<Arc<[_]>>())
}

/// The addresses as the kernel lists them, IPv4 and IPv6.
fn interface_addresses() -> Vec<IpAddr> {
    let v4 = std::fs::read_to_string("/proc/net/fib_trie").map(|text| host_addresses(&text)).unwrap_or_default();
    let v6 = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let v6 = v6.lines().filter_map(|line| line.split_whitespace().next()).filter_map(v6_address);
    let mut all: Vec<IpAddr> = v4.into_iter().chain(v6).collect();
    if all.is_empty() {
        all.extend(outgoing_address());
    }
    all
}

/// The addresses that `/proc/net/fib_trie` marks as of this host.
fn host_addresses(text: &str) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    let mut last = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line.starts_with("/32 host LOCAL")
            && let Some(address) = last
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

fn v6_address(hex: &str) -> Option<IpAddr> {
    u128::from_str_radix(hex, 16).ok().map(|bits| IpAddr::V6(bits.into()))
}

/// The address from which packets to elsewhere leave: what is left where `/proc` is not to be read.
fn outgoing_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: connecting a datagram socket only chooses the route.
    socket.connect("192.0.2.1:53").ok()?;
    socket.local_addr().ok().map(|address| address.ip()).filter(|ip| !ip.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_lists() {
        let trie = "Local:\n  +-- 10.0.0.0/8 2 0 2\n     |-- 10.1.2.3\n        /32 host LOCAL\n     |-- 10.255.255.255\n        /32 link BROADCAST\n";
        assert_eq!(host_addresses(trie), ["10.1.2.3".parse::<IpAddr>().unwrap()]);
        assert_eq!(v6_address("fd000000000000000000000000000002"), "fd00::2".parse().ok());
        assert!(interface_addresses().iter().any(IpAddr::is_loopback));
    }
}
