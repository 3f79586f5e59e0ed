//! Asking the kernel: a request of crate `node` goes out, and how it went comes back.

use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::time::Duration;

use node::netlink::{Message, Messages, read};
use socket2::{Domain, Protocol, Socket, Type};

/// The kernel answers at once; should it not, nothing may hang.
const PATIENCE: Duration = Duration::from_secs(2);
/// Octets of the longest datagram: what it says of an interface is a few thousand.
const DATAGRAM_MAX: usize = 32 * 1024;

/// A connection to one part of the kernel.
pub(super) struct Kernel(Socket);

impl Kernel {
    /// Opens one.
    pub(super) fn open(protocol: i32) -> io::Result<Kernel> {
        let socket = Socket::new(Domain::from(libc::AF_NETLINK), Type::RAW, Some(Protocol::from(protocol)))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Kernel(socket))
    }

    /// Has something done.
    pub(super) fn order(&self, messages: &Messages) -> io::Result<()> {
        self.ask(messages, |_| None)
    }

    /// Asks something: `each` sees what comes, until it has found what it looks for.
    pub(super) fn find<T>(&self, messages: &Messages, each: impl Fn(&Message<'_>) -> Option<T>) -> io::Result<T> {
        let mut found = None;
        self.ask(messages, |message| {
            found = each(message);
            found.as_ref().map(drop)
        })?;
        found.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn ask(&self, messages: &Messages, mut each: impl FnMut(&Message<'_>) -> Option<()>) -> io::Result<()> {
        self.forget();
        self.0.send(messages.octets())?;
        let mut datagram = vec![0; DATAGRAM_MAX];
        loop {
            let length = (&self.0).read(&mut datagram)?;
            for message in read(datagram.get(..length).unwrap_or_default()) {
                match message.outcome() {
                    Some(0) => return Ok(()),
                    Some(error) => return Err(io::Error::from_raw_os_error(error)),
                    None if each(&message).is_some() => return Ok(()),
                    None => {}
                }
            }
        }
    }

    /// What was said of requests before is of no use any more: a batch that fails has many errors, the first is enough.
    fn forget(&self) {
        let mut rest = [MaybeUninit::uninit(); 16];
        while self.0.recv_with_flags(&mut rest, libc::MSG_DONTWAIT).is_ok() {}
    }
}
