//! For how long a watch has not worked: how old what is served may be.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Since when watches have been failing.
#[derive(Default)]
pub(crate) struct Failing(Mutex<Since>);

#[derive(Default)]
struct Since {
    watches: BTreeMap<u64, Instant>,
    next: u64,
}

impl Failing {
    /// For how long the one has failed that has failed longest; zero if none does.
    pub(crate) fn longest(&self) -> Duration {
        let since = self.lock();
        since.watches.values().map(Instant::elapsed).max().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Since> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one watch fails. It is forgotten with the watch.
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

    /// The watch fails, or works.
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
