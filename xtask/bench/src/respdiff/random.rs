//! Random choices, all of which the seed decides.

/// SplitMix64 by Steele, Lea and Flood: a small generator with the same output on every machine.
#[derive(Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
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
