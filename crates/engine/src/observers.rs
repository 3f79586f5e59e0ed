//! Observers of exchanges with upstreams: a plugin that exchanges reports to them, and a plugin such as *dnstap*
//! records.
//!
//! The two sides are independent of each other. Both get the [`ExchangeObservers`] of their server block from
//! `config::setup::Setup::observers`.

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::OnceLock;

use crate::peer::Transport;
use crate::query::Query;
use host::Instant;

/// Maximum number of observers in a server block. Each directive adds at most one.
const OBSERVERS_MAX: usize = 4;

/// Exchange with an upstream.
#[derive(Clone, Copy, Debug)]
pub struct ObservedExchange<'a> {
    /// Address of the upstream.
    pub to: SocketAddr,
    /// Local address, if known.
    pub local: Option<SocketAddr>,
    /// Transport.
    pub over: Transport,
    /// True for TLS.
    pub encrypted: bool,
    /// Query in wire form.
    pub query: &'a [u8],
    /// Reply in wire form; `None` if the exchange failed.
    pub reply: Option<&'a [u8]>,
    /// Time of sending.
    pub sent: Instant,
    /// Wall-clock time of sending, since the Unix epoch.
    pub sent_since_1970: Duration,
    /// Duration of the exchange.
    pub took: Duration,
}

/// Observer of exchanges with upstreams.
pub trait ExchangeObserver: Send + Sync {
    /// Called after each exchange for `query`.
    fn on_exchange(&self, query: &Query, exchange: &ObservedExchange<'_>);
}

/// Error: a server block has more observers than fit.
#[derive(Debug)]
pub struct TooManyObserversError;

impl fmt::Display for TooManyObserversError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {OBSERVERS_MAX} directives of this server block observe the exchanges with upstreams")
    }
}

impl core::error::Error for TooManyObserversError {}

/// Observers of the exchanges with the upstreams of one server block.
#[derive(Default)]
pub struct ExchangeObservers {
    places: [OnceLock<Box<dyn ExchangeObserver>>; OBSERVERS_MAX],
}

impl ExchangeObservers {
    /// Adds an observer.
    ///
    /// # Errors
    /// `OBSERVERS_MAX` observers are present.
    pub fn add(&self, observer: impl ExchangeObserver + 'static) -> Result<(), TooManyObserversError> {
        let mut observer: Box<dyn ExchangeObserver> = Box::new(observer);
        for place in &self.places {
            match place.set(observer) {
                Ok(()) => return Ok(()),
                Err(back) => observer = back,
            }
        }
        Err(TooManyObserversError)
    }

    /// Returns true if there are no observers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places[0].get().is_none()
    }

    /// Notifies all observers of an exchange.
    pub fn notify(&self, query: &Query, exchange: &ObservedExchange<'_>) {
        self.places.iter().map_while(OnceLock::get).for_each(|observer| observer.on_exchange(query, exchange));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Blind;

    impl ExchangeObserver for Blind {
        fn on_exchange(&self, _: &Query, _: &ObservedExchange<'_>) {}
    }

    #[test]
    fn refuses_more_observers_than_fit() {
        let observers = ExchangeObservers::default();
        for _ in 0..OBSERVERS_MAX {
            observers.add(Blind).unwrap();
        }
        let error = observers.add(Blind).unwrap_err();
        assert_eq!(
            error.to_string(),
            "more than 4 directives of this server block observe the exchanges with upstreams"
        );
    }
}
