//! Per-site state of a plugin: its counters for each site of the server block.

use config::setup::{BlockInfo, SiteInfo};
use engine::Query;

/// One value per site.
pub(crate) struct PerSite<T> {
    first: usize,
    things: Vec<T>,
}

impl<T> PerSite<T> {
    /// Creates a value for each site of a block.
    pub(crate) fn new(block: &BlockInfo, make: impl FnMut(&SiteInfo) -> T) -> PerSite<T> {
        let first = block.sites.first().map_or(0, |site| site.index);
        PerSite { first, things: block.sites.iter().map(make).collect() }
    }

    /// Returns the value of the site that serves a query.
    pub(crate) fn of(&self, query: &Query) -> Option<&T> {
        query.site.checked_sub(self.first).and_then(|at| self.things.get(at))
    }
}
