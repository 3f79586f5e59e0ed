//! Order in which upstreams are queried.

use core::sync::atomic::{AtomicUsize, Ordering};

use host::invariant::{Expected as _, holds};

/// Load balancing policy.
#[derive(Debug, Default)]
pub enum Policy {
    /// Random order.
    #[default]
    Random,
    /// Each query starts with the next upstream. Like in CoreDNS, the first query starts with the second upstream.
    RoundRobin(AtomicUsize),
    /// Order of the Corefile.
    Sequential,
}

impl Policy {
    /// Returns the order of `count` upstreams for one query, as indices. `random` is a new random number.
    #[must_use]
    pub fn order(&self, count: usize, mut random: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        match self {
            Policy::Sequential => {}
            // The other upstreams keep the order of the Corefile; the order is not rotated.
            Policy::RoundRobin(turn) if count > 0 => {
                let first = (turn.fetch_add(1, Ordering::Relaxed) + 1) % count;
                let first = order.remove(first);
                order.insert(0, first);
            }
            Policy::RoundRobin(_) => {}
            Policy::Random => {
                for at in (1..count).rev() {
                    let bound = at as u64 + 1;
                    let other = usize::try_from(random % bound).ok().expected("an index of an upstream").unwrap_or(0);
                    order.swap(at, other);
                    random /= bound;
                }
            }
        }
        holds(order.len() == count, "each upstream has one place in the order");
        debug_assert!((0..count).all(|upstream| order.contains(&upstream)), "each upstream is in the order");
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_every_upstream_exactly_once() {
        for policy in [Policy::Random, Policy::RoundRobin(AtomicUsize::new(0)), Policy::Sequential] {
            for random in [0, 1, 12_345_678, u64::MAX] {
                let mut order = policy.order(5, random);
                order.sort_unstable();
                assert_eq!(order, [0, 1, 2, 3, 4], "{policy:?}");
            }
        }
    }

    #[test]
    fn round_robin_starts_with_the_second_upstream() {
        let policy = Policy::RoundRobin(AtomicUsize::new(0));
        let turns: Vec<_> = (0..4).map(|_| policy.order(3, 0)).collect();
        assert_eq!(turns, [[1, 0, 2], [2, 0, 1], [0, 1, 2], [1, 0, 2]]);
        assert_eq!(Policy::Sequential.order(3, 9), [0, 1, 2]);
        assert!(Policy::Random.order(0, 7).is_empty());
    }

    #[test]
    fn random_yields_every_order() {
        let orders: std::collections::HashSet<_> = (0..6).map(|random| Policy::Random.order(3, random)).collect();
        assert_eq!(orders.len(), 6);
    }
}
