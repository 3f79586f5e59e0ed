//! Ports for programs that cannot bind port 0.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// First port: most well-known services use lower ones.
const FIRST: u16 = 10_000;
/// Start of Linux's ephemeral ports. Other tests use these all the time, so a free one could be taken before the
/// program starts.
const END: u16 = 32_768;

/// Returns a free port of 127.0.0.1, for UDP and TCP.
pub(crate) fn free_port() -> u16 {
    let is_free = |port: &u16| {
        let address = (Ipv4Addr::LOCALHOST, *port);
        UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
    };
    std::iter::repeat_with(any_port).take(100).find(is_free).expect("a free port")
}

/// Returns a free port of 127.0.0.1 as an address.
pub(crate) fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_port()).into()
}

fn any_port() -> u16 {
    let range = u64::from(END - FIRST);
    FIRST + u16::try_from(RandomState::new().hash_one(()) % range).expect("it is below 65536")
}
