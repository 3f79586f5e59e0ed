//! Monotonic time as a value, which tests can simulate, and calendar dates as text.

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

/// Returns year, month and day of a day since 1970.
///
/// Computes with years that begin in March, so that the leap day is last.
#[must_use]
pub fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

/// Formats a time since 1970 according to RFC 3339, in UTC with milliseconds.
#[must_use]
pub fn rfc3339(since_1970: Duration) -> String {
    format!("{}.{:03}Z", to_seconds(since_1970), since_1970.subsec_millis())
}

/// Formats a time like [`rfc3339`], with nanoseconds.
#[must_use]
pub fn rfc3339_nanos(since_1970: Duration) -> String {
    format!("{}.{:09}Z", to_seconds(since_1970), since_1970.subsec_nanos())
}

fn to_seconds(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_times_like_date() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_704_067_199, "2023-12-31T23:59:59.000Z"),
            (1_795_366_335, "2026-11-22T16:52:15.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn formats_times_with_nanoseconds() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_399, "2000-02-28T23:59:59.000000000Z"),
            (951_782_400, "2000-02-29T00:00:00.000000000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000000000Z"),
        ] {
            assert_eq!(rfc3339_nanos(Duration::from_secs(seconds)), text);
        }
    }
}
