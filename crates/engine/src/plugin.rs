//! The contract between the engine and a plugin: the hooks that a plugin implements, and the I/O that it may use.
//!
//! # The chain
//!
//! The directives of a server block form a chain of middleware, in a fixed order. A query goes down the chain until
//! one plugin answers it. The response goes up again through the plugins that passed the query on:
//!
//! ```text
//!   client ──► cache.on_query ──► rewrite.on_query ──► forward.on_query ── Wait ──► forward.resolve
//!   client ◄── cache.on_response ◄── rewrite.on_response ◄── forward.on_resolved ◄───────┘
//! ```
//!
//! - [`Plugin::on_query`] runs on the way down. It answers, refuses, changes the question, or passes.
//! - [`Plugin::on_response`] runs on the way up, for answers and for failures.
//! - [`Plugin::resolve`] is the only asynchronous part. The engine calls it after a hook returned [`Verdict::Wait`],
//!   for example to query an upstream. [`Plugin::on_resolved`] then inspects the reply.
//! - [`Plugin::on_subanswer`] receives the answer to a subquery ([`Verdict::Ask`]), for example the target of a CNAME.
//!
//! Every hook tells the engine how to proceed by returning a [`Verdict`].
//!
//! # State
//!
//! One instance of a plugin serves all workers at once, so the hooks take `&self`. State that a plugin keeps from one
//! hook to the next belongs to the query: a `u64` ([`Query::set_note`]), which costs nothing, or a boxed value
//! ([`Query::keep`]).
//!
//! # I/O
//!
//! A plugin reaches the network, the clock, the log and the random source only through [`Outside`]. Scenarios
//! therefore run the same plugin with simulated time and simulated upstreams.

use core::any::Any;
use core::fmt;
use core::future::Future;
use core::net::{IpAddr, SocketAddr};
use core::pin::Pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use crate::log::{Level, Source};
use crate::metrics::Counters;
use crate::octets::{Dial, Listen, OctetListener, OctetStream};
use crate::tls::TlsClient;
use crate::{Failure, Moment, Query, Resolved, Response, Transport, Verdict, Worker};

/// Future that runs on the worker that received the query; it need not be `Send`.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A step in the chain of a server block.
///
/// The hooks run synchronously on the thread that read the packet. They must not block, must not take a lock, and
/// should not allocate on the usual path. A plugin that has to wait for I/O returns [`Verdict::Wait`] and does the I/O
/// in [`Plugin::resolve`].
///
/// The engine calls `on_query` and `on_response` only if the plugin declares them in its [`Hooks`](crate::Hooks).
pub trait Plugin: Send + Sync {
    /// Handles a query on the way down: answers it, refuses it, changes the question, or passes.
    fn on_query(&self, _query: &mut Query, _response: &mut Response, _worker: &mut Worker) -> Verdict {
        Verdict::Pass
    }

    /// Handles a response on the way up. The engine calls it exactly once for each query that this step passed on,
    /// also if the steps below failed or dropped the query.
    fn on_response(&self, _query: &mut Query, _response: &mut Response, _worker: &mut Worker) -> Verdict {
        Verdict::Pass
    }

    /// Handles the answer (`sub`) to a subquery that this plugin started with [`Verdict::Ask`].
    ///
    /// `response` is as the plugin left it before the subquery. The verdict continues from the hook that asked.
    fn on_subanswer(
        &self,
        _query: &mut Query,
        _sub: &mut Response,
        _response: &mut Response,
        _worker: &mut Worker,
    ) -> Verdict {
        Verdict::Done
    }

    /// Handles the message that [`Plugin::resolve`] returned; `response` already contains it. The engine does not call
    /// this hook if `resolve` failed.
    ///
    /// `Done` keeps the message. `Pass` discards it and continues with the next step. `Missing` marks it as a denial
    /// of the name, so that `fallthrough` applies. `Ask` starts a subquery, for example for the target of a CNAME.
    fn on_resolved(&self, _query: &mut Query, _response: &mut Response, _worker: &mut Worker) -> Verdict {
        Verdict::Done
    }

    /// Reserves one of the slots for queries that wait at this plugin, as *forward*'s `max_concurrent` does.
    ///
    /// The engine calls it before [`Plugin::resolve`], and also for a query that only waits for the reply to an
    /// identical one. `None` means that the plugin has no limit.
    ///
    /// # Errors
    /// The failure to answer with at once, if all slots are in use.
    fn take_place(&self, _query: &Query, _outside: &dyn Outside) -> Result<Option<Place>, Failure> {
        Ok(None)
    }

    /// Does the I/O for a query after [`Verdict::Wait`].
    ///
    /// Identical queries that wait at the same step at the same time share one call (singleflight).
    fn resolve<'a>(&'a self, _query: &'a Query, _outside: &'a dyn Outside) -> LocalFuture<'a, Resolved> {
        Box::pin(core::future::ready(Resolved::Pass))
    }
}

/// Slot for one waiting query; dropping it frees the slot.
#[derive(Debug)]
pub struct Place(Arc<AtomicU32>);

