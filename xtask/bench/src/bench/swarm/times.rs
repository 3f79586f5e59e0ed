//! Times of the changes at the API server, and the delays of nodes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Times at which resource versions were written.
pub(crate) struct WriteTimes {
    start: Instant,
    /// Resource version before the first change.
    base: u64,
    /// Time of each change in ns since the start, or 0 before it.
    nanos: Vec<AtomicU64>,
    last: AtomicU64,
}

impl WriteTimes {
    /// Creates room for this many changes after a resource version.
    pub(crate) fn new(base: u64, count: usize) -> WriteTimes {
        let nanos = (0..count).map(|_| AtomicU64::new(0)).collect();
        WriteTimes { start: Instant::now(), base, nanos, last: AtomicU64::new(base) }
    }

    /// Records that the next version is written now, unless there is no room.
    pub(crate) fn note(&self) -> Option<u64> {
        let version = self.last() + 1;
        self.slot(version)?.store(self.now(), Ordering::Relaxed);
        self.last.store(version, Ordering::Release);
        Some(version)
    }

    /// Returns the last version.
    pub(crate) fn last(&self) -> u64 {
        self.last.load(Ordering::Acquire)
    }

    /// Returns the time since a version was written, in µs.
    pub(crate) fn since(&self, version: u64) -> Option<u32> {
        let at = self.slot(version)?.load(Ordering::Relaxed);
        let micros = self.now().saturating_sub(at) / 1000;
        (at > 0).then(|| u32::try_from(micros).unwrap_or(u32::MAX))
    }

    fn slot(&self, version: u64) -> Option<&AtomicU64> {
        self.nanos.get(usize::try_from(version.checked_sub(self.base + 1)?).ok()?)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Delays in µs.
#[derive(Default)]
pub(crate) struct Delays(Mutex<Vec<u32>>);

impl Delays {
    pub(crate) fn add(&self, micros: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(micros);
    }

    /// Returns the delays so far, and forgets them.
    pub(crate) fn take(&self) -> Summary {
        let mut all = core::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.sort_unstable();
        let at = |thousandths: usize| {
            let micros = all.get(all.len().saturating_sub(1) * thousandths / 1000).copied().unwrap_or(0);
            Duration::from_micros(u64::from(micros))
        };
        Summary { count: all.len(), half: at(500), most: at(990), all: at(1000) }
    }
}

/// Percentiles of delays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Summary {
    pub(crate) count: usize,
    pub(crate) half: Duration,
    pub(crate) most: Duration,
    pub(crate) all: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_times_of_versions_after_the_base() {
        let times = WriteTimes::new(10, 2);
        assert_eq!((times.last(), times.since(11)), (10, None));
        assert_eq!([times.note(), times.note(), times.note()], [Some(11), Some(12), None]);
        assert!(times.since(11) >= times.since(12) && times.since(12).is_some());
        assert_eq!([times.since(10), times.since(13)], [None, None]);
    }

    #[test]
    fn summarises_delays_and_forgets_them() {
        let delays = Delays::default();
        (1..=1000).rev().for_each(|micros| delays.add(micros));
        let summary = delays.take();
        let expected = [500, 990, 1000].map(Duration::from_micros);
        assert_eq!((summary.count, [summary.half, summary.most, summary.all]), (1000, expected));
        assert_eq!(delays.take().count, 0);
    }
}
