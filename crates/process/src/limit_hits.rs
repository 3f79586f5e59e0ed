//! Counts of reached limits outside of the workers, such as those of zones and of the control API. They are reached
//! rarely, and from any thread.

use std::sync::{Mutex, OnceLock, PoisonError};

use metrics::{Counter, Counters, Registry};
use net::Limits;

/// Counters of the process. `None` before the start, and in commands that serve nothing.
static HITS: OnceLock<(Limits, Mutex<Counters>)> = OnceLock::new();

/// Counts in this registry from now on.
pub fn count_in(registry: &Registry) {
    HITS.get_or_init(|| (Limits::new(registry), Mutex::new(registry.counters())));
}

/// Counts a reached limit.
pub fn count(limit: fn(&Limits) -> Counter) {
    if let Some((limits, counters)) = HITS.get() {
        counters.lock().unwrap_or_else(PoisonError::into_inner).count(limit(limits));
    }
}
