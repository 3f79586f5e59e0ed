//! Upstreams over HTTPS that also offer HTTP/3 (RFC 7838), each with the port and the time until which it is known.

use core::hash::Hash;
use core::time::Duration;
use std::collections::HashMap;

use host::Instant;
use host::invariant::holds;

/// Maximum number of upstreams whose offers are kept: more than Corefiles have. Further ones are asked over HTTP/2.
const KNOWN_MAX: usize = 256;
/// Time for which an offer is not used after a connection failed, for example since a firewall drops UDP.
const BROKEN: Duration = Duration::from_secs(5 * 60);

/// Offers of HTTP/3 by upstream.
#[derive(Debug)]
pub struct Alternatives<U> {
    known: HashMap<U, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    port: u16,
    /// Times since any fixed start.
    valid_until: Instant,
    broken_until: Instant,
}

impl<U> Default for Alternatives<U> {
    fn default() -> Self {
        Alternatives { known: HashMap::new() }
    }
}

impl<U: Eq + Hash> Alternatives<U> {
    /// Notes what an upstream offers: a UDP port and a lifetime, or nothing. This replaces an earlier offer. A port
    /// that is broken stays so.
    pub fn note(&mut self, now: Instant, upstream: U, offer: Option<(u16, Duration)>) {
        let Some((port, lifetime)) = offer else {
            self.known.remove(&upstream);
            return;
        };
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&upstream) {
            self.known.retain(|_, known| known.valid_until > now);
            if self.known.len() >= KNOWN_MAX {
                return;
            }
        }
        holds(self.known.len() <= KNOWN_MAX, "the number of offers is bounded");
        let known = self.known.entry(upstream).or_insert(Known { port, valid_until: now, broken_until: now });
        if known.port != port {
            *known = Known { port, valid_until: now, broken_until: now };
        }
        known.valid_until = now + lifetime;
    }

    /// Notes that no connection could be opened to the offered port.
    pub fn note_broken(&mut self, now: Instant, upstream: &U) {
        if let Some(known) = self.known.get_mut(upstream) {
            known.broken_until = now + BROKEN;
        }
    }

    /// Returns the UDP port at which an upstream is asked over HTTP/3 now.
    #[must_use]
    pub fn port(&self, now: Instant, upstream: &U) -> Option<u16> {
        let known = self.known.get(upstream)?;
        (known.valid_until > now && known.broken_until <= now).then_some(known.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn at(seconds: u64) -> Instant {
        Instant::START + Duration::from_secs(seconds)
    }

    #[test]
    fn an_offer_is_used_until_it_ends_or_is_withdrawn() {
        let mut known = Alternatives::default();
        assert_eq!(known.port(at(0), &"a"), None);
        known.note(at(0), "a", Some((443, HOUR)));
        assert_eq!((known.port(at(3599), &"a"), known.port(at(3600), &"a")), (Some(443), None));
        assert_eq!(known.port(at(1), &"b"), None);
        known.note(at(1), "a", Some((444, HOUR)));
        assert_eq!(known.port(at(3600), &"a"), Some(444));
        known.note(at(2), "a", None);
        assert_eq!(known.port(at(3), &"a"), None);
    }

    #[test]
    fn a_broken_port_rests_for_five_minutes_even_if_it_is_offered_again() {
        let mut known = Alternatives::default();
        known.note(at(0), "a", Some((443, HOUR)));
        known.note_broken(at(10), &"a");
        known.note(at(20), "a", Some((443, HOUR)));
        assert_eq!((known.port(at(309), &"a"), known.port(at(310), &"a")), (None, Some(443)));
        known.note_broken(at(400), &"a");
        known.note(at(401), "a", Some((8443, HOUR)));
        assert_eq!(known.port(at(402), &"a"), Some(8443), "another port");
    }

    #[test]
    fn the_number_of_offers_is_bounded() {
        let mut known = Alternatives::default();
        (0..=KNOWN_MAX).for_each(|upstream| known.note(at(0), upstream, Some((443, Duration::from_secs(10)))));
        assert_eq!((known.port(at(1), &(KNOWN_MAX - 1)), known.port(at(1), &KNOWN_MAX)), (Some(443), None));
        known.note(at(10), KNOWN_MAX, Some((443, HOUR)));
        assert_eq!((known.port(at(11), &KNOWN_MAX), known.known.len()), (Some(443), 1));
    }
}
