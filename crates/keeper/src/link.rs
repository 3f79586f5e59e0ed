//! The Unix socket between the keeper and its child, on which each packet is a record with its sockets.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use host::invariant::holds;

use rustix::io::ioctl_fionbio;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::record::{RECORD_SIZE, Record, SOCKETS_MAX};

/// Environment variable of the child with the number of its descriptor.
pub const VARIABLE: &str = "PORTOLAN_KEEPER";

/// One end of the connection.
#[derive(Debug)]
pub struct Link(OwnedFd);

/// Outcome of [`Link::receive`].
#[derive(Debug)]
pub enum Received {
    /// A record and its sockets.
    Record(Record, Vec<OwnedFd>),
    /// A packet that is no record.
    Unknown,
    /// Nothing now.
    Nothing,
    /// The other end is closed.
    Closed,
}

impl Link {
    /// Connects a keeper with a child that it starts next. The keeper's end does not block. The child's end stays open
    /// in programs that this process starts, so the caller closes it after the first one.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn pair() -> io::Result<(Link, OwnedFd)> {
        let (own, of_child) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::empty(), None)?;
        rustix::io::fcntl_setfd(&own, rustix::io::FdFlags::CLOEXEC)?;
        ioctl_fionbio(&own, true)?;
        Ok((Link(own), of_child))
    }

    /// Takes the child's end.
    #[must_use]
    pub fn new(end: OwnedFd) -> Link {
        Link(end)
    }

    /// Sends a record with at most [`SOCKETS_MAX`] sockets.
    ///
    /// # Errors
    /// The error of the system call: `WouldBlock` if the other end does not read.
    pub fn send(&self, record: &Record, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        // The space of the control message is rounded up, so it may take one more.
        let fits = sockets.len() <= SOCKETS_MAX
            && (sockets.is_empty() || control.push(SendAncillaryMessage::ScmRights(sockets)));
        if !fits {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let bytes = record.encode();
        debug_assert!(Record::decode(&bytes).is_some(), "a record is read as it was written");
        let sent =
            rustix::io::retry_on_intr(|| sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL))?;
        if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Receives a record.
    ///
    /// # Errors
    /// The error of the system call.
    pub fn receive(&self) -> io::Result<Received> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = [0; RECORD_SIZE];
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(&self.0, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)
        });
        let length = match received {
            Ok(received) => received.bytes,
            Err(rustix::io::Errno::AGAIN) => return Ok(Received::Nothing),
            Err(rustix::io::Errno::CONNRESET) => return Ok(Received::Closed),
            Err(error) => return Err(error.into()),
        };
        let mut sockets = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                sockets.extend(rights);
            }
        }
        holds(length <= RECORD_SIZE, "the kernel writes no more than there is room for");
        // The space of the control message is rounded up, so it may hold one more.
        holds(sockets.len() <= SOCKETS_MAX + 1, "the kernel passes no more sockets than there is room for");
        Ok(match Record::decode(&bytes[..length]) {
            Some(record) => Received::Record(record, sockets),
            None if length == 0 => Received::Closed,
            None => Received::Unknown,
        })
    }
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn passes_records_and_sockets_and_sees_the_end() {
        let (own, of_child) = Link::pair().unwrap();
        let child = Link::new(of_child);
        assert!(matches!(own.receive().unwrap(), Received::Nothing), "does not block");
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let record = Record::Sockets("dns://:53 127.0.0.1:53".to_owned());
        child.send(&record, &[socket.as_fd(), socket.as_fd()]).unwrap();
        child.send(&Record::Serving, &[]).unwrap();
        assert!(child.send(&record, &[socket.as_fd(); SOCKETS_MAX + 1]).is_err());
        let Received::Record(received, sockets) = own.receive().unwrap() else { panic!() };
        assert_eq!((received, sockets.len()), (record, 2));
        let same = UdpSocket::from(sockets.into_iter().next().unwrap());
        assert_eq!(same.local_addr().unwrap(), socket.local_addr().unwrap());
        drop(child);
        assert!(matches!(own.receive().unwrap(), Received::Record(Record::Serving, _)), "what was sent before");
        assert!(matches!(own.receive().unwrap(), Received::Closed));
    }

    #[test]
    fn a_packet_of_another_kind_is_no_record() {
        let (own, of_child) = Link::pair().unwrap();
        rustix::io::write(&of_child, b"hello").unwrap();
        assert!(matches!(own.receive().unwrap(), Received::Unknown));
    }
}
