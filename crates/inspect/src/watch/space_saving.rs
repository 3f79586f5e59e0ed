//! Space-Saving: finds the most frequent keys of a stream with a fixed number of counters (Metwally, Agrawal and El
//! Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", 2005).
//!
//! A key without a counter takes over the smallest one. So a count is too large by at most the count that it took
//! over, which is at most N / m for N occurrences and m counters, and every key that is more frequent than N / m has
//! a counter. Two sketches can be merged with the same bounds for the sum of their streams (Agarwal et al., "Mergeable
//! Summaries", 2012).

use std::cmp::Reverse;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

/// Counter of a key.
#[derive(Clone, Debug)]
pub(super) struct Counter<V> {
    /// Upper bound of the number of occurrences. It stays at its maximum, which three million a second reach in 20
    /// minutes.
    pub(super) count: u32,
    /// Number by which `count` may be too large.
    pub(super) error: u32,
    /// Sum of the values since the key was added.
    pub(super) value: V,
}

impl<V> Counter<V> {
    /// Lower bound of the number of occurrences: those since the key was added.
    pub(super) const fn certain(&self) -> u32 {
        self.count.saturating_sub(self.error)
    }

    fn add(&mut self, count: u32, error: u32) {
        self.count = self.count.saturating_add(count);
        self.error = self.error.saturating_add(error);
    }
}

/// Values that can be combined.
pub(super) trait Merge: Default {
    /// Adds the other value to this one.
    fn merge(&mut self, other: &Self);
}

impl Merge for () {
    fn merge(&mut self, (): &()) {}
}

/// Sketch with a fixed number of counters.
///
/// A key is found by comparing a byte of its hash with that byte of all counters, many at a time. For some hundred
/// counters, that takes some tens of nanoseconds and a fraction of the memory of a hash table.
#[derive(Clone, Debug)]
pub(super) struct SpaceSaving<V> {
    /// A byte of the hash of each key, in the order of `counters`.
    tags: Vec<u8>,
    counters: Vec<(Box<str>, Counter<V>)>,
    capacity: usize,
    /// Count of the smallest counter when one was last looked for. Counts only grow, so none is smaller.
    least: u32,
    /// Counters before this one are larger than `least`, so the search for the smallest one goes on here.
    searched: usize,
}

impl<V: Merge + Clone> SpaceSaving<V> {
    /// Creates a sketch with `capacity` counters. It grows by doubling, so a power of two leaves no memory unused.
    pub(super) fn new(capacity: usize) -> SpaceSaving<V> {
        SpaceSaving { tags: Vec::new(), counters: Vec::new(), capacity, least: 0, searched: 0 }
    }

    /// Counts `weight` occurrences of a key, and returns the value of its counter.
    pub(super) fn count(&mut self, key: &str, weight: u32) -> &mut V {
        let tag = tag_of(key);
        let at = self.find(tag, key).unwrap_or_else(|| {
            let error = if self.is_full() { self.make_room() } else { 0 };
            self.push(tag, key.into(), Counter { count: error, error, value: V::default() });
            self.counters.len() - 1
        });
        let (_, counter) = &mut self.counters[at];
        counter.count = counter.count.saturating_add(weight);
        &mut counter.value
    }

    fn is_full(&self) -> bool {
        self.counters.len() >= self.capacity
    }

    fn find(&self, tag: u8, key: &str) -> Option<usize> {
        let is_key = |at: &usize| *self.counters[*at].0 == *key;
        memchr::memchr_iter(tag, &self.tags).find(is_key)
    }

    fn push(&mut self, tag: u8, key: Box<str>, counter: Counter<V>) {
        self.tags.push(tag);
        self.counters.push((key, counter));
    }

    /// Removes the smallest counter, and returns its count.
    ///
    /// Under a flood of names that all differ, each takes this way. So the search goes on where the last one ended: the
    /// counters before are larger, and a new one is larger too because it begins with the count that it took over.
    fn make_room(&mut self) -> u32 {
        let count_of = |(_, counter): &(Box<str>, Counter<V>)| counter.count;
        let is_least = |one: &(Box<str>, Counter<V>)| count_of(one) == self.least;
        let next = self.counters[self.searched..].iter().position(is_least).map(|at| self.searched + at);
        let at = next.or_else(|| {
            let counts = self.counters.iter().map(count_of);
            counts.enumerate().min_by_key(|(_, count)| *count).map(|(at, _)| at)
        });
        let Some(at) = at else { return 0 };
        // The last counter comes to the place of the removed one, where the next search begins.
        self.tags.swap_remove(at);
        let (_, removed) = self.counters.swap_remove(at);
        (self.least, self.searched) = (removed.count, at);
        removed.count
    }

    /// Largest number of occurrences that a key without a counter may have.
    fn unseen_max(&self) -> u32 {
        let counts = self.counters.iter().map(|(_, counter)| counter.count);
        if self.is_full() { counts.min().unwrap_or(0) } else { 0 }
    }

