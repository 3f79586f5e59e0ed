//! Passes listening sockets to another process over a Unix socket. The kernel queues go with the sockets, so nothing is
//! lost.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use host::invariant::holds;

use rustix::net::sockopt::{socket_acceptconn, socket_domain, socket_reuseport, socket_type};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketType, getpeername, getsockname, recvmsg, sendmsg,
};

/// Maximum number of sockets per message. The kernel allows 253.
pub const SOCKETS_MAX: usize = 64;
/// Maximum number of bytes sent with the sockets.
pub(crate) const NOTE_MAX: usize = 16 * 1024;

/// Sends `note`, and with it at most [`SOCKETS_MAX`] sockets.
///
/// # Errors
/// The error of the system call, or `InvalidInput` if the note is too long or there are too many sockets.
pub fn send_sockets(stream: impl AsFd, note: &[u8], sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if note.len() > NOTE_MAX || !sockets.is_empty() && !control.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(stream, &[IoSlice::new(note)], &mut control, SendFlags::NOSIGNAL)?;
    // The sockets leave with the first byte. A second call for the rest of the note would send them twice.
    if sent == note.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives what one call of [`send_sockets`] sent. The note is empty at the end of the stream.
///
/// # Errors
/// The error of the system call.
pub fn receive_sockets(stream: impl AsFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut note = vec![0; NOTE_MAX];
    // A child process, such as a credential plugin, would otherwise keep the sockets, and with them the queues that
    // nobody reads after this process has ended.
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut note)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    note.truncate(received.bytes);
    holds(note.len() == received.bytes, "the kernel writes no more than there is room for");
    let mut sockets = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            sockets.extend(rights);
        }
    }
    holds(sockets.len() <= SOCKETS_MAX + 1, "the kernel passes no more sockets than there is room for");
    Ok((note, sockets))
}

/// Kind of a socket that a process hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketKind {
    /// UDP socket.
    Datagrams,
    /// Listening TCP socket.
    Listener,
}

/// Checks that a received socket is an unconnected UDP socket, or a listening TCP socket, on this address, which other
/// sockets may share. Whoever sends sockets could send any others, and these would then be served.
///
/// # Errors
/// Returns `InvalidData` with what is wrong, or the error of a system call.
pub fn check_received(socket: impl AsFd, kind: SocketKind, bound: SocketAddr) -> io::Result<()> {
    let wrong = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let address = SocketAddr::try_from(getsockname(&socket)?).ok();
    if address != Some(bound) {
        let address = address.map_or_else(|| "another family".to_owned(), |address| address.to_string());
        return wrong(format!("a socket for {bound} is bound to {address}"));
    }
    let family = if bound.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    // Without `SO_REUSEPORT`, the other workers could not open their sockets on the address. A connected UDP socket
    // would be deaf to everybody but its peer.
    let is_right = socket_domain(&socket)? == family
        && socket_reuseport(&socket)?
        && match kind {
            SocketKind::Datagrams => socket_type(&socket)? == SocketType::DGRAM && getpeername(&socket).is_err(),
            SocketKind::Listener => socket_type(&socket)? == SocketType::STREAM && socket_acceptconn(&socket)?,
        };
    if is_right { Ok(()) } else { wrong(format!("a socket for {bound} has another type or other options")) }
}

/// Returns the effective user ID of this process.
#[must_use]
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::unix::net::UnixStream;

    use socket2::{Domain, Socket, Type};

    use super::*;

    fn open(kind: Type, address: SocketAddr, is_shared: bool) -> Socket {
        let socket = Socket::new(Domain::for_address(address), kind, None).unwrap();
        socket.set_reuse_port(is_shared).unwrap();
        socket.bind(&address.into()).unwrap();
        socket
    }

    #[test]
    fn refuses_sockets_that_are_not_what_was_promised() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let address = |socket: &Socket| socket.local_addr().unwrap().as_socket().unwrap();
        let (udp, alone) = (open(Type::DGRAM, any, true), open(Type::DGRAM, any, false));
        let (tcp, listener) = (open(Type::STREAM, any, true), open(Type::STREAM, any, true));
        listener.listen(1).unwrap();
        let connected = open(Type::DGRAM, any, true);
        connected.connect(&address(&udp).into()).unwrap();
        let v6 = Socket::new(Domain::IPV6, Type::DGRAM, None).unwrap();
        let check = |socket: &Socket, kind, bound| check_received(socket, kind, bound);
        check(&udp, SocketKind::Datagrams, address(&udp)).unwrap();
        check(&listener, SocketKind::Listener, address(&listener)).unwrap();
        for (socket, kind, bound) in [
            (&udp, SocketKind::Datagrams, address(&alone)),
            (&udp, SocketKind::Listener, address(&udp)),
            (&alone, SocketKind::Datagrams, address(&alone)),
            (&connected, SocketKind::Datagrams, address(&connected)),
            (&tcp, SocketKind::Listener, address(&tcp)),
            (&listener, SocketKind::Datagrams, address(&listener)),
            (&v6, SocketKind::Datagrams, address(&udp)),
        ] {
            assert!(check(socket, kind, bound).is_err(), "{socket:?} {kind:?} {bound}");
        }
    }

    #[test]
    fn queued_datagrams_move_with_the_socket() {
        let (here, there) = UnixStream::pair().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(b"waits", address).unwrap();
        send_sockets(&here, b"one", &[socket.as_fd()]).unwrap();
        send_sockets(&here, b"end", &[]).unwrap();
        drop((socket, here));
        let (note, mut sockets) = receive_sockets(&there).unwrap();
        assert_eq!((note.as_slice(), sockets.len()), (&b"one"[..], 1));
        let given = UdpSocket::from(sockets.remove(0));
        let mut bytes = [0; 16];
        assert_eq!(given.recv(&mut bytes).unwrap(), 5);
        assert_eq!(receive_sockets(&there).unwrap().0, b"end");
        assert!(receive_sockets(&there).unwrap().0.is_empty(), "the end of the stream");
    }
}
