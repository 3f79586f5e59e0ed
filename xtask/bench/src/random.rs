//! Random choices, all of which the seed decides.

use testkit::SplitMix64;

/// Random choices of a seed, the same on every machine.
#[derive(Clone)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below a limit above 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).unwrap_or_default()
    }

    /// Returns true in this many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns true in this many of a thousand cases.
    pub(crate) fn permille(&mut self, permille: usize) -> bool {
        self.below(1000) < permille
    }

    /// Returns an element of a list that is not empty.
    pub(crate) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    /// Returns this many different elements of a list, all of a shorter one, in random order.
    pub(crate) fn sample<T: Copy>(&mut self, list: &[T], count: usize) -> Vec<T> {
        let mut rest = list.to_vec();
        (0..count.min(list.len())).map(|_| rest.swap_remove(self.below(rest.len()))).collect()
    }
}
