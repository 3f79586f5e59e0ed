//! Ring of records from one worker to one reader, without locks and without waiting.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use host::invariant::holds;

use super::reasons::Reasons;
use super::record::{Record, WORDS};
use host::Instant;

/// Maximum number of records in a ring. A reader that comes every tenth of a second loses none below 10,000 a second.
/// With `WORDS` of 8 bytes, the ring has 192 KiB.
pub const CAPACITY_MAX: usize = 1024;
/// Minimum number of records in a ring: 1,280 a second of one of many workers.
const CAPACITY_MIN: usize = 128;
/// Number of records in the rings of all workers, unless there are more than 64: 1.5 MiB. A machine with many cores
/// has no more people that look at it.
const RECORDS_MAX: usize = 8192;
/// Records for filters leave one in this many places of a ring free, so that the record of failures and the sample
/// continue while a filter selects everything.
const RESERVED_PART: u64 = 4;
/// Maximum number of filters at the same time: a few people. Each costs every query some compares.
pub const TAILS_MAX: usize = 4;

/// Ring of one worker, with what its reader has to know and to set.
pub struct Ring {
    places: Box<[[AtomicU64; WORDS]]>,
    /// Number of records that the worker has written.
    written: AtomicU64,
    /// Number of records that the reader has read.
    read: AtomicU64,
    /// Number of queries that the records of the sample and of failures represent which did not fit.
    lost: AtomicU64,
    /// Average distance of the queries in the sample.
    sample_every: AtomicU32,
    tails: [TailCells; TAILS_MAX],
}

/// Numbers of one filter.
struct TailCells {
    /// Number of queries that the filter selected.
    selected: AtomicU64,
    /// Number of records that did not fit.
    lost: AtomicU64,
    /// Average distance of the selected queries that are shown.
    every: AtomicU32,
}

impl Default for TailCells {
    fn default() -> Self {
        TailCells { selected: AtomicU64::new(0), lost: AtomicU64::new(0), every: AtomicU32::new(1) }
    }
}

impl Default for Ring {
    fn default() -> Self {
        Ring::new(1)
    }
}

impl Ring {
    /// Creates the ring of one of `workers` workers.
    #[must_use]
    pub fn new(workers: usize) -> Ring {
        let capacity = (RECORDS_MAX / workers.max(1)).clamp(CAPACITY_MIN, CAPACITY_MAX);
        holds(capacity as u64 > RESERVED_PART, "a part of a ring is at least one place");
        let place = || core::array::from_fn(|_| AtomicU64::new(0));
        Ring {
            places: (0..capacity).map(|_| place()).collect(),
            written: AtomicU64::new(0),
            read: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            sample_every: AtomicU32::new(1),
            tails: core::array::from_fn(|_| TailCells::default()),
        }
    }

    /// Returns the maximum number of records.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Writes a record, unless the ring is full. Only the worker calls it.
    pub(super) fn push(&self, reasons: Reasons, weight: u32, words: impl FnOnce() -> [u64; WORDS]) {
        let written = self.written.load(Ordering::Relaxed);
        let unread = written.wrapping_sub(self.read.load(Ordering::Acquire));
        let capacity = self.places.len() as u64;
        holds(unread <= capacity, "a ring has a place for each record in it");
        holds(!reasons.is_empty(), "a record has a reason");
        let room = if reasons.is_counted() { capacity } else { capacity - capacity / RESERVED_PART };
        if unread >= room {
            self.lose(reasons, weight);
            return;
        }
        for (cell, word) in self.place(written).iter().zip(words()) {
            cell.store(word, Ordering::Relaxed);
        }
        self.written.store(written.wrapping_add(1), Ordering::Release);
    }

    fn lose(&self, reasons: Reasons, weight: u32) {
        add(&self.lost, u64::from(weight));
        for (at, tail) in self.tails.iter().enumerate() {
            add(&tail.lost, u64::from(reasons.has_tail(at)));
        }
    }

    fn place(&self, number: u64) -> &[AtomicU64; WORDS] {
        #[allow(clippy::cast_possible_truncation, reason = "the remainder is below the capacity")]
        let at = (number % self.places.len() as u64) as usize;
        &self.places[at]
    }

    /// Number of records in the ring. Only the thread that reads may call it.
    fn len(&self) -> u64 {
        let len = self.written.load(Ordering::Acquire).wrapping_sub(self.read.load(Ordering::Relaxed));
        holds(len <= self.places.len() as u64, "a ring has a place for each record in it");
        len
    }

    /// Arrival of the oldest query in a ring that is not empty.
    fn first(&self) -> Instant {
        let read = self.read.load(Ordering::Relaxed);
        Record::received_in(self.place(read)[0].load(Ordering::Relaxed))
    }

    /// Takes the oldest record out of a ring that is not empty.
    fn take(&self) -> [u64; WORDS] {
        holds(self.len() > 0, "a record is taken out of a ring that has one");
        let read = self.read.load(Ordering::Relaxed);
        let words = core::array::from_fn(|at| self.place(read)[at].load(Ordering::Relaxed));
        self.read.store(read.wrapping_add(1), Ordering::Release);
        words
    }

    /// Returns the number of queries that the sample and the record of failures miss because the ring was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(super) fn sample_every(&self) -> u32 {
        self.sample_every.load(Ordering::Relaxed)
    }

    /// Sets the average distance of the queries in the sample; 1 takes all.
    pub fn set_sample_every(&self, every: u32) {
        self.sample_every.store(every.max(1), Ordering::Relaxed);
    }

    pub(super) fn tail_every(&self, at: usize) -> u32 {
        self.tails[at].every.load(Ordering::Relaxed)
    }

    /// Sets the average distance of the queries that are shown of those that a filter selects; 1 shows all.
    pub fn set_tail_every(&self, at: usize, every: u32) {
        self.tails[at].every.store(every.max(1), Ordering::Relaxed);
    }

    pub(super) fn count_selected(&self, at: usize) {
        add(&self.tails[at].selected, 1);
    }

    /// Returns the number of queries that a filter has selected.
    #[must_use]
    pub fn selected(&self, at: usize) -> u64 {
        self.tails[at].selected.load(Ordering::Relaxed)
    }

    /// Returns the number of selected queries that are not shown because the ring was full.
    #[must_use]
    pub fn tail_lost(&self, at: usize) -> u64 {
        self.tails[at].lost.load(Ordering::Relaxed)
    }
}

/// Takes the words of all records out of the rings, oldest first: each ring is in order, and a client may have asked
/// several workers. Records that are added meanwhile stay. Only one thread may call it.
pub fn drain(rings: &[Arc<Ring>], mut take: impl FnMut(&[u64; WORDS])) {
    let mut left: Vec<u64> = rings.iter().map(|ring| ring.len()).collect();
    let head = |at: usize| Reverse((rings[at].first(), at));
    let mut heads: BinaryHeap<_> = (0..rings.len()).filter(|at| left[*at] > 0).map(head).collect();
    while let Some(Reverse((_, at))) = heads.pop() {
        take(&rings[at].take());
        holds(left[at] > 0, "a ring is drained up to the records that it had");
        left[at] -= 1;
        if left[at] > 0 {
            heads.push(head(at));
        }
    }
}

/// Adds to a cell that only this thread writes.
fn add(cell: &AtomicU64, number: u64) {
    cell.store(cell.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
}
