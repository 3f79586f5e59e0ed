//! Bound for log lines that anyone can cause, such as those about refused UPDATE messages.

use core::fmt;
use core::time::Duration;

use host::Instant;
use host::invariant::holds;

/// Maximum number of lines per second and worker. Anyone can send updates that are refused, so more are only counted.
const LINES_MAX: u64 = 20;
const SECOND: Duration = Duration::from_secs(1);

/// Bound for the lines of one kind in a second.
#[derive(Debug, Default)]
pub struct LineLimit {
    /// Start of the current second, and the number of lines in it.
    second: Option<(Instant, u64)>,
}

impl LineLimit {
    /// Counts an event, and returns true if there may be a line about it.
    pub fn admit(&mut self, now: Instant) -> bool {
        let (_, events) = self.second.get_or_insert((now, 0));
        *events += 1;
        *events <= LINES_MAX
    }

    /// Returns true if events were left out in the current second.
    #[must_use]
    pub fn has_left_out(&self) -> bool {
        self.second.is_some_and(|(_, events)| events > LINES_MAX)
    }

    /// Ends the current second if it is over. Returns the number of events without a line in it.
    pub fn end_second(&mut self, now: Instant) -> u64 {
        let ended = self.second.take_if(|(begun, _)| now.since(*begun) >= SECOND);
        holds(ended.is_none_or(|(begun, _)| begun <= now), "time does not go backwards");
        ended.map_or(0, |(_, events)| events.saturating_sub(LINES_MAX))
    }
}

/// Number of refused updates without a line, as a line of the log.
pub(crate) struct LeftOut(pub(crate) u64);

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} more updates refused within a second", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_has_a_limited_number_of_lines_and_counts_the_rest() {
        let mut limit = LineLimit::default();
        let admitted = (0..LINES_MAX + 5).filter(|_| limit.admit(Instant::START)).count();
        assert_eq!(admitted as u64, LINES_MAX);
        assert!(limit.has_left_out());
        assert_eq!(limit.end_second(Instant::START + SECOND / 2), 0);
        assert_eq!(limit.end_second(Instant::START + SECOND), 5);
        assert_eq!(limit.end_second(Instant::START + SECOND), 0);
        assert!(limit.admit(Instant::START + SECOND));
    }
}
