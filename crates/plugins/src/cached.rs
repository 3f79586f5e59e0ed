//! The cache of a server block, as others may tell of it.

use engine::metrics::Counter;

/// How a cache is used; offered by *cache* as `Arc<CacheStatistics>`.
pub(crate) struct CacheStatistics {
    /// Answers that it may keep.
    pub(crate) capacity: usize,
    /// Questions that it answered.
    pub(crate) hits: Vec<Counter>,
    /// Questions that it did not.
    pub(crate) misses: Vec<Counter>,
    /// Entries that it took.
    pub(crate) insertions: Vec<Counter>,
    /// Entries that went so that others had room.
    pub(crate) evictions: Vec<Counter>,
}
