//! Monotonic time as a value, which tests can simulate.

use core::fmt;
use core::ops::{Add, Sub};
use core::time::Duration;

/// Clock.
pub trait Clock {
    /// Monotonic time.
    fn now(&self) -> Instant;

    /// Wall-clock time since the Unix epoch, for signatures that others verify. It may jump.
    fn since_1970(&self) -> Duration;
}

/// Monotonic instant, in nanoseconds since an arbitrary start (of the process, or of a scenario).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Instant(u64);

impl Instant {
    /// Start.
    pub const START: Instant = Instant(0);

    /// Returns the instant `nanos` nanoseconds after the start.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Instant {
        Instant(nanos)
    }

    /// Nanoseconds since the start.
    #[must_use]
    pub const fn nanos(self) -> u64 {
        self.0
    }

    /// Time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    /// Adds a duration. Saturates after about five centuries.
    fn add(self, span: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, span: Duration) -> Instant {
        Instant(self.0.saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}
