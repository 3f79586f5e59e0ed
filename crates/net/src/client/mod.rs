//! Sockets, TLS and tasks for the clients of the crate `upstream`, which decides what is sent when.

pub(crate) mod fetch;
mod outcomes;
mod route;
mod stream;
mod timer;
mod transfer;
mod udp;

use std::io;
use std::time::Duration;

use engine::{Clock, ExchangeError, Instant};
use transport::{MonotonicClock, error_text};
use upstream::QueryError;

pub(crate) use route::{Route, RouteKey, WeakOwner, connect_http2};
pub(crate) use stream::StreamClient;
pub(crate) use transfer::transfer;
pub(crate) use udp::UdpClient;

/// Creates the error of an exchange that failed on the network.
pub(crate) fn network(during: &'static str, error: &io::Error) -> ExchangeError {
    ExchangeError::Network { during, error: error_text(error) }
}

/// Creates the error of a query that failed on the network.
fn query_error(during: &'static str, error: &io::Error) -> QueryError {
    QueryError::Network { during, error: error_text(error) }
}

/// Converts the error of a query. A timeout names the local address.
fn exchange_error(error: QueryError, local: Option<std::net::SocketAddr>) -> ExchangeError {
    match error {
        QueryError::Timeout => ExchangeError::Timeout { local },
        QueryError::Network { during, error } => ExchangeError::Network { during, error },
        QueryError::Closed => ExchangeError::Closed,
        QueryError::Malformed => ExchangeError::Unreadable,
        QueryError::Exhausted => ExchangeError::Exhausted,
    }
}

/// Returns the time as the clients of `upstream` count it.
fn now() -> Duration {
    since_start(MonotonicClock.now())
}

fn since_start(instant: Instant) -> Duration {
    instant.since(Instant::START)
}
