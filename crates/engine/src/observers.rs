//! Observers of exchanges with upstreams: a plugin that exchanges reports to them, and a plugin such as *dnstap*
//! records.
//!
//! The two sides are independent of each other. Both get the [`Witnesses`] of their server block from
//! [`Setup::witnesses`](config::setup::Setup::witnesses).

use core::fmt;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::OnceLock;

use crate::moment::Moment;
use crate::peer::Transport;
use crate::query::Query;

/// Maximum number of observers in a server block. Each directive adds at most one.
const WITNESSES_MAX: usize = 4;

/// Exchange with an upstream.
#[derive(Clone, Copy, Debug)]
pub struct Witnessed<'a> {
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
    pub sent: Moment,
    /// Wall-clock time of sending, since the Unix epoch.
    pub sent_since_1970: Duration,
    /// Duration of the exchange.
    pub took: Duration,
}

/// Observer of exchanges with upstreams.
pub trait Witness: Send + Sync {
    /// Called after each exchange for `query`.
    fn saw(&self, query: &Query, exchange: &Witnessed<'_>);
}

/// Error: a server block has more observers than fit.
#[derive(Debug)]
pub struct TooManyWitnesses;

impl fmt::Display for TooManyWitnesses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {WITNESSES_MAX} directives of this server block observe the exchanges with upstreams")
    }
}

impl core::error::Error for TooManyWitnesses {}

/// Observers of the exchanges with the upstreams of one server block.
#[derive(Default)]
pub struct Witnesses {
    places: [OnceLock<Box<dyn Witness>>; WITNESSES_MAX],
}

impl Witnesses {
    /// Adds an observer.
    ///
    /// # Errors
    /// `WITNESSES_MAX` observers are present.
    pub fn add(&self, witness: impl Witness + 'static) -> Result<(), TooManyWitnesses> {
        let mut witness: Box<dyn Witness> = Box::new(witness);
        for place in &self.places {
            match place.set(witness) {
                Ok(()) => return Ok(()),
                Err(back) => witness = back,
            }
        }
        Err(TooManyWitnesses)
    }

    /// Returns true if there are no observers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places[0].get().is_none()
    }

    /// Notifies all observers of an exchange.
    pub fn tell(&self, query: &Query, exchange: &Witnessed<'_>) {
        self.places.iter().map_while(OnceLock::get).for_each(|witness| witness.saw(query, exchange));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Blind;

    impl Witness for Blind {
        fn saw(&self, _: &Query, _: &Witnessed<'_>) {}
    }

    #[test]
    fn refuses_more_observers_than_fit() {
        let witnesses = Witnesses::default();
        for _ in 0..WITNESSES_MAX {
            witnesses.add(Blind).unwrap();
        }
        let error = witnesses.add(Blind).unwrap_err();
        assert_eq!(
            error.to_string(),
            "more than 4 directives of this server block observe the exchanges with upstreams"
        );
    }
}
