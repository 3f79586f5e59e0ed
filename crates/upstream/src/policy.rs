//! In which order upstreams are asked.

use core::sync::atomic::{AtomicUsize, Ordering};

/// The rule by which upstreams take turns.
#[derive(Debug, Default)]
pub enum Policy {
    /// In random order.
    #[default]
    Random,
    /// From the next one on; the first turn is the second upstream's.
    RoundRobin(AtomicUsize),
    /// Always from the first one on.
    Sequential,
}

impl Policy {
    /// The order of `count` upstreams for one query, as places; `random` is a fresh random number.
    #[must_use]
    pub fn order(&self, count: usize, mut random: u64) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        match self {
            Policy::Sequential => {}
            // The others follow in the order of the file, not from there on.
            Policy::RoundRobin(turn) if count > 0 => {
                let first = (turn.fetch_add(1, Ordering::Relaxed) + 1) % count;
                let first = order.remove(first);
                order.insert(0, first);
            }
            Policy::RoundRobin(_) => {}
            Policy::Random => {
                for at in (1..count).rev() {
                    let bound = at as u64 + 1;
                    order.swap(at, usize::try_from(random % bound).unwrap_or(0));
                    random /= bound;
                }
            }
        }
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
