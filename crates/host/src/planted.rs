//! Bugs that the simulation of the whole answer path plants, to show that it finds them.
//!
//! Each of them has happened, here or in another server. Without the feature `planted`, [`is_planted`] is false at
//! compile time, and a program contains none of them.

/// Bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A watch that has stalled is never opened again.
    DeafWatch,
    /// A list does not remove what was deleted during an outage.
    KeepsDeleted,
    /// A later list may come from the cache of a server that lags.
    OldList,
    /// The endpoints of a slice stay after it was deleted.
    GhostEndpoints,
    /// The same watch is repeated after its position has expired.
    IgnoresExpiry,
    /// A position from before a backup was restored is trusted, whatever the version of the storage is.
    TrustsPosition,
    /// Events that the API server leaves out are not missed.
    TrustsEvents,
    /// A request that failed is repeated without a pause.
    RetriesAtOnce,
    /// Deletions are not in the snapshot.
    UnwrittenDeletion,
    /// A name is denied before the objects that decide about it are known.
    DeniesUnknown,
    /// Expired answers are served without a limit.
    StaleForever,
    /// The waiters of a shared exchange do not get its outcome.
    LostWakeUp,
    /// The key of a query that has ended is used again.
    ReusedKey,
    /// A reply is accepted whatever its question is.
    AnyQuestion,
    /// A query that is refused keeps its slot.
    KeepsSlot,
    /// A truncated reply is passed on over a stream.
    KeepsTruncated,
}

impl Bug {
    /// All bugs.
    pub const ALL: [Bug; 16] = [
        Bug::DeafWatch,
        Bug::KeepsDeleted,
        Bug::OldList,
        Bug::GhostEndpoints,
        Bug::IgnoresExpiry,
        Bug::TrustsPosition,
        Bug::TrustsEvents,
        Bug::RetriesAtOnce,
        Bug::UnwrittenDeletion,
        Bug::DeniesUnknown,
        Bug::StaleForever,
        Bug::LostWakeUp,
        Bug::ReusedKey,
        Bug::AnyQuestion,
        Bug::KeepsSlot,
        Bug::KeepsTruncated,
    ];
}

#[cfg(feature = "planted")]
thread_local! {
    static PLANTED: core::cell::Cell<Option<Bug>> = const { core::cell::Cell::new(None) };
}

/// Plants a bug on this thread, or none.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Returns true if the bug is planted on this thread.
#[cfg(feature = "planted")]
#[must_use]
pub fn is_planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Returns false.
#[cfg(not(feature = "planted"))]
#[must_use]
pub const fn is_planted(_: Bug) -> bool {
    false
}
