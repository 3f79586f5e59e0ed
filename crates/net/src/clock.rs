//! The monotonic clock.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::{Clock, Moment};

/// Monotonic clock that starts at its first use in the process. Changes of the wall clock do not affect it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

static START: OnceLock<Instant> = OnceLock::new();

impl MonotonicClock {
    /// Converts a moment to an instant of the tokio runtime.
    pub(crate) fn instant(moment: Moment) -> tokio::time::Instant {
        let start = *START.get_or_init(Instant::now);
        tokio::time::Instant::from_std(start + moment.since(Moment::START))
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Moment {
        Moment::START + START.get_or_init(Instant::now).elapsed()
    }

    fn since_1970(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}
