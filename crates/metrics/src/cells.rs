//! Storage of the counters of one thread.

use core::cell::Cell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::handles::{Counter, Histogram};

/// Cells in a segment, which occupies two pages and is allocated on first use.
const SEGMENT: usize = 1024;
/// Maximum number of segments in a slab.
const SEGMENTS_MAX: usize = 512;
/// Maximum number of cells in a slab, and so of series in a process. It is far more than a scrape should return.
pub(crate) const CELLS_MAX: usize = SEGMENT * SEGMENTS_MAX;

type Segment = [AtomicU64; SEGMENT];

/// Growable array of cells. Its segments never move, so that other threads can read them.
pub(crate) struct Slab {
    segments: Box<[OnceLock<Box<Segment>>]>,
}

impl Slab {
    pub(crate) fn new() -> Slab {
        Slab { segments: (0..SEGMENTS_MAX).map(|_| OnceLock::new()).collect() }
    }

    fn cell(&self, number: usize) -> Option<&AtomicU64> {
        let segment = self.segments.get(number / SEGMENT)?;
        Some(&segment.get_or_init(|| Box::new([const { AtomicU64::new(0) }; SEGMENT]))[number % SEGMENT])
    }

    pub(crate) fn read(&self, number: usize) -> u64 {
        let segment = self.segments.get(number / SEGMENT).and_then(OnceLock::get);
        debug_assert!(number <= CELLS_MAX + SEGMENT, "a cell was given out, or is the one beyond the limit");
        segment.map_or(0, |segment| segment[number % SEGMENT].load(Ordering::Relaxed))
    }
}

/// Counters of one thread.
pub struct Counters {
    slab: Arc<Slab>,
    /// Makes the type `!Sync`. With a single writer, an addition is a plain load and store.
    one_writer: PhantomData<Cell<()>>,
}

impl Counters {
    pub(crate) fn new(slab: Arc<Slab>) -> Counters {
        Counters { slab, one_writer: PhantomData }
    }

    /// Increments a counter.
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
    }

    /// Adds `many` to a counter.
    pub fn add(&self, counter: Counter, many: u64) {
        self.add_to(counter.0 as usize, many);
    }

    /// Adds an observation, in the unit of the histogram's buckets.
    pub fn observe(&self, histogram: Histogram, value: u64) {
        let first = histogram.first as usize;
        self.add_to(first + histogram.buckets.index(value), 1);
        self.add_to(first + histogram.buckets.bounds.len() + 1, value);
    }

    fn add_to(&self, number: usize, many: u64) {
        if let Some(cell) = self.slab.cell(number) {
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(many), Ordering::Relaxed);
        }
    }
}
