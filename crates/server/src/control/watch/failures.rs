//! Flight recorder: the last failures, from before anybody looked.

use std::collections::VecDeque;

use control::tail::FAILURES_KEPT;
use engine::tap::Record;

/// Last failures, oldest first. They take about half a MiB.
#[derive(Default)]
pub(super) struct Failures {
    records: VecDeque<Record>,
}

impl Failures {
    pub(super) fn add(&mut self, record: Record) {
        if self.records.len() == FAILURES_KEPT {
            self.records.pop_front();
        }
        self.records.push_back(record);
    }

    /// Returns the last `number` failures that a filter selects, oldest first.
    pub(super) fn last(&self, number: usize, selects: impl Fn(&Record) -> bool) -> impl Iterator<Item = &Record> {
        let selected: Vec<&Record> = self.records.iter().rev().filter(|record| selects(record)).take(number).collect();
        selected.into_iter().rev()
    }
}
