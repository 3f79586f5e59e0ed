//! The monotonic clock.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use engine::{Clock, Instant};

/// Monotonic clock that starts at its first use in the process. Changes of the wall clock do not affect it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

static START: OnceLock<std::time::Instant> = OnceLock::new();

impl MonotonicClock {
    /// Converts an instant to an instant of the tokio runtime.
    #[must_use]
    pub fn tokio_instant(instant: Instant) -> tokio::time::Instant {
        let start = *START.get_or_init(std::time::Instant::now);
        tokio::time::Instant::from_std(start + instant.since(Instant::START))
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::START + START.get_or_init(std::time::Instant::now).elapsed()
    }

    fn since_1970(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}
