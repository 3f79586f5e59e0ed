//! A client on a stream, counted as long as it is there: from where it comes, how long it may take, what its queries are
//! answered. How its octets become queries is said by `tcp` and `grpc`.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::setup::Listening;
use engine::{Clock, Generation, Path, Scheme, Transport, Turn, Walk};

use crate::clock::MonotonicClock;
use crate::endpoint::Endpoint;
use crate::limits::StreamLimits;
use crate::shared::Shared;

/// A client that has connected, counted as long as it is there.
pub(crate) struct Client {
    pub(crate) shared: Rc<Shared>,
    pub(crate) endpoint: Rc<Endpoint>,
    pub(crate) scheme: Scheme,
    /// From where to where its queries come.
    pub(crate) path: Path,
    pub(crate) limits: StreamLimits,
    pub(crate) listening: Listening,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.streams.set(self.shared.streams.get() - 1);
        self.endpoint.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Client {
    pub(crate) fn new(shared: &Rc<Shared>, endpoint: &Rc<Endpoint>, peer: SocketAddr, local: SocketAddr) -> Client {
        shared.streams.set(shared.streams.get() + 1);
        endpoint.connections.fetch_add(1, Ordering::Relaxed);
        let scheme = endpoint.scheme(shared);
        let (listening, usual) = (endpoint.listening(shared), shared.stream_limits);
        let limits = StreamLimits {
            read: listening.timeouts.read.unwrap_or(usual.read),
            idle: listening.timeouts.idle.unwrap_or(usual.idle),
            write: listening.timeouts.write.unwrap_or(usual.write),
            ..usual
        };
        let transport = if scheme == Scheme::Grpc { Transport::Grpc } else { Transport::Tcp };
        let path = Path { peer, local, transport };
        Client { shared: Rc::clone(shared), endpoint: Rc::clone(endpoint), scheme, path, limits, listening }
    }

    /// Whether this client makes calls, and those that do are more than the address takes.
    pub(crate) fn is_one_too_many(&self) -> bool {
        let most = self.listening.calls.connections_max;
        self.scheme == Scheme::Grpc && most > 0 && self.endpoint.connections.load(Ordering::Relaxed) > most
    }

    /// Answers a query of this client, as far as this process knows the answer.
    pub(crate) fn receive(&self, query: &[u8]) -> (Arc<Generation>, Box<Walk>, Turn) {
        let (generation, listener) = self.endpoint.listener(&self.shared);
        let mut worker = self.shared.worker.borrow_mut();
        let mut walk = worker.take_walk();
        walk.query.packet.clear();
        walk.query.packet.extend_from_slice(query);
        walk.query.path = self.path;
        walk.query.received = MonotonicClock.now();
        let turn = generation.receive(listener, &mut walk, &mut worker);
        (generation, walk, turn)
    }
}
