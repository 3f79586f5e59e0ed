//! The monotonic clock.

use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::{Clock, Moment};

/// Time since the process first asked for it; a jump of the wall clock does not move it.
#[derive(Clone, Copy, Debug, Default)]
pub struct MonotonicClock;

static START: OnceLock<Instant> = OnceLock::new();

impl MonotonicClock {
    /// The runtime's instant for a moment.
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
