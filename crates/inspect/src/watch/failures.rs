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

    /// Returns the last `number` failures that a filter selects, in the order in which their queries arrived. They are
    /// kept in the order of their answers.
    pub(super) fn last(&self, number: usize, selects: impl Fn(&Record) -> bool) -> impl Iterator<Item = Record> {
        let newest_first = self.records.iter().rev().map(|words| Record::from_words(words));
        let mut selected: Vec<Record> = newest_first.filter(|record| selects(record)).take(number).collect();
        host::sorting::sort_by_key(&mut selected, |record| record.received);
        selected.into_iter()
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
    fn returns_the_last_failures_by_their_arrival() {
        let mut failures = Failures::default();
        for arrival in [1, 4, 2, 3] {
            let mut words = [0; WORDS];
            words[0] = arrival;
            failures.add(&words);
        }
        let arrivals = |number| -> Vec<Record> { failures.last(number, |_| true).collect() };
        let nanos = |at: u64| Record::from_words(&[at]).received;
        assert!(arrivals(3).iter().map(|record| record.received).eq([2, 3, 4].map(nanos)));
        assert!(failures.last(1, |record| record.received != nanos(3)).all(|record| record.received == nanos(2)));
    }

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
