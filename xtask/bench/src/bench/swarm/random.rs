//! Random numbers that are the same in each run (xorshift64).

/// Generator of random numbers.
pub(crate) struct Random(u64);

impl Random {
    /// Creates a generator. Different numbers give different sequences.
    pub(crate) fn new(number: usize) -> Random {
        // An odd factor keeps different numbers different, and the state must not be 0.
        Random((number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// Returns an index of a collection of this length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length.max(1) as u64)).unwrap_or(0)
    }

    /// Returns a text of letters and digits that Kubernetes uses for the random parts of names.
    pub(crate) fn text(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..length).map(|_| char::from(LETTERS[self.index(LETTERS.len())])).collect()
    }
}
