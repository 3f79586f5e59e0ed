//! Accept loop of an HTTP listener: it bounds the open connections, counts evictions, and survives a lack of file
//! descriptors. [`http_server`](crate::http_server) serves each connection.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use host::boxed;
use metrics::{Counter, Counters, Registry};
use net::{Connection, ConnectionTable, Limits, TableLimits};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use transport::spare::{Freed, Spare};

/// Spare descriptors of a listener: for two clients at the same time, such as a probe and a scrape.
const SPARE: usize = 2;
/// Address that the peers of a Unix socket share in the connection table.
const UNIX_PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Listening socket.
pub trait Listener: AsFd {
    /// Accepted connection.
    type Stream;

    /// Accepts a connection. Returns it with the address by which the connection table knows its peer.
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(Self::Stream, IpAddr)>>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(TcpStream, IpAddr)>> {
        self.poll_accept(context).map_ok(|(stream, peer)| (stream, peer.ip()))
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<(UnixStream, IpAddr)>> {
        self.poll_accept(context).map_ok(|(stream, _)| (stream, UNIX_PEER))
    }
}

/// Counter of connections that were closed in favour of new ones.
pub struct Evictions(Counters, Counter);

impl Evictions {
    /// Creates a counter in `registry` for the evictions of `limit`.
    #[must_use]
    pub fn new(registry: &Registry, limit: fn(&Limits) -> Counter) -> Evictions {
        Evictions(registry.counters(), limit(&Limits::new(registry)))
    }

    fn count(&self) {
        self.0.count(self.1);
    }
}

/// Admission to one listener: what its accept loop and its connections share.
#[derive(Clone)]
pub struct Gate {
    table: Arc<ConnectionTable>,
    evictions: Rc<Evictions>,
    spare: Rc<Spare>,
}

impl Gate {
    /// Creates an empty gate. Must be called within a `LocalSet`.
    #[must_use]
    pub fn new(limits: TableLimits, evictions: Rc<Evictions>) -> Gate {
        Gate { table: ConnectionTable::new(limits), evictions, spare: Spare::open_later(SPARE) }
    }

    /// Accepts connections until aborted, up to `at_once` of them before the open ones run. `accepted` starts a task
    /// for each.
    pub async fn run<L: Listener>(&self, listener: &L, at_once: usize, accepted: impl Fn(L::Stream, IpAddr)) {
        loop {
            // Open connections run before new ones are accepted. Otherwise a flood could evict one, such as that of a
            // probe, before its request is read.
            tokio::task::yield_now().await;
            let Ok((stream, from)) = poll_fn(|context| listener.poll_accept(context)).await else {
                // The process has most likely no file descriptor left.
                if self.spare.free_one(listener).await == Freed::Nothing {
                    self.table.evict_one();
                }
                continue;
            };
            accepted(stream, from);
            for _ in 1..at_once {
                let waiting = poll_fn(|context| Poll::Ready(listener.poll_accept(context))).await;
                let Poll::Ready(Ok((stream, from))) = waiting else { break };
                accepted(stream, from);
            }
        }
    }

    /// Serves a connection from `from` in a task, until `serving` ends or the connection is evicted.
    pub fn admit(&self, from: IpAddr, serving: impl AsyncFnOnce(&Connection) -> io::Result<()> + 'static) {
        let (connection, evicted) = self.table.admit(from);
        if evicted {
            self.evictions.count();
        }
        let spare = Rc::clone(&self.spare);
        tokio::task::spawn_local(boxed(async move {
            tokio::select! {
                biased;
                () = connection.evicted() => {}
                // Errors of a single connection, such as a reset by the client, need no report.
                _ = serving(&connection) => {}
            }
            spare.refill();
        }));
    }
}
