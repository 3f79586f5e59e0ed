//! Tracks how long watches have been failing, which bounds the age of the served data.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failing watches with the time of their first failure.
#[derive(Default)]
pub(crate) struct Failing(Mutex<FailureTimes>);

#[derive(Default)]
struct FailureTimes {
    watches: BTreeMap<u64, Instant>,
    next: u64,
}

impl Failing {
    /// Returns how long the longest-failing watch has been failing, or zero if no watch fails.
    pub(crate) fn longest(&self) -> Duration {
        let times = self.lock();
        times.watches.values().map(Instant::elapsed).max().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, FailureTimes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// State of one watch in [`Failing`]. Dropping it removes the watch.
pub(crate) struct Mark {
    failing: Arc<Failing>,
    number: u64,
}

impl Mark {
    pub(crate) fn new(failing: &Arc<Failing>) -> Mark {
        let mut times = failing.lock();
        times.next += 1;
        Mark { failing: Arc::clone(failing), number: times.next }
    }

    /// Records that the watch fails or works. Repeated failures keep the time of the first.
    pub(crate) fn set(&self, fails: bool) {
        let mut times = self.failing.lock();
        if fails {
            times.watches.entry(self.number).or_insert_with(Instant::now);
        } else {
            times.watches.remove(&self.number);
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.set(false);
    }
}
