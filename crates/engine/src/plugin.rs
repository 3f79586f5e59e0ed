//! The contract between the engine and a plugin.

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

/// A future on the worker that received the query.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// What a directive becomes in the chain: two short hooks, called on the thread that read the packet.
///
/// A hook never waits, never allocates on its usual path and takes no lock. What needs the outside world is said by
/// [`Verdict::Wait`] and done in [`Plugin::resolve`].
pub trait Plugin: Send + Sync {
    /// On the way down: answers, refuses, changes the question, or passes.
    fn on_query(&self, _query: &mut Query, _response: &mut Response, _worker: &mut Worker) -> Verdict {
        Verdict::Pass
    }

    /// On the way up: each answer from below comes by exactly once, failures too.
    fn on_response(&self, _query: &mut Query, _response: &mut Response, _worker: &mut Worker) -> Verdict {
        Verdict::Pass
    }

    /// The answer to a question that this plugin asked by [`Verdict::Ask`]; the response is as the plugin left it.
    fn on_subanswer(
        &self,
        _query: &mut Query,
        _sub: &mut Response,
        _response: &mut Response,
        _worker: &mut Worker,
    ) -> Verdict {
        Verdict::Done
    }

    /// The message that [`Plugin::resolve`] gave stands in the response; failures do not come by here. `Pass` leaves it
    /// and asks the next step, `Missing` says that it denies the name, `Ask` follows it.
    fn on_resolved(&self, _query: &mut Query, _response: &mut Response, _worker: &mut Worker) -> Verdict {
        Verdict::Done
    }

    /// Takes one of the places for queries that wait at this plugin, after [`Verdict::Wait`]: also for a query that waits
    /// for the answer to the same question of another one. `None` where there is no bound.
    ///
    /// # Errors
    /// The answer at once, if all places are taken.
    fn take_place(&self, _query: &Query, _outside: &dyn Outside) -> Result<Option<Place>, Failure> {
        Ok(None)
    }

    /// What only the outside world knows, after [`Verdict::Wait`].
    fn resolve<'a>(&'a self, _query: &'a Query, _outside: &'a dyn Outside) -> LocalFuture<'a, Resolved> {
        Box::pin(core::future::ready(Resolved::Pass))
    }
}

/// One of a number of places for queries that wait; dropping it makes it free again.
#[derive(Debug)]
pub struct Place(Arc<AtomicU32>);

impl Place {
    /// Takes a place if fewer than `most` are taken.
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

/// The outside world, as far as a plugin may see it. The crate `net` is it in production, the testkit in scenarios.
pub trait Outside {
    /// The time.
    fn now(&self) -> Moment;

    /// The time since 1970 as the calendar has it. It may jump.
    fn since_1970(&self) -> Duration;

    /// Comes back at `at`.
    fn sleep_until(&self, at: Moment) -> LocalFuture<'_, ()>;

    /// A number that nobody can guess.
    fn random(&self) -> u64;

    /// Reports an event to the log. It never blocks.
    fn log(&self, level: Level, source: Source<'_>, message: fmt::Arguments<'_>);

    /// The counters of this thread.
    fn counters(&self) -> &Counters;

    /// Asks something of an HTTP server and gives the status of its answer.
    fn fetch<'a>(&'a self, fetch: Fetch<'a>) -> LocalFuture<'a, Result<u16, String>>;

    /// Sends a query over a transport and gives the message that answers it.
    ///
    /// The id is chosen anew and put back; over UDP the source port is unpredictable, and datagrams that do not answer
    /// the question are passed over until `exchange.until`.
    fn exchange<'a>(&'a self, exchange: Exchange<'a>) -> LocalFuture<'a, Result<Exchanged, ExchangeError>>;

    /// As [`Outside::exchange`], over a stream of its own and for an answer of several messages: each is given to `take`,
    /// until that wants no more.
    fn exchange_all<'a>(&'a self, exchange: Exchange<'a>, take: Take<'a>)
    -> LocalFuture<'a, Result<(), ExchangeError>>;

