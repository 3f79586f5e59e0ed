//! Identities of the parts of a generation. Each is an index of its own type, so that none is used for another.

/// Listener: an index in [`Generation::listeners`](crate::Generation::listeners).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListenerId(pub usize);

/// Site: an index in [`Generation::sites`](crate::Generation::sites).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SiteId(pub usize);

/// Server block: an index in [`Generation::blocks`](crate::Generation::blocks).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockId(pub usize);

impl SiteId {
    /// Returns the position among consecutive sites that start with `first`; `None` if this site precedes them.
    #[must_use]
    pub const fn position_from(self, first: SiteId) -> Option<usize> {
        self.0.checked_sub(first.0)
    }
}
