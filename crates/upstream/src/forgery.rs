//! Alarm for replies that may be attempts to forge one (RFC 5452 §9).

use core::time::Duration;

/// Period in which replies are counted. It is also the shortest time between two alarms, so that an attacker cannot
/// keep a cache empty.
const PERIOD: Duration = Duration::from_secs(60);

/// Counter of the replies of one upstream that match no query, with an alarm at a threshold.
///
/// An attacker who hits the right port needs 65,536 message IDs. With a threshold of 1,000, the alarm sounds before he
/// has tried 1.5 % of them, and what he may have placed in a cache is removed.
#[derive(Debug)]
pub struct ForgeryAlarm {
    /// Number of replies in a period that raises the alarm; 0 for never.
    threshold: u64,
    started: Duration,
    counted: u64,
}

impl ForgeryAlarm {
    /// Creates an alarm; it is never raised if `threshold` is 0.
    #[must_use]
    pub const fn new(threshold: u64) -> ForgeryAlarm {
        ForgeryAlarm { threshold, started: Duration::ZERO, counted: 0 }
    }

    /// Counts replies. Returns true if this raises the alarm, at most once in a period of a minute.
    pub fn count(&mut self, now: Duration, replies: u64) -> bool {
        if now.saturating_sub(self.started) >= PERIOD {
            (self.started, self.counted) = (now, 0);
        }
        let before = self.counted;
        self.counted = before.saturating_add(replies);
        self.threshold > 0 && before < self.threshold && self.counted >= self.threshold
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alarm_is_raised_once_a_minute() {
        let at = Duration::from_secs;
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
    fn a_threshold_of_zero_switches_it_off() {
        assert!(!ForgeryAlarm::new(0).count(Duration::ZERO, u64::MAX));
    }
}
