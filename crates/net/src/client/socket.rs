//! UDP socket that is connected to an upstream, so that the system drops datagrams from other sources.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::Interest;
use tokio::net::UdpSocket;

pub(super) struct Socket {
    pub(super) socket: UdpSocket,
    /// Local address, if the system knows it.
    pub(super) local: Option<SocketAddr>,
}

impl Socket {
    /// Opens a socket from a port that the system chooses at random, and connects it.
    pub(super) fn open(to: SocketAddr, source: Option<IpAddr>) -> io::Result<Socket> {
        let any = if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let socket = std::net::UdpSocket::bind((source.unwrap_or(any), 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket)?;
        let local = socket.local_addr().ok();
        Ok(Socket { socket, local })
    }

    /// Sends without tokio. Tokio would first wait for the kernel to report a fresh socket as writable.
    pub(super) fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        let socket = socket2::SockRef::from(&self.socket);
        match socket.send(datagram) {
            // The error belongs to an earlier datagram (ICMP port unreachable). This one has not been sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => socket.send(datagram),
            outcome => outcome,
        }
    }

    /// Takes the pending error, such as port unreachable.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        let mut taken = None;
        let _ = self.socket.try_io(Interest::ERROR, || {
            taken = self.socket.take_error().ok().flatten();
            // Makes tokio clear the readiness and wait for the next error.
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
        taken
    }
}
