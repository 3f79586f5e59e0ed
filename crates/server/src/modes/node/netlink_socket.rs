//! Netlink socket: sends the requests of the crate `linuxnet` and reads the responses.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::time::Duration;

use linux::net::netlink::{Message, MessageBuffer, split_messages};
use socket2::{Domain, Protocol, Socket, Type};

/// Read timeout. The kernel answers immediately, so this only prevents a hang.
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum size of a datagram, in bytes. The description of an interface has a few thousand.
const DATAGRAM_MAX: usize = 32 * 1024;

/// Netlink socket of one protocol.
pub(super) struct NetlinkSocket(Socket);

impl NetlinkSocket {
    /// Opens a socket.
    pub(super) fn open(protocol: i32) -> io::Result<NetlinkSocket> {
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(protocol)))?;
        socket.set_read_timeout(Some(READ_TIMEOUT))?;
        Ok(NetlinkSocket(socket))
    }

    /// Sends a command and waits for its acknowledgement.
    pub(super) fn execute(&self, messages: &MessageBuffer) -> io::Result<()> {
        self.request(messages, |_| None)
    }

    /// Sends a request and passes each message of the response to `each`, until it returns a value.
    pub(super) fn query<T>(&self, messages: &MessageBuffer, each: impl Fn(&Message<'_>) -> Option<T>) -> io::Result<T> {
        let mut found = None;
        self.request(messages, |message| {
            found = each(message);
            found.as_ref().map(drop)
        })?;
        found.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn request(&self, messages: &MessageBuffer, mut each: impl FnMut(&Message<'_>) -> Option<()>) -> io::Result<()> {
        self.discard_unread();
        self.0.send(messages.as_bytes())?;
        let mut datagram = vec![0; DATAGRAM_MAX];
        loop {
            let length = (&self.0).read(&mut datagram)?;
            for message in split_messages(datagram.get(..length).unwrap_or_default()) {
                match message.error_code() {
                    Some(0) => return Ok(()),
                    Some(error) => return Err(io::Error::from_raw_os_error(error)),
                    None if each(&message).is_some() => return Ok(()),
                    None => {}
                }
            }
        }
    }

    /// Discards unread messages of earlier requests: a failed batch has many errors, of which only the first is read.
    fn discard_unread(&self) {
        let mut rest = [MaybeUninit::uninit(); 16];
        while self.0.recv_with_flags(&mut rest, libc::MSG_DONTWAIT).is_ok() {}
    }
}
