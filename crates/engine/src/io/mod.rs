//! I/O that a plugin may use: clock, randomness, log and network.
//!
//! The crate `net` implements [`Io`] for production, the testkit for scenarios.

use core::any::Any;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use crate::log::{Level, Source};
use crate::peer::Transport;
use host::streams::{ByteListener, ByteStream, Dial, Listen};
use host::tls::TlsClient;
use host::{Instant, LocalFuture};
use metrics::Counters;
use wire::Reply;

pub mod unwanted;

use unwanted::UnwantedReplies;

/// Everything a plugin may use of the outside world: clock, randomness, log and network.
///
/// The crate `net` implements it for production, the testkit for scenarios.
pub trait Io {
    /// The monotonic time.
    fn now(&self) -> Instant;

    /// The wall-clock time since the Unix epoch. It may jump in either direction.
    fn since_1970(&self) -> Duration;

    /// Completes at `at`.
    fn sleep_until(&self, at: Instant) -> LocalFuture<'_, ()>;

    /// Returns an unpredictable random number.
    fn random(&self) -> u64;

    /// Writes an event to the log. Never blocks.
    fn log(&self, level: Level, source: Source<'_>, message: fmt::Arguments<'_>);

    /// The metric counters of this thread.
    fn counters(&self) -> &Counters;

    /// Sends an HTTP request and returns the status code of the response.
    ///
    /// # Errors
    /// The request or its response failed. A response with any status code is a success.
    fn fetch<'a>(&'a self, fetch: Fetch<'a>) -> LocalFuture<'a, Result<u16, FetchError>>;

    /// Sends a query to an upstream and returns the reply.
    ///
    /// The implementation sends a random message ID, which the reply has too; over HTTPS and QUIC the ID is 0. Over
    /// UDP, it uses an unpredictable source port and ignores datagrams that do not match the query until
    /// `exchange.until`.
    fn exchange<'a>(&'a self, exchange: Exchange<'a>) -> LocalFuture<'a, Result<ExchangeReply, ExchangeError>>;

    /// Like [`Io::exchange`], over a new stream and for a reply of several messages (zone transfers). It passes
    /// each message to `on_message` until that returns `false`.
    fn exchange_all<'a>(
        &'a self,
        exchange: Exchange<'a>,
        on_message: OnMessage<'a>,
    ) -> LocalFuture<'a, Result<(), ExchangeError>>;

    /// Opens a byte stream to a server that is not a DNS server.
    fn connect<'a>(&'a self, dial: Dial<'a>) -> LocalFuture<'a, io::Result<Box<dyn ByteStream>>>;

    /// Listens for byte streams that do not carry DNS.
    ///
    /// # Errors
    /// The error of the system call.
    fn listen(&self, listen: Listen<'_>) -> io::Result<Box<dyn ByteListener>>;
}

/// Callback for one message; returns true if it expects another one.
pub type OnMessage<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

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
    pub until: Instant,
}

/// One attempt to get a reply from one upstream.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// Address of the upstream.
    pub to: SocketAddr,
    /// Path of a Unix socket to connect to instead of `to`, for gRPC.
    pub unix_path: Option<&'a str>,
    /// Transport.
    pub over: Transport,
    /// TLS configuration for a stream; `None` is plain text.
    pub tls: Option<&'a TlsClient>,
    /// Method of requests over HTTPS.
    pub method: HttpMethod,
    /// True if an upstream over HTTPS is asked over HTTP/3 once it has offered that.
    pub http3: bool,
    /// Query in wire form. The ID in it is ignored.
    pub query: &'a [u8],
    /// Deadline.
    pub until: Instant,
    /// Settings of the connection pool.
    pub connections: Connections,
    /// Owner of pooled connections without TLS that no idle timeout closes, such as those of gRPC: the pool closes
    /// them after the last clone of the owner is dropped. Connections with TLS live as long as their [`TlsClient`]
    /// does.
    pub owner: Option<&'a PoolOwner>,
    /// Delay after which a UDP query is sent a second time, from the same port and with the same ID, in case a
    /// datagram was lost. `None` if the query must not be repeated.
    pub retransmit_after: Option<Duration>,
    /// Counts the replies of the upstream that match no query, over UDP, TCP and TLS.
    pub unwanted: Option<&'a Arc<UnwantedReplies>>,
}

impl<'a> Exchange<'a> {
    /// Creates an exchange in plain text, without an owner of its connections, a retransmission and counters.
    #[must_use]
    pub fn new(
        to: SocketAddr,
        over: Transport,
        query: &'a [u8],
        until: Instant,
        connections: Connections,
    ) -> Exchange<'a> {
        Exchange {
            to,
            unix_path: None,
            over,
            tls: None,
            method: HttpMethod::Post,
            http3: false,
            query,
            until,
            connections,
            owner: None,
            retransmit_after: None,
            unwanted: None,
        }
    }
}

/// Method of requests to an upstream over HTTPS (RFC 8484 §4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpMethod {
    /// POST: the query is the body. No HTTP cache keeps the response.
    #[default]
    Post,
    /// GET: the query is in the URL.
    Get,
}

/// Keeps pooled connections open while any clone exists.
#[derive(Clone, Debug)]
pub struct PoolOwner(pub Arc<dyn Any + Send + Sync>);

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
pub struct ExchangeReply {
    /// Parsed message.
    pub reply: Reply,
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

impl core::error::Error for ExchangeError {}

/// Reason why an HTTP request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchError {
    /// The deadline passed without a response.
    Timeout,
    /// A system call or the TLS handshake failed; with the text of the error.
    Network(String),
    /// The request could not be built or sent, or the response is malformed; with the text of the error.
    Http(String),
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Timeout => f.write_str("no answer in time"),
            FetchError::Network(error) | FetchError::Http(error) => f.write_str(error),
        }
    }
}

impl core::error::Error for FetchError {}
