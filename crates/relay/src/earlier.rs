//! Changes before the first list of a relay, which the API server still has.
//!
//! When all relays restart, their nodes ask for the changes after versions that the new relays have never seen. Each
//! node would list everything. Instead, the relay asks the API server once for these changes, with a watch from the
//! lowest version, and puts them before its history. Meanwhile the subscribers wait.

use core::time::Duration;
use std::collections::BTreeSet;

use host::Instant;
use host::invariant::holds;

use crate::encode::EventType;
use crate::history::{Change, HISTORY_BYTES_MAX};
use crate::object::{ObjectError, Stored};
use crate::table::Kind;

/// Time from the first subscriber that waits until the changes are requested: others, with lower versions, may come.
pub const EARLIER_GATHER: Duration = Duration::from_millis(500);
/// Longest time for which subscribers wait for the changes. Nodes ask another relay after a silence of 3 s, and have
/// the answer when they come back.
pub const EARLIER_MAX: Duration = Duration::from_secs(6);
/// Time after the first list in which the changes are requested. Later, almost no subscriber has such an old version.
const EARLIER_OPEN: Duration = Duration::from_secs(60);
/// Maximum number of requests: from the lowest version, and if the API server does not have it any more, from the
/// median. A single node that was away for an hour must not make all others list.
const TRIES: u8 = 2;
/// Maximum number of different versions that are kept.
const WANTED_MAX: usize = 4096;
/// Maximum size of the changes, in bytes: the half of a history.
const BYTES_MAX: usize = HISTORY_BYTES_MAX / 2;

/// State of the request for earlier changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// No request is in flight. A subscriber that needs the changes causes one.
    #[default]
    Open,
    /// A request is in flight.
    Reading,
    /// No request follows, and no subscriber waits.
    Closed,
}

/// Versions before the history that subscribers have asked for.
#[derive(Default)]
pub(crate) struct Wanted {
    state: State,
    versions: BTreeSet<u64>,
    /// Time of the first list, and of the first subscriber that waits.
    listed: Option<Instant>,
    asked: Option<Instant>,
    tries: u8,
}

impl Wanted {
    /// Records a version that a subscriber has asked for.
    pub(crate) fn note(&mut self, version: u64) {
        if self.is_open() && self.versions.len() < WANTED_MAX {
            self.versions.insert(version);
        }
    }

    /// Returns true if a subscriber can wait for earlier changes.
    pub(crate) fn is_open(&self) -> bool {
        self.state != State::Closed
    }

    /// Records that a subscriber waits.
    pub(crate) fn wait(&mut self, now: Instant) {
        holds(self.is_open(), "a subscriber waits for changes that can still come");
        self.asked.get_or_insert(now);
    }

    /// Records the first list.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.listed.get_or_insert(now);
    }

    /// Returns the version after which changes are requested now, below `start`.
    pub(crate) fn take(&mut self, start: u64, now: Instant) -> Option<u64> {
        let is_due = self.asked.is_some_and(|asked| now.since(asked) >= EARLIER_GATHER);
        if self.state != State::Open || !is_due {
            return None;
        }
        let count = self.versions.range(..start).count();
        let number = if self.tries == 0 { 0 } else { count / 2 };
        let version = self.versions.range(..start).nth(number).copied()?;
        (self.state, self.tries) = (State::Reading, self.tries + 1);
        holds(self.tries <= TRIES, "the number of requests for earlier changes is bounded");
        Some(version)
    }

    /// Allows another request after a failed one. Returns false if there have been enough.
    pub(crate) fn try_again(&mut self) -> bool {
        holds(self.state == State::Reading, "a request that failed was made");
        self.state = State::Open;
        self.tries < TRIES
    }

    /// Ends all waiting. Returns false if it was over.
    pub(crate) fn close(&mut self) -> bool {
        let was_open = self.is_open();
        (self.state, self.versions) = (State::Closed, BTreeSet::new());
        was_open
    }

    /// Returns true if the time is over.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        let is_over = |since: Option<Instant>, max| since.is_some_and(|since| now.since(since) >= max);
        self.is_open()
            && (is_over(self.asked, EARLIER_MAX) || self.asked.is_none() && is_over(self.listed, EARLIER_OPEN))
    }
}

/// Changes from a version up to the first list of a relay, as a watch of the API server sends them.
pub struct Earlier {
    pub(crate) kind: Kind,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) changes: Vec<Change>,
    version: u64,
    bytes: usize,
    has_failed: bool,
}

impl Earlier {
    pub(crate) const fn new(kind: Kind, from: u64, to: u64) -> Earlier {
        Earlier { kind, from, to, changes: Vec::new(), version: from, bytes: 0, has_failed: false }
    }

    /// Returns the version from which the watch begins.
    #[must_use]
    pub const fn from(&self) -> u64 {
        self.from
    }

    /// Adds an event of the watch.
    ///
    /// # Errors
    /// An object that cannot be stored, so that a subscriber would lack it.
    pub fn add(&mut self, what: EventType, object: &[u8]) -> Result<(), ObjectError> {
        let object = Stored::new(self.kind, object)?;
        let version = object.version;
        if version > self.version && version <= self.to && !self.is_too_large() {
            let change = Change { what, version, object: object.into(), previous: None };
            self.bytes += change.size();
            self.changes.push(change);
        }
        self.version = self.version.max(version);
        Ok(())
    }

    /// Records a bookmark of the watch: everything up to its version has been sent.
    pub fn note_bookmark(&mut self, version: u64) {
        self.version = self.version.max(version);
    }

    /// Records that something of the watch was lost.
    pub const fn fail(&mut self) {
        self.has_failed = true;
    }

    /// Returns true if all changes are known. An event of a later version shows it, because a watch has them in order.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.version >= self.to && !self.is_too_large() && !self.has_failed
    }

    /// Returns true if there are more changes than a relay keeps.
    #[must_use]
    pub const fn is_too_large(&self) -> bool {
        self.bytes > BYTES_MAX
    }
}
