//! Order in which a client tries the addresses of a host: RFC 6724 §6, rules 1 (usable destinations first) and 6
//! (precedence).

use std::cmp::Reverse;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Sorts addresses. Keeps the order of equal ones.
pub(crate) fn sort(addresses: &mut [IpAddr]) {
    if addresses.len() > 1 {
        addresses.sort_by_cached_key(|address| Reverse((is_usable(*address), precedence(*address))));
    }
}

/// Returns true if the kernel has a source address and a route. Connecting a datagram socket sends nothing.
fn is_usable(address: IpAddr) -> bool {
    let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).is_ok_and(|socket| socket.connect((address, 53)).is_ok())
}

/// Returns the precedence in the default policy table (RFC 6724 §2.1).
fn precedence(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 35,
        IpAddr::V6(ip) if ip.is_loopback() => 50,
        IpAddr::V6(ip) => match ip.segments() {
            [0x2002, ..] => 30,
            [0x2001, 0, ..] => 5,
            [first, ..] if first & 0xfe00 == 0xfc00 => 3,
            _ => 40,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefers_global_ipv6_then_ipv4_then_local_ipv6() {
        let mut addresses: Vec<IpAddr> =
            ["fd00::1", "192.0.2.1", "2001:db8::1", "::1"].iter().map(|text| text.parse().unwrap()).collect();
        addresses.sort_by_key(|address| Reverse(precedence(*address)));
        assert_eq!(format!("{addresses:?}"), "[::1, 2001:db8::1, 192.0.2.1, fd00::1]");
    }

    #[test]
    fn puts_unusable_addresses_last() {
        // No host has a route to a datagram peer in 0.0.0.0/8 beyond 0.0.0.0.
        let mut addresses: Vec<IpAddr> = vec!["255.255.255.255".parse().unwrap(), Ipv4Addr::LOCALHOST.into()];
        sort(&mut addresses);
        assert_eq!(addresses[0], IpAddr::from(Ipv4Addr::LOCALHOST));
    }
}
