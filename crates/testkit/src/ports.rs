//! Ports of 127.0.0.1: for tests with real sockets, and for programs that cannot bind port 0.
//!
//! A port that is free for UDP may be in use for TCP, most often by a client connection of another test. The functions
//! therefore choose among the ports that Linux does not assign, and try several.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// First port: most well-known services use lower ones.
const FIRST: u16 = 10_000;
/// Start of Linux's ephemeral ports. Other tests use these all the time, so a free one could be taken before the
/// program starts.
const END: u16 = 32_768;
/// Number of ports that are tried.
const TRIES: usize = 100;

/// Binds a UDP socket and a TCP listener to the same port.
///
/// # Panics
/// No free port was found in 100 attempts.
#[must_use]
#[allow(clippy::expect_used, reason = "a test without a port fails")]
pub fn bind_pair() -> (UdpSocket, TcpListener) {
    let bind = |port| {
        let address = (Ipv4Addr::LOCALHOST, port);
        io::Result::Ok((UdpSocket::bind(address)?, TcpListener::bind(address)?))
    };
    std::iter::repeat_with(any_port).take(TRIES).find_map(|port| bind(port).ok()).expect("a free port")
}

/// Returns an address that no socket is bound to, for UDP and TCP. Until a test binds it, it refuses connections.
///
/// # Panics
/// No free port was found in 100 attempts.
#[must_use]
pub fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

/// Returns the port of a [`free_address`].
///
/// # Panics
/// No free port was found in 100 attempts.
#[must_use]
#[allow(clippy::expect_used, reason = "a bound socket has an address")]
pub fn free_port() -> u16 {
    bind_pair().0.local_addr().expect("a bound socket").port()
}

fn any_port() -> u16 {
    let offset = RandomState::new().hash_one(()) % u64::from(END - FIRST);
    FIRST + u16::try_from(offset).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{UdpSocket, bind_pair, free_address};

    #[test]
    fn a_pair_has_one_port_that_no_other_pair_has() {
        let pairs: Vec<_> = (0..100).map(|_| bind_pair()).collect();
        let mut ports: Vec<_> = pairs.iter().map(|(udp, _)| udp.local_addr().unwrap()).collect();
        assert!(pairs.iter().zip(&ports).all(|((_, tcp), port)| tcp.local_addr().unwrap() == *port));
        ports.sort();
        ports.dedup();
        assert_eq!(ports.len(), pairs.len());
    }

    #[test]
    fn a_free_address_can_be_bound() {
        assert!(UdpSocket::bind(free_address()).is_ok());
    }
}