impl Place {
    /// Takes a slot if fewer than `most` are in use.
    #[must_use]
    pub fn take(taken: &Arc<AtomicU32>, most: u32) -> Option<Place> {
        let before = taken.fetch_add(1, Ordering::Relaxed);
        let place = Place(Arc::clone(taken));
        (before < most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Everything a plugin may use of the outside world: clock, randomness, log and network.
///
/// The crate `net` implements it for production, the testkit for scenarios.
pub trait Outside {
    /// The monotonic time.
    fn now(&self) -> Moment;

    /// The wall-clock time since the Unix epoch. It may jump in either direction.
    fn since_1970(&self) -> Duration;

    /// Completes at `at`.
    fn sleep_until(&self, at: Moment) -> LocalFuture<'_, ()>;

    /// Returns an unpredictable random number.
    fn random(&self) -> u64;

    /// Writes an event to the log. Never blocks.
    fn log(&self, level: Level, source: Source<'_>, message: fmt::Arguments<'_>);

    /// The metric counters of this thread.
    fn counters(&self) -> &Counters;

    /// Sends an HTTP request and returns the status code of the response.
    ///
    /// # Errors
    /// A description of the failure, for the log.
    fn fetch<'a>(&'a self, fetch: Fetch<'a>) -> LocalFuture<'a, Result<u16, String>>;

    /// Sends a query to an upstream and returns the reply.
    ///
    /// The implementation sends a random message ID and restores the original one in the reply. Over UDP, it uses an
    /// unpredictable source port and ignores datagrams that do not match the query until `exchange.until`.
    fn exchange<'a>(&'a self, exchange: Exchange<'a>) -> LocalFuture<'a, Result<Exchanged, ExchangeError>>;

    /// Like [`Outside::exchange`], over a new stream and for a reply of several messages (zone transfers). It passes
    /// each message to `take` until that returns `false`.
    fn exchange_all<'a>(&'a self, exchange: Exchange<'a>, take: Take<'a>)
    -> LocalFuture<'a, Result<(), ExchangeError>>;

    /// Opens a byte stream to a server that is not a DNS server.
    fn connect<'a>(&'a self, dial: Dial<'a>) -> LocalFuture<'a, io::Result<Box<dyn OctetStream>>>;

    /// Listens for byte streams that do not carry DNS.
    ///
    /// # Errors
    /// The error of the system call.
    fn listen(&self, listen: Listen<'_>) -> io::Result<Box<dyn OctetListener>>;
}

/// Callback for one message; returns true if it expects another one.
pub type Take<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

/// HTTP request.
#[derive(Clone, Copy)]
pub struct Fetch<'a> {
    /// `[HOST]:PORT`; an empty host is this machine.
    pub address: &'a str,
    /// TLS configuration; `None` sends the request in plain text.
    pub tls: Option<&'a TlsClient>,
    /// Path of the URL.
    pub path: &'a str,
    /// Content type and body of a POST request; `None` sends a GET request.
    pub post: Option<(&'static str, &'a [u8])>,
    /// Deadline.
    pub until: Moment,
}

/// One attempt to get a reply from one upstream.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// Address of the upstream.
    pub to: SocketAddr,
    /// Transport.
    pub over: Transport,
    /// TLS configuration for a stream; `None` is plain text.
    pub tls: Option<&'a TlsClient>,
    /// Query in wire form. The ID in it is ignored.
    pub query: &'a [u8],
    /// Deadline.
    pub until: Moment,
    /// Settings of the connection pool.
    pub connections: Connections,
    /// Owner of pooled connections without TLS that no idle timeout closes, such as those of gRPC: the pool closes
    /// them after the last clone of the keeper is dropped. Connections with TLS live as long as their [`TlsClient`]
    /// does.
    pub kept_for: Option<&'a Keeper>,
    /// Delay after which a UDP query is sent a second time, from the same port and with the same ID, in case a
    /// datagram was lost. `None` if the query must not be repeated.
    pub again_after: Option<Duration>,
}

/// Keeps pooled connections open while any clone exists.
#[derive(Clone, Debug)]
pub struct Keeper(pub Arc<dyn Any + Send + Sync>);

/// Settings of the pooled connections to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Idle time after which a connection is closed.
    pub idle_max: Duration,
    /// Age after which a connection is not reused; zero for no limit.
    pub age_max: Duration,
    /// Maximum number of idle connections; zero for no limit.
    pub kept_max: usize,
    /// Source address; `None` lets the system choose.
    pub source: Option<IpAddr>,
}

/// Reply of an upstream, and facts about the connection that carried it.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// Message in wire form.
    pub reply: Vec<u8>,
    /// True if the connection was open before this exchange.
    pub reused: bool,
    /// Local address, if known.
    pub local: Option<SocketAddr>,
}

/// Reason why an exchange failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeError {
    /// The deadline passed without a reply.
    Timeout {
        /// Local address, if a socket was open.
        local: Option<SocketAddr>,
    },
    /// A system call failed: connection refused, unreachable, reset.
    Network {
        /// Operation that failed: `dial`, `read` or `write`.
        during: &'static str,
        /// Text of the system error.
        error: String,
    },
    /// The peer closed the connection without a reply.
    Closed,
    /// The reply is malformed, truncated in its encoding, or has a different ID.
    Unreadable,
    /// The peer answered the call with a gRPC status other than OK.
    Status {
        /// Status code.
        code: u32,
        /// Status message.
        reason: String,
    },
    /// A limit of this server was reached.
    Exhausted,
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExchangeError::Timeout { .. } => f.write_str("no answer in time"),
            ExchangeError::Network { during, error } => write!(f, "{during}: {error}"),
            ExchangeError::Closed => f.write_str("connection closed by the peer"),
            ExchangeError::Unreadable => f.write_str("malformed reply"),
            ExchangeError::Status { code, reason } => write!(f, "status {code}: {reason}"),
            ExchangeError::Exhausted => f.write_str("too many queries in flight"),
        }
    }
}
