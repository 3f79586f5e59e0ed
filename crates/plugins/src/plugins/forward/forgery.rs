//! Replies of upstreams that match no query: counts, and what follows if there are many.
//!
//! Somebody who wants to place a wrong record in the cache sends replies with guessed message IDs (RFC 5452). Each
//! wrong guess that reaches an open port is counted. At a threshold, one guess may have been right before, so the
//! caches above are emptied. Late replies are not guesses: they have the ID of a query that has ended.

use core::time::Duration;
use std::sync::{Arc, Mutex, PoisonError};

use engine::log::Level;
use engine::{Instant, Io, UnwantedReplies};
use upstream::ForgeryAlarm;

use super::exchange::SOURCE;
use super::stanza::{Stanza, Upstream};

/// Outcome of counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// No or few replies without a query.
    Low,
    /// The threshold has been reached now, and the caches have been emptied.
    Raised,
}

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
    pub(super) fn note_failure(&self, now: Duration) {
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner).note_failure(now);
    }

    fn is_raised(&self, now: Duration, guesses: u64) -> bool {
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner).count(now, guesses)
    }
}

impl Stanza {
    /// Counts the replies that came without a query since the last exchange with an upstream, on any worker. Takes no
    /// lock if there are none. Empties the caches above at the threshold.
    pub(super) fn count_unwanted(&self, upstream: &Upstream, io: &dyn Io) -> Suspicion {
        let Some(replies @ [_, id, question]) = upstream.forgery.replies.take() else { return Suspicion::Low };
        for (reason, count) in replies.into_iter().enumerate() {
            io.counters().add(upstream.metrics.unwanted(reason), count);
        }
        let guesses = id.saturating_add(question);
        if guesses == 0 || !upstream.forgery.is_raised(io.now().since(Instant::START), guesses) {
            return Suspicion::Low;
        }
        let (address, entries) = (upstream.address, self.caches.flush());
        let message = format_args!(
            "many replies from upstream {address} match no query, possibly an attempt to forge one: {entries} cached \
             answers dropped"
        );
        io.log(Level::Warning, SOURCE, message);
        Suspicion::Raised
    }
}
