//! Message IDs of queries that have ended and may still get a reply.
//!
//! The system may give the port of a closed socket to another one soon. A late reply then arrives at a socket that has
//! not sent its ID, and looks like a guess. While an upstream is slow, there are hundreds of those per second.

/// Number of periods for which an ID is remembered. Rotated every few seconds, that is longer than clients wait.
const PERIODS: usize = 2;
/// Words of a set of all IDs, of 8 KiB.
const WORDS: usize = (1 << 16) / u64::BITS as usize;

/// Sets of message IDs by period, the current one first. A set takes memory only if it has an ID.
#[derive(Default)]
pub(super) struct EndedIds([Option<Box<[u64; WORDS]>>; PERIODS]);

impl EndedIds {
    pub(super) fn insert(&mut self, id: u16) {
        let (word, bit) = place(id);
        self.0[0].get_or_insert_with(|| Box::new([0; WORDS]))[word] |= bit;
    }

    pub(super) fn contains(&self, id: u16) -> bool {
        let (word, bit) = place(id);
        self.0.iter().flatten().any(|set| set[word] & bit != 0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Begins a period, and forgets the oldest one.
    pub(super) fn rotate(&mut self) {
        self.0.rotate_right(1);
        self.0[0] = None;
    }
}

/// Returns the word of an ID, and its bit there.
fn place(id: u16) -> (usize, u64) {
    (usize::from(id) / u64::BITS as usize, 1 << (u32::from(id) % u64::BITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_forgotten_after_two_periods() {
        let mut ended = EndedIds::default();
        [0, 63, 64, 65_535].into_iter().for_each(|id| ended.insert(id));
        assert_eq!(
            [0, 1, 63, 64, 65, 65_534, 65_535].map(|id| ended.contains(id)),
            [true, false, true, true, false, false, true]
        );
        ended.rotate();
        assert!(ended.contains(64) && !ended.contains(1));
        ended.rotate();
        assert!(!ended.contains(64) && ended.is_empty());
    }
}
