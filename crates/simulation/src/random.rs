//! Seeded random numbers.

use core::time::Duration;

use testkit::SplitMix64;

/// Random numbers that depend on a seed alone.
#[derive(Clone, Debug)]
pub(crate) struct Generator(SplitMix64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Generator {
        Generator(SplitMix64::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a generator whose numbers do not depend on how often this one is used later.
    pub(crate) fn fork(&mut self) -> Generator {
        Generator::new(self.next())
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Returns true with this probability.
    pub(crate) fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).expect("an index of this machine")
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// Returns a time of 1 ms to this many.
    pub(crate) fn millis(&mut self, most: u64) -> Duration {
        Duration::from_millis(1 + self.below(most))
    }
}
