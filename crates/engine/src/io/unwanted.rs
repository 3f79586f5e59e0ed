//! Replies of an upstream that match no query.

use core::sync::atomic::{AtomicU64, Ordering};

/// Reason why a reply was ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwanted {
    /// Its query has ended: a second reply, or one after the timeout.
    Late,
    /// No query had its message ID.
    Id,
    /// It has the ID of a query, but is no reply to it.
    Question,
}

/// Number of reasons.
pub const UNWANTED_REASONS: usize = 3;

impl Unwanted {
    /// Names of the reasons for the label of a metric, in the order of [`UnwantedReplies::take`].
    pub const LABELS: [&'static str; UNWANTED_REASONS] = ["late", "id", "question"];
}

/// Replies of an upstream that match no query, counted by those who read its sockets, on all threads.
#[derive(Debug, Default)]
pub struct UnwantedReplies([AtomicU64; UNWANTED_REASONS]);

impl UnwantedReplies {
    /// Counts a reply.
    pub fn add(&self, reason: Unwanted) {
        let at = match reason {
            Unwanted::Late => 0,
            Unwanted::Id => 1,
            Unwanted::Question => 2,
        };
        self.0[at].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the numbers since the last call, by reason. `None` if there were no such replies, which costs no write.
    pub fn take(&self) -> Option<[u64; UNWANTED_REASONS]> {
        let is_any = self.0.iter().any(|count| count.load(Ordering::Relaxed) > 0);
        is_any.then(|| [0, 1, 2].map(|at: usize| self.0[at].swap(0, Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_taken_once() {
        let replies = UnwantedReplies::default();
        assert_eq!(replies.take(), None);
        [Unwanted::Late, Unwanted::Question, Unwanted::Question, Unwanted::Id]
            .into_iter()
            .for_each(|one| replies.add(one));
        assert_eq!((replies.take(), replies.take()), (Some([1, 1, 2]), None));
    }
}
