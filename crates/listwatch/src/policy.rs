//! What differs between sources: timeouts, and what the source supports.

use core::time::Duration;

use crate::backoff::BackoffRule;
use crate::sources::Order;

/// Settings of a [`Machine`](crate::Machine).
#[derive(Clone, Debug)]
pub struct Policy {
    /// True to try streaming lists before pages.
    pub streams: bool,
    /// How a watch continues after a failure.
    pub resume: Resume,
    /// Order of several sources of the same collection, or `None` for a single one. Needs [`Resume::Check`].
    pub order: Option<Order>,
    /// True if a list counts only when the watch from its position has begun.
    pub counts_from_watch: bool,
    /// True to treat an unknown kind of object as an empty collection.
    pub unknown_is_empty: bool,
    /// True to treat a collection without permission as listed.
    pub forbidden_is_listed: bool,
    /// Longest pause between two parts of a list.
    pub list_silence: Duration,
    /// Longest silence of a watch.
    pub watch_silence: Duration,
    /// Minimum lifetime of a watch. One that ends earlier without an event counts as failed, and after one that ends
    /// earlier with events, the next one waits for the rest of the time: immediate retries would loop.
    pub watch_min: Duration,
    /// Pause before the next attempt at a collection without permission, if it is treated as listed.
    pub forbidden: Duration,
    /// Pause before the next attempt at a kind of object that the source does not know, if it is treated as empty.
    pub absent: Duration,
    /// Longest pause, without jitter, after the position has been lost. The source works, so that a random part of this
    /// is enough to spread the requests of a fleet.
    pub relist: Duration,
    /// Pauses after other failures.
    pub backoff: BackoffRule,
}

/// How a watch continues after a failure that puts its position in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// From its position, if the source has it.
    Check,
    /// With a new list after a broken connection or a silence, from its position after other failures.
    ListIfDoubted,
    /// With a new list after every failure.
    List,
}

impl Default for Policy {
    /// Returns the settings for a Kubernetes API server.
    fn default() -> Policy {
        let seconds = Duration::from_secs;
        Policy {
            streams: true,
            resume: Resume::Check,
            order: None,
            counts_from_watch: false,
            unknown_is_empty: false,
            forbidden_is_listed: false,
            list_silence: seconds(15),
            watch_silence: seconds(50),
            watch_min: seconds(1),
            forbidden: seconds(300),
            absent: seconds(30),
            relist: Duration::from_millis(400),
            backoff: BackoffRule::PartOfOutage { min: Duration::from_millis(400), max: seconds(30), calm: seconds(10) },
        }
    }
}
