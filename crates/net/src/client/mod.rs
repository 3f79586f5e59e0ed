//! Sockets, TLS and tasks for the clients of the crate `upstream`, which decides what is sent when.

pub(crate) mod fetch;
mod https;
mod outcomes;
mod pool;
mod quic;
pub(crate) mod replies;
mod route;
mod socket;
mod stream;
mod timer;
mod transfer;
mod udp;

use std::io;

use engine::{Clock, Connections, Exchange, ExchangeError, Instant, Unwanted, UnwantedReplies};
use transport::{MonotonicClock, error_text};
use upstream::{Mismatch, PoolLimits, PoolQuery, QueryError};

pub(crate) use self::quic::QuicClient;
pub(crate) use https::HttpsClient;
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

/// Returns the query of an exchange for the pool of connections to its upstream.
fn pool_query<'a>(exchange: &'a Exchange<'_>, route: &'a Route) -> PoolQuery<'a, Route> {
    let Connections { idle_max, age_max, kept_max, .. } = exchange.connections;
    PoolQuery {
        route,
        message: exchange.query,
        deadline: exchange.until,
        limits: PoolLimits { idle_max, age_max, kept_max },
    }
}

/// Converts the error of a query. A timeout names the local address.
fn exchange_error(error: QueryError, local: Option<std::net::SocketAddr>) -> ExchangeError {
    match error {
        QueryError::Timeout => ExchangeError::Timeout { local },
        QueryError::Unconnected => ExchangeError::Network { during: "dial", error: "i/o timeout".to_owned() },
        QueryError::Network { during, error } => ExchangeError::Network { during, error },
        QueryError::Closed => ExchangeError::Closed,
        QueryError::Malformed => ExchangeError::Unreadable,
        QueryError::Exhausted => ExchangeError::Exhausted,
    }
}

/// Counts a reply that was ignored, if somebody wants to know.
fn count_unwanted(counters: Option<&UnwantedReplies>, reason: Mismatch) {
    if let Some(counters) = counters {
        counters.add(match reason {
            Mismatch::Late => Unwanted::Late,
            Mismatch::Id => Unwanted::Id,
            Mismatch::Question => Unwanted::Question,
        });
    }
}

fn now() -> Instant {
    MonotonicClock.now()
}

#[cfg(test)]
mod tests {
    use engine::ExchangeReply;

    use super::*;

    /// Bytes of the state of an exchange. Thousands of queries may wait at once.
    const STATE_MAX: usize = 512;
    /// The same over HTTPS, which needs the exchange until the response has come.
    const HTTPS_STATE_MAX: usize = 1024;

    fn size_of_state<C: 'static, F>(_: impl FnOnce(&'static C, Exchange<'static>) -> F) -> usize
    where
        F: Future<Output = Result<ExchangeReply, ExchangeError>>,
    {
        size_of::<F>()
    }

    #[test]
    fn the_state_of_an_exchange_is_small() {
        let sizes = [
            ("udp", size_of_state(UdpClient::exchange)),
            ("tcp", size_of_state(StreamClient::exchange)),
            ("quic", size_of_state(QuicClient::exchange)),
        ];
        assert!(sizes.iter().all(|(_, bytes)| *bytes <= STATE_MAX), "{sizes:?}");
        let https = size_of_state(HttpsClient::exchange);
        assert!(https <= HTTPS_STATE_MAX, "{https}");
    }
}
