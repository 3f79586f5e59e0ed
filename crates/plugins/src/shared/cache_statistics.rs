//! Statistics of a server block's cache for other plugins.

use metrics::Counter;

/// Usage of a cache. *cache* publishes it as `Arc<CacheStatistics>`.
pub(crate) struct CacheStatistics {
    /// Maximum number of cached answers.
    pub(crate) capacity: usize,
    /// Queries answered from the cache.
    pub(crate) hits: Vec<Counter>,
    /// Queries not found in the cache.
    pub(crate) misses: Vec<Counter>,
    /// Entries inserted.
    pub(crate) insertions: Vec<Counter>,
    /// Entries evicted to make room for others.
    pub(crate) evictions: Vec<Counter>,
}
