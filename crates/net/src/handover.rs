//! Passes listening sockets to another process over a Unix socket. The kernel queues go with the sockets, so nothing is
//! lost.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// Maximum number of sockets per message. The kernel allows 253.
pub const SOCKETS_MAX: usize = 64;
/// Maximum number of bytes sent with the sockets.
pub(crate) const NOTE_MAX: usize = 16 * 1024;

/// Sends `note`, and with it at most [`SOCKETS_MAX`] sockets.
///
/// # Errors
/// The error of the system call, or `InvalidInput` if the note is too long or there are too many sockets.
pub fn send_sockets(stream: &UnixStream, note: &[u8], sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if note.len() > NOTE_MAX || !sockets.is_empty() && !control.push(SendAncillaryMessage::ScmRights(sockets)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(stream, &[IoSlice::new(note)], &mut control, SendFlags::NOSIGNAL)?;
    if sent == note.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives what one call of [`send_sockets`] sent. The note is empty at the end of the stream.
///
/// # Errors
/// The error of the system call.
pub fn receive_sockets(stream: &UnixStream) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut note = vec![0; NOTE_MAX];
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut note)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    note.truncate(received.bytes);
    let mut sockets = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            sockets.extend(rights);
        }
    }
    Ok((note, sockets))
}

/// Returns the effective user ID of this process.
#[must_use]
pub fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

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
