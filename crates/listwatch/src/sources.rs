//! Ordered sources of a collection: relays first, then the server whose objects they have.
//!
//! Relays and the server share the history of the collection, so that a watch continues from its position at any of
//! them. Each of them can be behind: one that does not have a position says so ([`FailureKind::Ahead`]), and the next
//! one is asked. A list is requested with the known position as its lower bound. Thus a replica never goes back,
//! whichever source it uses.
//!
//! Storage that was restored from a backup is the exception, because all sources are behind then. Only a consistent
//! read of the server proves it ([`Request::Confirm`](crate::Request::Confirm)), or a relay that has seen it.

use core::time::Duration;

use host::Instant;
use host::invariant::holds;

use crate::event::{Failure, FailureKind};

/// Order in which sources are asked. A fleet of replicas follows it, so that each change of the source is spread.
#[derive(Clone, Debug)]
pub struct Order {
    /// Number of relays, at least one. They have the numbers from 0 on. A relay may be several behind one address.
    pub relays: usize,
    /// True if the server is asked while no relay works. Its number is the one after the relays.
    pub has_server: bool,
    /// Longest pause before the next relay is asked, without jitter, until each of them has failed.
    pub reconnect: Duration,
    /// Longest silence of a relay. It doubles each time that all relays were silent, up to
    /// [`Policy::watch_silence`](crate::Policy::watch_silence).
    pub silence: Duration,
    /// Time without a relay from which the server is asked, without jitter.
    pub patience: Duration,
    /// Longest additional time before the server is asked, and before a replica that uses it looks for a relay.
    pub spread: Duration,
    /// Time for which all sources were behind after which the server is asked whether its storage was restored, without
    /// jitter.
    pub behind: Duration,
}

impl Order {
    /// Returns the pause before a replica that uses the server looks for a relay. `jitter` is a random number from 0 to
    /// 1.
    #[must_use]
    pub fn look(&self, jitter: f64) -> Duration {
        self.reconnect.max(self.spread.mul_f64(jitter))
    }
}

/// Choice of the source.
#[derive(Debug)]
pub(crate) struct Sources {
    order: Order,
    /// Number of the current source.
    at: usize,
    /// Number of the last relay.
    relay: usize,
    /// Number of failures since a source last worked.
    failures: usize,
    /// Number of them that were a silence of a relay.
    silences: usize,
    /// Time from which the server is asked, if no relay works.
    fallback: Option<Instant>,
    /// Time from which the server is asked whether its storage was restored, if all sources are behind.
    confirmation: Option<Instant>,
    /// True if the storage was restored according to the current source, so that its next list has no lower bound.
    is_restored: bool,
    /// True until a list of the server is complete, because nothing says what a list of a relay must have reached.
    needs_server: bool,
}

/// Request to make after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The same request, at the current source.
    Repeat,
    /// The question whether the storage was restored, at the server.
    Confirm,
}

impl Sources {
    pub(crate) fn new(order: Order) -> Sources {
        holds(order.relays > 0, "there is a relay");
        let (at, relay, failures, silences) = (0, 0, 0, 0);
        let (fallback, confirmation, is_restored, needs_server) = (None, None, false, false);
        Sources { order, at, relay, failures, silences, fallback, confirmation, is_restored, needs_server }
    }

    /// Starts at the server and returns true, if there is one: only its lists are not older than what is known.
    pub(crate) const fn start_at_server(&mut self) -> bool {
        self.needs_server = self.order.has_server;
        if self.needs_server {
            self.at = self.order.relays;
        }
        self.needs_server
    }

    /// Returns the number of the current source.
    pub(crate) const fn current(&self) -> usize {
        self.at
    }

    pub(crate) const fn is_at_relay(&self) -> bool {
        self.at < self.order.relays
    }

    /// Returns true if no other kind of source decides: at the server, or without it.
    pub(crate) const fn is_last(&self) -> bool {
        !self.is_at_relay() || !self.order.has_server
    }

    /// Returns true if the next list has no lower bound.
    pub(crate) const fn is_restored(&self) -> bool {
        self.is_restored
    }

    /// Records that the current source has shown that its storage was restored.
    pub(crate) const fn restored(&mut self) {
        self.is_restored = true;
    }

    /// Returns the longest silence of a watch of a relay.
    pub(crate) fn silence(&self, silence_max: Duration) -> Duration {
        let doublings = (self.silences / self.order.relays.max(1)).min(16);
        let silence = self.order.silence.saturating_mul(1 << doublings);
        silence.min(silence_max.max(self.order.silence))
    }

    /// Records that the current source has delivered something.
    pub(crate) fn worked(&mut self) {
        (self.failures, self.silences, self.confirmation) = (0, 0, None);
        (self.is_restored, self.needs_server) = (false, false);
        if self.is_at_relay() {
            self.fallback = None;
        }
    }

    /// Records that the server has the position.
    pub(crate) const fn confirmed(&mut self) {
        self.confirmation = None;
    }

    /// Returns the pause after a failure. `backoff` is the pause of a single source.
    pub(crate) fn pause(&self, failure: &Failure, backoff: Duration, jitter: f64) -> Duration {
        // A relay that is behind asks to come back, and the next one may not be behind.
        let asks_for_time = failure.retry_after.is_some() && failure.kind != FailureKind::Ahead;
        let knows_others = self.is_at_relay() && self.failures < self.order.relays;
        if knows_others && !asks_for_time { self.order.reconnect.mul_f64(jitter) } else { backoff }
    }

    /// Chooses the source after a failure.
    pub(crate) fn failed(&mut self, kind: FailureKind, now: Instant, jitter: f64) -> Next {
        let Order { relays, has_server, patience, spread, behind, .. } = self.order;
        let was_at_relay = self.is_at_relay();
        self.is_restored = false;
        self.failures = self.failures.saturating_add(1);
        self.silences = self.silences.saturating_add(usize::from(was_at_relay && kind == FailureKind::Silent));
        if was_at_relay {
            self.fallback.get_or_insert(now + patience + spread.mul_f64(jitter));
        }
        if kind == FailureKind::Ahead {
            self.confirmation.get_or_insert(now + behind + spread.mul_f64(jitter));
        }
        let is_due = |time: Option<Instant>| has_server && time.is_some_and(|time| time <= now);
        // The server that did not answer this question is asked again after a relay.
        let confirms = is_due(self.confirmation) && (was_at_relay || kind == FailureKind::Ahead);
        if self.needs_server || confirms || was_at_relay && is_due(self.fallback) {
            self.at = relays;
        } else {
            self.relay = (self.relay + 1) % relays.max(1);
            self.at = self.relay;
        }
        self.check();
        if confirms { Next::Confirm } else { Next::Repeat }
    }

    /// Returns to the relay that was found while the server was used.
    pub(crate) fn return_to_relay(&mut self) {
        holds(!self.is_at_relay(), "a watch returns from the server");
        self.at = self.relay;
        self.check();
    }

    fn check(&self) {
        let Order { relays, has_server, .. } = self.order;
        holds(self.at < relays + usize::from(has_server), "the current source is one of the order");
        holds(self.relay < relays, "the last relay is one of the order");
        holds(has_server || !self.needs_server, "a server is needed if there is one");
        holds(self.silences <= self.failures, "each silence is a failure");
    }
}
