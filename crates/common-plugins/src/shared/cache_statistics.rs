//! Statistics of a server block's cache for other plugins.

use metrics::Counter;

/// Usage of a cache. *cache* publishes it as `Arc<CacheStatistics>`.
pub struct CacheStatistics {
    /// Maximum number of cached answers.
    pub capacity: usize,
    /// Queries answered from the cache.
    pub hits: Vec<Counter>,
    /// Queries not found in the cache.
    pub misses: Vec<Counter>,
    /// Entries inserted.
    pub insertions: Vec<Counter>,
    /// Entries evicted to make room for others.
    pub evictions: Vec<Counter>,
}
