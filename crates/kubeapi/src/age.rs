//! Tracks how long watches have been failing, which bounds the age of the served data.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Failing watches with the time of their first failure.
#[derive(Default)]
pub(crate) struct Failing(Mutex<Since>);

#[derive(Default)]
struct Since {
    watches: BTreeMap<u64, Instant>,
    next: u64,
}

impl Failing {
    /// Returns how long the longest-failing watch has been failing, or zero if no watch fails.
    pub(crate) fn longest(&self) -> Duration {
        let since = self.lock();
        since.watches.values().map(Instant::elapsed).max().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Since> {
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
        let mut since = failing.lock();
        since.next += 1;
        Mark { failing: Arc::clone(failing), number: since.next }
    }

    /// Records that the watch fails or works. Repeated failures keep the time of the first.
    pub(crate) fn set(&self, fails: bool) {
        let mut since = self.failing.lock();
        if fails {
            since.watches.entry(self.number).or_insert_with(Instant::now);
        } else {
            since.watches.remove(&self.number);
        }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        self.set(false);
    }
}
