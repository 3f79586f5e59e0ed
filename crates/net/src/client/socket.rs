//! UDP socket that is connected to an upstream, so that the system drops datagrams from other sources.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Maximum number of errors that are removed in a row from a socket's error queue. A socket carries eight queries.
const ERRORS_MAX: usize = 32;

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
        // A kernel without the option reports fewer errors, and the queries time out.
        let _ = linux::datagrams::report_icmp_errors(&socket, to.is_ipv4());
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket)?;
        let local = socket.local_addr().ok();
        Ok(Socket { socket, local })
    }

    /// Removes the reported errors from the error queue. While it has any, the system reports an error with each event.
    pub(super) fn drain_errors(&self) {
        let socket = socket2::SockRef::from(&self.socket);
        let mut payload = [core::mem::MaybeUninit::uninit(); 1];
        for _ in 0..ERRORS_MAX {
            if socket.recv_with_flags(&mut payload, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT).is_err() {
                return;
            }
        }
    }

    /// Sends without tokio. Tokio would first wait for the kernel to report a fresh socket as writable.
    pub(super) fn send(&self, datagram: &[u8]) -> io::Result<usize> {
        let socket = socket2::SockRef::from(&self.socket);
        match socket.send(datagram) {
            // The error belongs to an earlier datagram (ICMP). This one has not been sent.
            Err(error) if is_unreachable(&error) => socket.send(datagram),
            outcome => outcome,
        }
    }

    /// Takes the pending error, such as port unreachable. Errors that concern a single datagram are dropped.
    pub(super) fn take_error(&self) -> Option<io::Error> {
        let mut taken = None;
        let _ = self.socket.try_io(Interest::ERROR, || {
            taken = self.socket.take_error().ok().flatten();
            // Makes tokio clear the readiness and wait for the next error.
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
        self.drain_errors();
        taken.filter(is_unreachable)
    }
}

/// Returns true if an error of a socket says that the upstream cannot be reached, which concerns all its queries.
/// `EMSGSIZE`, for example, only says that a datagram was too long for its path.
pub(super) fn is_unreachable(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable, PermissionDenied};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | PermissionDenied)
}
