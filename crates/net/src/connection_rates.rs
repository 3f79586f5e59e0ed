//! Rate of new encrypted connections from each source, across all workers.
//!
//! A handshake costs the server much more CPU than an answer. Without a limit, a client that opens a connection for
//! each query takes the CPU of all others. The limit is a token bucket that holds the connections of one second
//! (generic cell rate algorithm).
//!
//! A source is an IPv4 address or an IPv6 prefix of 64 bits. Addresses that are not proved, as in the first packet of
//! QUIC, have a table of their own. So forged packets do not use up the connections of their victim, nor the table.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use engine::{Instant, client_network};
use host::invariant::holds;

/// Sources that a table remembers: about 1 MiB. It remembers a source for at most one second after its last
/// connection. More sources in a second are more than the cores can serve, so further ones have no limit of their own.
const SOURCES_MAX: usize = 16_384;
/// Time whose connections may come at once.
const BURST: Duration = Duration::from_secs(1);
/// Least time between two searches for sources that can be forgotten.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// Rates of all sources.
#[derive(Debug, Default)]
pub(crate) struct ConnectionRates {
    proven: Mutex<Sources>,
    unproven: Mutex<Sources>,
}

#[derive(Debug, Default)]
struct Sources {
    /// Time in nanoseconds at which the earlier connections of a source would end, if each took its share of a second.
    due: HashMap<IpAddr, u64>,
    swept: Instant,
}

impl ConnectionRates {
    /// Counts a new connection. Returns false, and does not count it, if this source has opened `per_second` within a
    /// second; 0 means no limit.
    pub(crate) fn permit(&self, address: IpAddr, is_proven: bool, per_second: u32, now: Instant) -> bool {
        let Some(share) = Duration::from_secs(1).checked_div(per_second) else { return true };
        let sources = if is_proven { &self.proven } else { &self.unproven };
        // No code that holds the lock panics.
        sources.lock().unwrap_or_else(PoisonError::into_inner).permit(client_network(address), share, now)
    }
}

impl Sources {
    fn permit(&mut self, source: IpAddr, share: Duration, now: Instant) -> bool {
        let due = self.due.get(&source).copied().unwrap_or(0).max(now.nanos());
        let next = Instant::from_nanos(due) + share;
        if next.since(now) > BURST {
            return false;
        }
        if self.due.len() < SOURCES_MAX || self.due.contains_key(&source) || self.sweep(now) {
            self.due.insert(source, next.nanos());
            holds(self.due.len() <= SOURCES_MAX, "the number of sources is bounded");
        }
        true
    }

    /// Forgets sources without recent connections. Returns true if there is room for another one.
    fn sweep(&mut self, now: Instant) -> bool {
        if now.since(self.swept) >= SWEEP_INTERVAL {
            self.swept = now;
            self.due.retain(|_, due| *due > now.nanos());
        }
        self.due.len() < SOURCES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Instant {
        Instant::START + 100 * SECOND + Duration::from_millis(millis)
    }

    fn permitted(rates: &ConnectionRates, address: &str, now: Instant) -> usize {
        (0..1000).filter(|_| rates.permit(address.parse().unwrap(), true, 10, now)).count()
    }

    #[test]
    fn a_source_may_open_its_connections_of_a_second_at_once() {
        let rates = ConnectionRates::default();
        assert_eq!(permitted(&rates, "192.0.2.1", at(0)), 10);
        assert_eq!(permitted(&rates, "192.0.2.1", at(99)), 0);
        assert_eq!(permitted(&rates, "192.0.2.1", at(100)), 1);
        assert_eq!(permitted(&rates, "192.0.2.1", at(1100)), 10);
        assert_eq!(permitted(&rates, "192.0.2.2", at(0)), 10, "another source");
        let (address, now) = ("192.0.2.1".parse().unwrap(), at(1100));
        assert!(rates.permit(address, false, 10, now), "forged packets use up no connections of their victim");
        assert!((0..1000).all(|_| rates.permit(address, true, 0, now)), "no limit");
    }

    #[test]
    fn addresses_of_one_ipv6_prefix_are_one_source() {
        let rates = ConnectionRates::default();
        assert_eq!(permitted(&rates, "2001:db8::1", at(0)), 10);
        assert_eq!(permitted(&rates, "2001:db8::ffff:0:0:1", at(0)), 0);
        assert_eq!(permitted(&rates, "2001:db8:0:1::1", at(0)), 10);
        assert_eq!(permitted(&rates, "::ffff:192.0.2.1", at(0)), 10);
        assert_eq!(permitted(&rates, "192.0.2.1", at(0)), 0);
    }

    #[test]
    fn many_sources_take_bounded_memory_and_are_served() {
        let rates = ConnectionRates::default();
        for number in 0..100_000_u32 {
            assert!(rates.permit(IpAddr::V4(number.into()), true, 10, at(0)));
        }
        assert_eq!(rates.proven.lock().unwrap().due.len(), SOURCES_MAX);
        assert!(rates.permit("198.51.100.1".parse().unwrap(), true, 10, at(200)));
        assert_eq!(rates.proven.lock().unwrap().due.len(), 1);
    }
}
