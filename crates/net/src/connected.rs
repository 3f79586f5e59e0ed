//! Client connection: peer address, timeouts, and the call into the engine. Modules `tcp`, `grpc` and `https` decode
//! the queries.

use std::cell::Ref;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, Instant, Listening, PeerInfo, Progress, ProxyTlvs, Scheme, Transaction, Transport};
use host::invariant::holds;
use transport::MonotonicClock;

use crate::connections::Connection;
use crate::endpoint::{Endpoint, Seen};
use crate::limits::StreamLimits;
use crate::shared::Shared;

/// Memory of connections in units of one over TCP, measured: a TLS session takes four kilobytes more, and HTTP/2 with
/// its tables and buffers twenty.
const TLS_WEIGHT: usize = 2;
const HTTP_WEIGHT: usize = 5;

/// Client connection. Counted in [`Shared::streams`] until dropped.
pub(crate) struct Client {
    pub(crate) shared: Rc<Shared>,
    pub(crate) endpoint: Rc<Endpoint>,
    pub(crate) scheme: Scheme,
    /// Peer and local address, and transport.
    pub(crate) peer: PeerInfo,
    pub(crate) limits: StreamLimits,
    pub(crate) listening: Listening,
    /// Entry in the connection table of the process, with its buffer reservation.
    pub(crate) connection: Arc<Connection>,
    /// Entry in this address's own connection table, if its scheme has a limit for them.
    pub(crate) caller: Option<Arc<Connection>>,
}

impl Drop for Client {
    fn drop(&mut self) {
        holds(self.shared.streams.get() > 0, "a connection that ends was counted");
        self.shared.streams.set(self.shared.streams.get() - 1);
    }
}

impl Client {
    /// Registers a new connection. Returns `None` if the address has reached the limit of connections that its scheme
    /// has.
    pub(crate) fn new(
        shared: &Rc<Shared>,
        endpoint: &Rc<Endpoint>,
        peer: SocketAddr,
        local: SocketAddr,
    ) -> Option<Client> {
        let scheme = endpoint.scheme(shared);
        let (listening, usual) = (endpoint.listening(shared), shared.stream_limits);
        let callers_max = match scheme {
            Scheme::Grpc => listening.calls.connections_max,
            Scheme::Https => listening.https.connections_max,
            _ => 0,
        };
        let caller = if callers_max > 0 {
            Some(Arc::new(endpoint.connections.admit_within(peer.ip(), callers_max, Arc::default())?))
        } else {
            None
        };
        let weight = match scheme {
            Scheme::Grpc | Scheme::Https => HTTP_WEIGHT,
            _ if endpoint.tls(shared).is_some() => TLS_WEIGHT,
            _ => 1,
        };
        let (connection, evicted) = shared.connections.admit_weighing(peer.ip(), weight, Arc::default());
        if evicted {
            shared.count(shared.limits.streams);
        }
        shared.streams.set(shared.streams.get() + 1);
        let limits = StreamLimits {
            read: listening.timeouts.read.unwrap_or(usual.read),
            idle: listening.timeouts.idle.unwrap_or(usual.idle),
            write: listening.timeouts.write.unwrap_or(usual.write),
            ..usual
        };
        let transport = match scheme {
            Scheme::Grpc => Transport::Grpc,
            Scheme::Https => Transport::Https,
            _ => Transport::Tcp,
        };
        let peer = PeerInfo { address: peer, local, transport, tlvs: ProxyTlvs::None };
        let (shared, endpoint) = (Rc::clone(shared), Rc::clone(endpoint));
        Some(Client { shared, endpoint, scheme, peer, limits, listening, connection: Arc::new(connection), caller })
    }

    /// Replaces the peer address by the one from a PROXY header, and counts the connection for that address.
    pub(crate) fn comes_from(&mut self, peer: PeerInfo) {
        let address = peer.address.ip();
        self.peer = peer;
        self.connection.belongs_to(address);
        self.caller.iter().for_each(|caller| caller.belongs_to(address));
    }

    /// Records the time of the latest query.
    fn touch_at(&self, now: Instant) {
        self.connection.touch_at(now);
        self.caller.iter().for_each(|caller| caller.touch_at(now));
    }

    /// Returns the idle timeout. It shrinks as the connection table fills.
    pub(crate) fn idle_time(&self) -> Duration {
        self.connection.idle_time(self.limits.idle)
    }

    /// Runs a query of this client through the engine until it is answered or must wait.
    pub(crate) fn receive(&self, query: &[u8]) -> (Ref<'_, Seen>, Box<Transaction>, Progress) {
        let seen = self.endpoint.seen(&self.shared);
        let mut worker = self.shared.worker.borrow_mut();
        let mut transaction = worker.take_transaction();
        transaction.query.packet.clear();
        transaction.query.packet.extend_from_slice(query);
        transaction.query.peer = self.peer.clone();
        transaction.query.received = MonotonicClock.now();
        self.touch_at(transaction.query.received);
        let progress = seen.generation.receive(seen.listener, &mut transaction, &mut worker);
        (seen, transaction, progress)
    }
}