    /// Opens a stream to a program that is no name server.
    fn connect<'a>(&'a self, dial: Dial<'a>) -> LocalFuture<'a, io::Result<Box<dyn OctetStream>>>;

    /// Waits for programs that are no name servers to open streams.
    ///
    /// # Errors
    /// As the system says.
    fn listen(&self, listen: Listen<'_>) -> io::Result<Box<dyn OctetListener>>;
}

/// Takes a message; says whether more is to come.
pub type Take<'a> = &'a mut dyn FnMut(&[u8]) -> bool;

/// What is asked of an HTTP server.
#[derive(Clone, Copy)]
pub struct Fetch<'a> {
    /// `[HOST]:PORT`; without a host it is this machine.
    pub address: &'a str,
    /// Within TLS.
    pub tls: Option<&'a TlsClient>,
    /// The path.
    pub path: &'a str,
    /// What is sent, with its content type; without it a page is asked for.
    pub post: Option<(&'static str, &'a [u8])>,
    /// When to give up.
    pub until: Moment,
}

/// One attempt to get an answer from one upstream.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The upstream.
    pub to: SocketAddr,
    /// How to speak to it.
    pub over: Transport,
    /// Within TLS, if it is a stream.
    pub tls: Option<&'a TlsClient>,
    /// The query; its id does not matter.
    pub query: &'a [u8],
    /// When to give up.
    pub until: Moment,
    /// How long connections may be kept, and from where they start.
    pub connections: Connections,
    /// For whom a connection without TLS is kept that ends by nothing else, as over gRPC: it is closed once nobody has this
    /// any more. One within TLS is kept as long as somebody has that.
    pub kept_for: Option<&'a Keeper>,
    /// Over UDP, the query is sent once more, with the same id and from the same port, if there is no answer after so
    /// long: a datagram may be lost. `None` where a second copy would mean something else.
    pub again_after: Option<Duration>,
}

/// Somebody for whom connections are kept, by all its clones.
#[derive(Clone, Debug)]
pub struct Keeper(pub Arc<dyn Any + Send + Sync>);

/// What an upstream's connections may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connections {
    /// Idle for so long they are closed.
    pub idle_max: Duration,
    /// Older than this they are not used again; zero for no limit.
    pub age_max: Duration,
    /// So many are kept while idle; zero for no limit.
    pub kept_max: usize,
    /// The address that they start from.
    pub source: Option<IpAddr>,
}

/// An answer, and how it came.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// The message.
    pub reply: Vec<u8>,
    /// Whether a connection that was open already carried it.
    pub reused: bool,
    /// The local end, if the system knows.
    pub local: Option<SocketAddr>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExchangeError {
    /// No answer in time.
    Timeout {
        /// The local end, if a socket was open.
        local: Option<SocketAddr>,
    },
    /// The system said no: refused, unreachable, reset.
    Network {
        /// What was being done: `dial`, `read` or `write`.
        during: &'static str,
        /// What the system said.
        error: String,
    },
    /// The other side closed the connection without an answer.
    Closed,
    /// The reply is no message, promises more than it holds, or has the id of another query.
    Unreadable,
    /// The other side refused the call, in the words of gRPC.
    Status {
        /// Its code.
        code: u32,
        /// What it said about it.
        reason: String,
    },
    /// A bound of our own was reached.
    Exhausted,
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExchangeError::Timeout { .. } => f.write_str("no answer in time"),
            ExchangeError::Network { during, error } => write!(f, "{during}: {error}"),
            ExchangeError::Closed => f.write_str("the connection was closed"),
            ExchangeError::Unreadable => f.write_str("the answer cannot be read"),
            ExchangeError::Status { code, reason } => write!(f, "status {code}: {reason}"),
            ExchangeError::Exhausted => f.write_str("there are too many questions on their way"),
        }
    }
}
