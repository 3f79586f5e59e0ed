//! Alarm for replies that may be attempts to forge one (RFC 5452 §9).

use core::time::Duration;

use host::Instant;
use host::invariant::holds;

/// Period in which replies are counted. There is at most one alarm in each, so that an attacker cannot keep a cache
/// empty.
const PERIOD: Duration = Duration::from_secs(60);

/// Number of failed exchanges that explain one reply without a query. With a slow upstream, 1,400 failures per second
/// and two threads there was one in 420; the share grows with the number of open ports and threads.
const FAILURES_PER_STRAY: u64 = 4;

/// Counter of the replies of one upstream that match no query, with an alarm at a threshold.
///
/// An attacker who hits the right port needs 65,536 message IDs. With a threshold of 1,000, the alarm sounds before he
/// has tried 1.5 % of them, and what he may have placed in a cache is removed.
#[derive(Debug)]
pub struct ForgeryAlarm {
    /// Number of replies in a period that raises the alarm; 0 for never.
    threshold: u64,
    started: Instant,
    counted: u64,
    /// Number of failed exchanges in the period.
    failures: u64,
    /// True if the alarm has been raised in the period.
    is_raised: bool,
}

impl ForgeryAlarm {
    /// Creates an alarm; it is never raised if `threshold` is 0.
    #[must_use]
    pub const fn new(threshold: u64) -> ForgeryAlarm {
        ForgeryAlarm { threshold, started: Instant::START, counted: 0, failures: 0, is_raised: false }
    }

    /// Counts replies. Returns true if this raises the alarm, at most once in a period of a minute.
    pub fn count(&mut self, now: Instant, replies: u64) -> bool {
        self.begin_period(now);
        self.counted = self.counted.saturating_add(replies);
        let threshold = self.threshold.saturating_add(self.failures / FAILURES_PER_STRAY);
        let is_reached = self.threshold > 0 && self.counted >= threshold;
        is_reached && !core::mem::replace(&mut self.is_raised, true)
    }

    /// Records a failed exchange. Its reply may come late, at a port that another thread has opened again.
    pub fn note_failure(&mut self, now: Instant) {
        self.begin_period(now);
        self.failures = self.failures.saturating_add(1);
    }

    fn begin_period(&mut self, now: Instant) {
        holds(self.started <= now, "time does not go backwards");
        holds(!self.is_raised || self.counted > 0, "an alarm is raised after a stray reply");
        if now.since(self.started) >= PERIOD {
            *self = ForgeryAlarm { started: now, ..ForgeryAlarm::new(self.threshold) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alarm_is_raised_once_a_minute() {
        let at = |seconds| Instant::START + Duration::from_secs(seconds);
        let mut alarm = ForgeryAlarm::new(1000);
        assert_eq!(
            [alarm.count(at(100), 999), alarm.count(at(159), 1), alarm.count(at(159), 5000)],
            [false, true, false]
        );
        assert_eq!(
            [alarm.count(at(160), 999), alarm.count(at(220), 999), alarm.count(at(221), 1)],
            [false, false, true]
        );
        assert!(alarm.count(at(300), u64::MAX) && !alarm.count(at(300), u64::MAX));
    }

    #[test]
    fn late_replies_of_a_slow_upstream_raise_no_alarm() {
        let mut alarm = ForgeryAlarm::new(1000);
        (0..8000).for_each(|_| alarm.note_failure(Instant::START));
        assert_eq!([alarm.count(Instant::START, 2999), alarm.count(Instant::START, 1)], [false, true]);
        (0..8000).for_each(|_| alarm.note_failure(Instant::START));
        assert!(!alarm.count(Instant::START, 10_000), "once in a period");
        assert!(alarm.count(Instant::START + PERIOD, 1000), "the next period");
    }

    #[test]
    fn a_threshold_of_zero_switches_it_off() {
        assert!(!ForgeryAlarm::new(0).count(Instant::START, u64::MAX));
    }
}
