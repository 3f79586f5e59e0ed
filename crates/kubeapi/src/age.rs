//! Age of the served data: how long watches have been failing, and whether the view is too old.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cluster::Index;
use tracing::{info, warn};

use crate::LOG;
use crate::health::ViewHealth;

/// Marks the answers of an index while its view is too old.
pub(crate) struct AgeLimit {
    /// Age from which the view is stale.
    pub(crate) stale_after: Duration,
    /// Interval between two looks.
    pub(crate) look: Duration,
    /// URL of the API server.
    pub(crate) url: String,
}

impl AgeLimit {
    /// Compares the age of the view with the limit until dropped.
    pub(crate) async fn run(self, index: Arc<Index>, health: Arc<ViewHealth>) {
        loop {
            tokio::time::sleep(self.look).await;
            let oldest = health.oldest().filter(|(_, age)| *age >= self.stale_after);
            let seconds = oldest.and_then(|(_, age)| NonZeroU32::new(u32::try_from(age.as_secs()).unwrap_or(u32::MAX)));
            let was_stale = index.stale_seconds().is_some();
            index.set_stale_seconds(seconds);
            match (oldest, was_stale) {
                (Some((kind, age)), false) => warn!(
                    target: LOG,
                    "The view of {} is {} s old: that long ago it last confirmed the {}. Answers from it carry an \
                     Extended DNS Error until it is current",
                    self.url,
                    age.as_secs(),
                    kind.plural()
                ),
                (None, true) => info!(target: LOG, "The view of {} is current again", self.url),
                _ => {}
            }
        }
    }
}

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