    /// Adds the counts of another sketch with the same capacity.
    pub(super) fn merge(&mut self, other: &SpaceSaving<V>) {
        let (own_max, other_max) = (self.unseen_max(), other.unseen_max());
        let own = self.counters.len();
        let mut is_in_both = vec![false; own];
        for (tag, (key, counter)) in other.tags.iter().zip(&other.counters) {
            // Keys that are added here differ from those that follow, so only the own ones are searched.
            if let Some(at) = self.find(*tag, key) {
                let (_, also) = &mut self.counters[at];
                also.add(counter.count, counter.error);
                also.value.merge(&counter.value);
                is_in_both[at] = true;
            } else {
                let mut counter = counter.clone();
                counter.add(own_max, own_max);
                self.push(*tag, key.clone(), counter);
            }
        }
        for ((_, counter), is_in_both) in self.counters.iter_mut().zip(is_in_both) {
            let unseen = if is_in_both { 0 } else { other_max };
            counter.add(unseen, unseen);
        }
        self.keep_largest();
    }

    /// Removes the smallest counters that exceed the capacity.
    fn keep_largest(&mut self) {
        if self.counters.len() > self.capacity {
            self.counters.sort_unstable_by_key(|(_, counter)| Reverse(counter.count));
            self.counters.truncate(self.capacity);
            self.counters.shrink_to_fit();
            self.tags = self.counters.iter().map(|(key, _)| tag_of(key)).collect();
        }
        (self.least, self.searched) = (0, 0);
    }

    /// Keys with their counters, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Counter<V>)> {
        self.counters.iter().map(|(key, counter)| (&**key, counter))
    }

    /// Returns the memory on the heap in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        let keys: usize = self.counters.iter().map(|(key, _)| key.len()).sum();
        self.tags.capacity() + size_of::<(Box<str>, Counter<V>)>() * self.counters.capacity() + keys
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.counters.len()
    }
}

/// Returns a byte of the hash of a key. It needs no secret seed: equal bytes of different keys cost one comparison.
fn tag_of(key: &str) -> u8 {
    FixedState::default().hash_one(key).to_le_bytes()[0]
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    impl Merge for u32 {
        fn merge(&mut self, other: &u32) {
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
    fn stream(seed: u64, keys: u64, events: u64, exact: &mut HashMap<String, u32>) -> SpaceSaving<u32> {
        let (mut random, mut sketch) = (Random(seed), SpaceSaving::new(CAPACITY));
        for _ in 0..events {
            let key = format!("n{}", random.key(keys));
            let weight = u32::try_from(1 + random.next() % 3).expect("a small number");
            *exact.entry(key.clone()).or_default() += weight;
            *sketch.count(&key, weight) += weight;
        }
        sketch
    }

    /// Checks the bounds of all counters.
    fn check(sketch: &SpaceSaving<u32>, exact: &HashMap<String, u32>, case: &str) {
        let total: u32 = exact.values().sum();
        let bound = total / u32::try_from(CAPACITY).expect("a small number");
        assert!(sketch.len() <= CAPACITY, "{case}");
        for (key, counter) in sketch.iter() {
            let truth = exact.get(key).copied().unwrap_or(0);
            assert!(counter.error <= bound, "{case}: {key}: {} > {bound}", counter.error);
            assert!(truth <= counter.count && counter.certain() <= truth, "{case}: {key}: {truth} {counter:?}");
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
    fn a_new_key_takes_the_smallest_counter_over() {
        for (seed, keys) in [(1, 80), (2, 20_000), (3, 1 << 40)] {
            let (mut random, mut sketch) = (Random(seed), SpaceSaving::<u32>::new(CAPACITY));
            for event in 0..5_000 {
                let key = format!("n{}", random.key(keys));
                let least = sketch.iter().map(|(_, counter)| counter.count).min().unwrap_or(0);
                let is_known = sketch.iter().any(|(known, _)| known == key);
                let is_full = sketch.len() == CAPACITY;
                sketch.count(&key, 1 + u32::try_from(random.next() % 3).expect("a small number"));
                let (_, counter) = sketch.iter().find(|(known, _)| *known == key).expect("it was counted");
                let expected = if is_full { least } else { 0 };
                assert!(
                    is_known || counter.error == expected,
                    "seed {seed}, event {event}: {counter:?}, least {least}"
                );
                if event % 1_000 == 999 {
                    // A merged sketch is counted in again.
                    let other = sketch.clone();
                    sketch.merge(&other);
                }
            }
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
        let mut by_truth: Vec<(&String, &u32)> = exact.iter().collect();
        by_truth.sort_by_key(|(_, truth)| core::cmp::Reverse(**truth));
        let mut by_sketch: Vec<(&str, u32)> = sketch.iter().map(|(key, counter)| (key, counter.count)).collect();
        by_sketch.sort_by_key(|(_, count)| core::cmp::Reverse(*count));
        let first: Vec<&str> = by_sketch.iter().take(10).map(|(key, _)| *key).collect();
        let found = by_truth.iter().take(10).filter(|(key, _)| first.contains(&key.as_str())).count();
        assert!(found >= 9, "{found}: {first:?} {:?}", &by_truth[..10]);
    }
}
