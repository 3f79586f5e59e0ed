//! What a plugin has once for each site of its server block: its counters.

use engine::Query;
use engine::setup::{BlockInfo, SiteInfo};

/// A thing for each site.
pub(crate) struct PerSite<T> {
    first: usize,
    things: Vec<T>,
}

impl<T> PerSite<T> {
    /// One thing for each site of a block.
    pub(crate) fn new(block: &BlockInfo, make: impl FnMut(&SiteInfo) -> T) -> PerSite<T> {
        let first = block.sites.first().map_or(0, |site| site.index);
        PerSite { first, things: block.sites.iter().map(make).collect() }
    }

    /// That of the site which serves a query.
    pub(crate) fn of(&self, query: &Query) -> Option<&T> {
        query.site.checked_sub(self.first).and_then(|at| self.things.get(at))
    }
}
