//! Health of a watch. It reports each new reason of a failure once instead of each attempt.

use core::time::Duration;
use std::collections::HashSet;

use host::Instant;
use host::invariant::holds;

use crate::event::Failure;

/// Health of a list and its watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Not tried yet.
    #[default]
    New,
    /// No failure since the last success.
    Well,
    /// Failing.
    Failing {
        /// Time of the first failure.
        since: Instant,
        /// Reasons that have been logged. There are only as many as the source has reasons and servers.
        logged: HashSet<(usize, &'static str)>,
    },
}

impl Health {
    /// Records a failure and returns true if it is to be logged. A connection error that is gone at the next attempt is
    /// not logged, since some connections break every few minutes: after a success, a transient failure is logged from
    /// the second attempt on.
    pub(crate) fn failed(&mut self, failure: &Failure, now: Instant) -> bool {
        let is_first = matches!(self, Health::Well);
        if !self.is_failing() {
            *self = Health::Failing { since: now, logged: HashSet::new() };
        }
        let Health::Failing { logged, since } = self else { return holds(false, "a failure makes the health failing") };
        holds(*since <= now, "an outage begins before it ends");
        !(is_first && failure.is_transient) && logged.insert(failure.reason)
    }

    /// Returns true if the last attempt failed.
    #[must_use]
    pub(crate) fn is_failing(&self) -> bool {
        matches!(self, Health::Failing { .. })
    }

    /// Records a success. Returns the duration of the outage if one of its failures was logged.
    pub(crate) fn well(&mut self, now: Instant) -> Option<Duration> {
        match core::mem::replace(self, Health::Well) {
            Health::Failing { since, logged } if !logged.is_empty() => Some(now.since(since)),
            _ => None,
        }
    }
}
