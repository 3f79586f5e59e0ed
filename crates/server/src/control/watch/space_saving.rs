//! Space-Saving: finds the most frequent keys of a stream with a fixed number of counters (Metwally, Agrawal and El
//! Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005).
//!
//! A key without a counter takes over the smallest one. So a count is too large by at most the count that it took
//! over, which is at most N / m for N occurrences and m counters, and every key that is more frequent than N / m has
//! a counter. Two sketches can be merged with the same bounds for the sum of their streams (Agarwal et al., "Mergeable
//! Summaries", 2012).

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Counter of a key.
#[derive(Clone, Debug)]
pub(super) struct Counter<V> {
    /// Upper bound of the number of occurrences.
    pub(super) count: u64,
    /// Number by which `count` may be too large.
    pub(super) error: u64,
    /// Sum of the values since the key was added.
    pub(super) value: V,
}

/// Values that can be combined.
pub(super) trait Merge: Default {
    /// Adds the other value to this one.
    fn merge(&mut self, other: &Self);
}

/// Sketch with a fixed number of counters.
#[derive(Clone, Debug)]
pub(super) struct SpaceSaving<V> {
    counters: HashMap<String, Counter<V>, RandomState>,
    capacity: usize,
}

impl<V: Merge + Clone> SpaceSaving<V> {
    pub(super) fn new(capacity: usize) -> SpaceSaving<V> {
        SpaceSaving { counters: HashMap::default(), capacity }
    }

    /// Counts `weight` occurrences of a key, and returns the value of its counter.
    pub(super) fn count(&mut self, key: &str, weight: u64) -> &mut V {
        let is_full = self.counters.len() >= self.capacity;
        let error = if is_full && !self.counters.contains_key(key) { self.make_room() } else { 0 };
        let new = || Counter { count: error, error, value: V::default() };
        let counter = self.counters.entry_ref(key).or_insert_with(new);
        counter.count += weight;
        &mut counter.value
    }

    /// Removes the smallest counter, and returns its count.
    fn make_room(&mut self) -> u64 {
        let smallest = self.counters.iter().min_by_key(|(_, counter)| counter.count);
        let Some(key) = smallest.map(|(key, _)| key.clone()) else { return 0 };
        self.counters.remove(&key).map_or(0, |counter| counter.count)
    }

    /// Largest number of occurrences that a key without a counter may have.
    fn unseen_max(&self) -> u64 {
        let is_full = self.counters.len() >= self.capacity;
        if is_full { self.counters.values().map(|counter| counter.count).min().unwrap_or(0) } else { 0 }
    }

    /// Adds the counts of another sketch with the same capacity.
    pub(super) fn merge(&mut self, other: &SpaceSaving<V>) {
        let (own_max, other_max) = (self.unseen_max(), other.unseen_max());
        for (key, counter) in &mut self.counters {
            match other.counters.get(key) {
                Some(also) => {
                    counter.count += also.count;
                    counter.error += also.error;
                    counter.value.merge(&also.value);
                }
                None => {
                    counter.count += other_max;
                    counter.error += other_max;
                }
            }
        }
        for (key, counter) in &other.counters {
            if !self.counters.contains_key(key) {
                let Counter { count, error, value } = counter.clone();
                let counter = Counter { count: count + own_max, error: error + own_max, value };
                self.counters.insert(key.clone(), counter);
            }
        }
        if self.counters.len() > self.capacity {
            let mut counts: Vec<u64> = self.counters.values().map(|counter| counter.count).collect();
            counts.sort_unstable_by(|one, other| other.cmp(one));
            let least = counts[self.capacity - 1];
            let mut at_least = counts.iter().take(self.capacity).filter(|count| **count == least).count();
            self.counters.retain(|_, counter| {
                let is_tied = counter.count == least;
                let is_kept = counter.count > least || (is_tied && at_least > 0);
                at_least -= usize::from(is_tied && is_kept);
                is_kept
            });
        }
    }

