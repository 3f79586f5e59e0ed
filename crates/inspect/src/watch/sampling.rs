//! Size of the sample: at low rates all queries, at high rates so few that they cost next to nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::tap::{Record, Ring};

/// Number of queries per second and worker that the sample aims at. In ten seconds, a share of 1 % is counted a hundred
/// times for each worker.
const PER_SECOND: u64 = 1_000;
/// Shortest period in which the rate is measured.
const PERIOD: Duration = Duration::from_millis(100);

/// Maximum distance: the weight of a record has 16 bits, and the longest distance is half as long again.
const DISTANCE_MAX: u32 = (u16::MAX / 2) as u32;

/// Measures the rate of queries.
pub(super) struct Sampling {
    since: Instant,
    /// Number of queries since then.
    queries: u64,
    /// Number of queries that did not fit into the rings until then.
    lost: u64,
    every: u32,
    /// True if nobody can ask for the counts.
    is_off: bool,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling { since: Instant::now(), queries: 0, lost: 0, every: 1, is_off: false }
    }
}

impl Sampling {
    pub(super) fn count(&mut self, record: &Record) {
        self.queries += u64::from(record.weight);
    }

    /// Samples next to nothing while it is off. Failures are counted anyway.
    pub(super) const fn switch(&mut self, is_on: bool) {
        self.is_off = !is_on;
    }

    /// Sets the distance of the samples in all rings. It grows at once and halves with each period.
    ///
    /// Returns true if all queries are counted from now on. Workers may still wait for the next query of an earlier
    /// sample, and must begin it again.
    pub(super) fn adjust(&mut self, rings: &[Arc<Ring>]) -> bool {
        let elapsed = self.since.elapsed();
        if elapsed < PERIOD {
            return false;
        }
        let lost = rings.iter().map(|ring| ring.lost()).sum();
        let needed = distance(self.queries + (lost - self.lost), elapsed, PER_SECOND * rings.len().max(1) as u64);
        let every = if self.is_off { DISTANCE_MAX } else { needed.max(self.every / 2) };
        if every != self.every {
            rings.iter().for_each(|ring| ring.set_sample_every(every));
        }
        let counts_all_again = every == 1 && self.every > 1;
        *self = Sampling { since: Instant::now(), queries: 0, lost, every, is_off: self.is_off };
        counts_all_again
    }
}

/// Returns N, so that one of N queries is at most `per_second`.
pub(super) fn distance(queries: u64, elapsed: Duration, per_second: u64) -> u32 {
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).max(1);
    let needed = queries.saturating_mul(1000) / millis.saturating_mul(per_second).max(1);
    u32::try_from(needed + 1).unwrap_or(u32::MAX).min(DISTANCE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_next_to_nothing_while_it_is_off() {
        let rings = [Arc::new(Ring::default())];
        let (mut sampling, mut was_sparse) = (Sampling::default(), false);
        let mut adjusted = |is_on| {
            sampling.switch(is_on);
            sampling.since -= PERIOD;
            let counts_all_again = sampling.adjust(&rings);
            assert_eq!(counts_all_again, sampling.every == 1 && was_sparse);
            was_sparse = sampling.every > 1;
            sampling.every
        };
        assert_eq!(adjusted(true), 1);
        assert_eq!(adjusted(false), DISTANCE_MAX);
        let on_again: Vec<u32> = (0..16).map(|_| adjusted(true)).collect();
        assert!(on_again[0] == DISTANCE_MAX / 2 && on_again[15] == 1, "{on_again:?}");
    }

    #[test]
    fn takes_all_queries_at_low_rates_and_few_at_high_ones() {
        let second = Duration::from_secs(1);
        for (queries, expected) in [(0, 1), (1_999, 1), (2_000, 2), (500_000, 251), (u64::MAX, 32_767)] {
            assert_eq!(distance(queries, second, 2_000), expected, "{queries}");
        }
        assert_eq!(distance(100_000, Duration::from_millis(100), 2_000), 501);
    }
}
