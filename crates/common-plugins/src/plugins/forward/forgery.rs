//! Replies of upstreams that match no query: counts, and whether there are too many.
//!
//! Somebody who wants to place a wrong record in the cache sends replies with guessed message IDs (RFC 5452). Each
//! wrong guess that reaches an open port is counted. At a threshold, one guess may have been right before, so the
//! caches above are emptied. Late replies are not guesses: they have the ID of a query that has ended.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{Instant, UnwantedReplies};
use upstream::ForgeryAlarm;

/// Replies of one upstream that match no query.
pub(super) struct ForgeryWatch {
    replies: Arc<UnwantedReplies>,
    alarm: Mutex<ForgeryAlarm>,
}

impl ForgeryWatch {
    pub(super) fn new(threshold: u64) -> ForgeryWatch {
        ForgeryWatch { replies: Arc::default(), alarm: Mutex::new(ForgeryAlarm::new(threshold)) }
    }

    /// Counters for those who read the sockets.
    pub(super) const fn replies(&self) -> &Arc<UnwantedReplies> {
        &self.replies
    }

    /// Records a failed exchange.
    pub(super) fn note_failure(&self, now: Instant) {
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner).note_failure(now);
    }

    /// Returns true if the guesses so far reach the threshold now.
    pub(super) fn is_raised(&self, now: Instant, guesses: u64) -> bool {
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner).count(now, guesses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raises_the_alarm_at_its_threshold_and_later_after_failed_exchanges() {
        let watch = ForgeryWatch::new(2);
        assert_eq!([1, 1, 1].map(|guesses| watch.is_raised(Instant::START, guesses)), [false, true, false]);
        // The replies of eight failed exchanges may come late. They explain two replies without a query.
        let watch = ForgeryWatch::new(2);
        (0..8).for_each(|_| watch.note_failure(Instant::START));
        assert_eq!([3, 1].map(|guesses| watch.is_raised(Instant::START, guesses)), [false, true]);
    }
}
