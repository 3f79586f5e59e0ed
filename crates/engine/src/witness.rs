//! Who hears of the exchanges with upstreams: those who ask them and those who write it down need not know each other.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::OnceLock;

use crate::{Moment, Query, Transport};

/// Those of one server block who want to hear of it may be as many: a directive is one, however often it stands.
const WITNESSES_MAX: usize = 4;

/// One exchange with an upstream.
#[derive(Clone, Copy, Debug)]
pub struct Witnessed<'a> {
    /// The upstream.
    pub to: SocketAddr,
    /// From where it was asked, if that is known.
    pub local: Option<SocketAddr>,
    /// How.
    pub over: Transport,
    /// Within TLS.
    pub encrypted: bool,
    /// What was sent.
    pub query: &'a [u8],
    /// What came; `None` if nothing of use did.
    pub reply: Option<&'a [u8]>,
    /// When it was sent.
    pub sent: Moment,
    /// When it was sent, by the calendar.
    pub sent_since_1970: Duration,
    /// How long it took.
    pub took: Duration,
}

/// Hears of exchanges with upstreams.
pub trait Witness: Send + Sync {
    /// One has come to its end, for this query.
    fn saw(&self, query: &Query, exchange: &Witnessed<'_>);
}

/// Those who want to hear of exchanges with the upstreams of one server block.
#[derive(Default)]
pub struct Witnesses {
    places: [OnceLock<Box<dyn Witness>>; WITNESSES_MAX],
}

impl Witnesses {
    /// Adds one; when all places are taken it hears nothing.
    pub fn add(&self, witness: impl Witness + 'static) {
        let mut witness: Box<dyn Witness> = Box::new(witness);
        for place in &self.places {
            match place.set(witness) {
                Ok(()) => return,
                Err(back) => witness = back,
            }
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places[0].get().is_none()
    }

    /// Tells all of an exchange.
    pub fn tell(&self, query: &Query, exchange: &Witnessed<'_>) {
        self.places.iter().map_while(OnceLock::get).for_each(|witness| witness.saw(query, exchange));
    }
}