    /// Keys with their counters, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Counter<V>)> {
        self.counters.iter().map(|(key, counter)| (key.as_str(), counter))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.counters.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    impl Merge for u64 {
        fn merge(&mut self, other: &u64) {
            *self += other;
        }
    }

    const CAPACITY: usize = 64;

    /// Repeatable random numbers (xorshift64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        /// Returns a key: small ones are frequent, about as in Zipf's law.
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the result is below the number of keys"
        )]
        fn key(&mut self, keys: u64) -> u64 {
            let uniform = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
            ((keys as f64).powf(uniform) - 1.0) as u64
        }
    }

    /// Counts a stream exactly and with a sketch.
    fn stream(seed: u64, keys: u64, events: u64, exact: &mut HashMap<String, u64>) -> SpaceSaving<u64> {
        let (mut random, mut sketch) = (Random(seed), SpaceSaving::new(CAPACITY));
        for _ in 0..events {
            let (key, weight) = (format!("n{}", random.key(keys)), 1 + random.next() % 3);
            *exact.entry(key.clone()).or_default() += weight;
            *sketch.count(&key, weight) += weight;
        }
        sketch
    }

    /// Checks the bounds of all counters.
    fn check(sketch: &SpaceSaving<u64>, exact: &HashMap<String, u64>, case: &str) {
        let total: u64 = exact.values().sum();
        let bound = total / CAPACITY as u64;
        assert!(sketch.len() <= CAPACITY, "{case}");
        for (key, counter) in sketch.iter() {
            let truth = exact.get(key).copied().unwrap_or(0);
            assert!(counter.error <= bound, "{case}: {key}: {} > {bound}", counter.error);
            assert!(
                truth <= counter.count && counter.count - counter.error <= truth,
                "{case}: {key}: {truth} {counter:?}"
            );
            assert!(counter.value <= truth, "{case}: {key}");
        }
        for (key, truth) in exact {
            let is_tracked = sketch.iter().any(|(known, _)| known == key);
            assert!(is_tracked || *truth <= bound, "{case}: {key} has {truth} of {total}");
        }
    }

    #[test]
    fn counts_are_within_their_bounds() {
        for (seed, keys) in (1..=20).zip([40, 500, 20_000].into_iter().cycle()) {
            let mut exact = HashMap::new();
            let sketch = stream(seed, keys, 20_000, &mut exact);
            check(&sketch, &exact, &format!("seed {seed}, {keys} keys"));
        }
    }

    #[test]
    fn is_exact_while_the_keys_fit() {
        let mut exact = HashMap::new();
        let sketch = stream(7, CAPACITY as u64, 5_000, &mut exact);
        assert!(sketch.iter().all(|(key, counter)| (counter.count, counter.error) == (exact[key], 0)));
    }

    #[test]
    fn merged_counts_are_within_the_same_bounds() {
        for (seed, keys) in (1..=20).zip([40, 500, 20_000].into_iter().cycle()) {
            let mut exact = HashMap::new();
            let mut merged = SpaceSaving::new(CAPACITY);
            for part in 0..6 {
                merged.merge(&stream(seed * 100 + part, keys, 4_000, &mut exact));
                check(&merged, &exact, &format!("seed {seed}, {keys} keys, part {part}"));
            }
        }
    }

    #[test]
    fn finds_the_most_frequent_of_many_keys() {
        let mut exact = HashMap::new();
        let sketch = stream(3, 20_000, 200_000, &mut exact);
        let mut by_truth: Vec<(&String, &u64)> = exact.iter().collect();
        by_truth.sort_by_key(|(_, truth)| core::cmp::Reverse(**truth));
        let mut by_sketch: Vec<(&str, u64)> = sketch.iter().map(|(key, counter)| (key, counter.count)).collect();
        by_sketch.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
        let first: Vec<&str> = by_sketch.iter().take(10).map(|(key, _)| *key).collect();
        let found = by_truth.iter().take(10).filter(|(key, _)| first.contains(&key.as_str())).count();
        assert!(found >= 9, "{found}: {first:?} {:?}", &by_truth[..10]);
    }
}
