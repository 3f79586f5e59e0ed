//! Per-site state of a plugin: its counters for each site of the server block.

use config::setup::{BlockInfo, SiteInfo};
use engine::{Query, SiteId};

/// One value per site.
pub struct PerSite<T> {
    /// First site of the block. The sites of a block have consecutive ids.
    first: SiteId,
    values: Vec<T>,
}

impl<T> PerSite<T> {
    /// Creates a value for each site of a block.
    pub fn new(block: &BlockInfo, make: impl FnMut(&SiteInfo) -> T) -> PerSite<T> {
        let first = block.sites.first().map(|site| site.id).unwrap_or_default();
        PerSite { first, values: block.sites.iter().map(make).collect() }
    }

    /// Returns the value of the site that serves a query.
    pub fn of(&self, query: &Query) -> Option<&T> {
        query.site.position_from(self.first).and_then(|at| self.values.get(at))
    }
}
