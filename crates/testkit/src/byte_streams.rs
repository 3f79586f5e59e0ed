//! Fake byte streams to peers defined by a test.

use core::cell::RefCell;
use core::future::poll_fn;
use core::task::{Poll, Waker};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::rc::Rc;

use engine::LocalFuture;
use engine::streams::{ByteStream, StreamAddress};

/// Peer of a stream: receives the written bytes and returns the bytes to be read.
pub type Peer = Box<dyn FnMut(&[u8]) -> Vec<u8>>;

type Known = Rc<RefCell<Peer>>;

/// Peers by their addresses, as written in a Corefile.
#[derive(Clone, Default)]
pub(crate) struct Peers(Rc<RefCell<HashMap<String, Known>>>);

impl Peers {
    /// Sets the peer at an address; `None` removes it and closes its streams.
    pub(crate) fn set(&self, address: &str, peer: Option<Peer>) {
        match peer {
            Some(peer) => self.0.borrow_mut().insert(address.to_owned(), Rc::new(RefCell::new(peer))),
            None => self.0.borrow_mut().remove(address),
        };
    }

    /// Opens a stream. Fails if there is no peer at the address.
    pub(crate) fn connect(&self, to: &StreamAddress) -> io::Result<Box<dyn ByteStream>> {
        let address = match to {
            StreamAddress::Unix(path) => path.display().to_string(),
            StreamAddress::Tcp(address) => address.clone(),
        };
        let peer = self.0.borrow().get(&address).cloned().ok_or(io::ErrorKind::ConnectionRefused)?;
        let place = (self.clone(), address);
        Ok(Box::new(Stream { place, peer, readable: RefCell::default() }))
    }
}

struct Stream {
    place: (Peers, String),
    peer: Known,
    readable: RefCell<Readable>,
}

#[derive(Default)]
struct Readable {
    bytes: VecDeque<u8>,
    reader: Option<Waker>,
}

impl Stream {
    /// Returns true if the peer is still there.
    fn is_open(&self) -> bool {
        let (peers, address) = &self.place;
        peers.0.borrow().get(address).is_some_and(|peer| Rc::ptr_eq(peer, &self.peer))
    }
}

impl ByteStream for Stream {
    fn read<'a>(&'a mut self, buffer: &'a mut [u8]) -> LocalFuture<'a, io::Result<usize>> {
        Box::pin(poll_fn(move |context| {
            if !self.is_open() {
                return Poll::Ready(Ok(0));
            }
            let mut readable = self.readable.borrow_mut();
            if readable.bytes.is_empty() {
                readable.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(io::Read::read(&mut readable.bytes, buffer))
        }))
    }

    fn write_all<'a>(&'a mut self, bytes: &'a [u8]) -> LocalFuture<'a, io::Result<()>> {
        Box::pin(async move {
            if !self.is_open() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let answer = (self.peer.borrow_mut())(bytes);
            let mut readable = self.readable.borrow_mut();
            readable.bytes.extend(answer);
            readable.reader.take().into_iter().for_each(Waker::wake);
            Ok(())
        })
    }
}
