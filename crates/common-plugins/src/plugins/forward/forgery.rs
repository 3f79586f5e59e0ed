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
