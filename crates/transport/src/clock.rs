//! The monotonic clock.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use host::{Clock, Instant};

/// Monotonic clock that starts at its first use in the process. Changes of the wall clock do not affect it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

static START: OnceLock<std::time::Instant> = OnceLock::new();

fn start() -> std::time::Instant {
    *START.get_or_init(std::time::Instant::now)
}

impl MonotonicClock {
    /// Converts an instant to an instant of the tokio runtime.
    #[must_use]
    pub fn tokio_instant(instant: Instant) -> tokio::time::Instant {
        tokio::time::Instant::from_std(start() + instant.since(Instant::START))
    }

    /// Converts an instant of the standard library.
    #[must_use]
    pub fn from_std(instant: std::time::Instant) -> Instant {
        Instant::START + instant.saturating_duration_since(start())
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Instant {
        Instant::START + start().elapsed()
    }

    fn since_1970(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}
