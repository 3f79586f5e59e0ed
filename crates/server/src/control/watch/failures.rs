//! Flight recorder: the last failures, from before anybody looked.

use std::collections::VecDeque;

use control::tail::FAILURES_KEPT;
use engine::tap::{Record, WORDS};

/// Last failures, oldest first, without the words that their names leave unused: 120 bytes each with usual names.
#[derive(Default)]
pub(super) struct Failures {
    records: VecDeque<Box<[u64]>>,
}

impl Failures {
    pub(super) fn add(&mut self, words: &[u64; WORDS]) {
        if self.records.len() == FAILURES_KEPT {
            self.records.pop_front();
        }
        self.records.push_back(Record::used(words).into());
    }

    /// Returns the last `number` failures that a filter selects, oldest first.
    pub(super) fn last(&self, number: usize, selects: impl Fn(&Record) -> bool) -> impl Iterator<Item = Record> {
        let newest_first = self.records.iter().rev().map(|words| Record::from_words(words));
        let selected: Vec<Record> = newest_first.filter(|record| selects(record)).take(number).collect();
        selected.into_iter().rev()
    }

    /// Returns the memory on the heap in bytes.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        let words = self.records.iter().map(|words| size_of_val(&**words));
        size_of::<Box<[u64]>>() * self.records.capacity() + words.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fits_into_its_memory() {
        let mut failures = Failures::default();
        for _ in 0..2 * FAILURES_KEPT {
            // The length of a name is a byte of the eighth word; this one is the longest.
            let mut words = [0; WORDS];
            words[7] = 255 << 48;
            failures.add(&words);
        }
        assert_eq!(failures.records.len(), FAILURES_KEPT);
        assert_eq!(failures.memory(), FAILURES_KEPT * (WORDS * 8 + 16));
    }
}
