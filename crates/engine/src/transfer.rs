//! Zones as a whole: what a directive that has some offers to those above it that send them elsewhere.

use std::sync::Arc;

use wire::{MessageBuf, Name, NameRef};

/// A directive whose zones can be transferred.
pub trait ZoneSource: Send + Sync {
    /// The zones that it has at the moment, in lower case.
    fn zones(&self) -> Vec<Name>;

    /// The serial of the zone (in lower case) at the moment; `None` if it cannot be served.
    fn serial(&self, zone: NameRef<'_>) -> Option<u32>;

    /// The zone (in lower case) as it is at the moment; `None` if it cannot be served.
    fn snapshot(&self, zone: NameRef<'_>) -> Option<Box<dyn ZoneSnapshot>>;
}

/// All records of a zone, as they were at one moment; what has been written is not written again.
pub trait ZoneSnapshot {
    /// The data of the SOA record, names in full, and its time to live in seconds.
    fn soa(&self) -> (u32, &[u8]);

    /// How many records there are, the SOA record among them.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends records but for SOA, until none is left or the next does not fit, which marks the message truncated; says
    /// whether none is left.
    fn write(&mut self, message: &mut MessageBuf) -> bool;
}

/// What the directives below offer: each adds itself.
#[derive(Clone, Default)]
pub struct ZoneSources(pub Vec<Arc<dyn ZoneSource>>);
