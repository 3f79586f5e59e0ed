//! Zone contents for zone transfers: the interface between plugins that hold zones and *transfer*, which sends them.

use std::sync::Arc;

use wire::{MessageBuf, Name, NameRef};

/// Plugin whose zones can be transferred.
pub trait ZoneSource: Send + Sync {
    /// Current zones, in lower case.
    fn zones(&self) -> Vec<Name>;

    /// Current serial of a zone (in lower case); `None` if the zone cannot be served.
    fn serial(&self, zone: NameRef<'_>) -> Option<u32>;

    /// Snapshot of a zone (in lower case); `None` if the zone cannot be served.
    fn snapshot(&self, zone: NameRef<'_>) -> Option<Box<dyn ZoneSnapshot>>;

    /// Records that lead from the version `serial` of a zone (in lower case) to the current one: for each version
    /// between them its SOA record and what was removed, then the SOA record of the next and what was added (RFC 1995
    /// §4). `None` if the whole zone must be sent.
    fn changes(&self, _zone: NameRef<'_>, _serial: u32) -> Option<Box<dyn ZoneSnapshot>> {
        None
    }

    /// Returns true if a new version usually costs a client only its changes.
    fn has_changes(&self) -> bool {
        false
    }
}

/// Snapshot of all records of a zone, which is read once from the beginning to the end.
pub trait ZoneSnapshot {
    /// TTL in seconds and uncompressed data of the SOA record.
    fn soa(&self) -> (u32, &[u8]);

    /// Number of records, including the SOA record.
    fn len(&self) -> usize;

    /// Returns true if the zone has no records.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the next records, without the SOA record, until the message is full or no records are left. A full
    /// message is marked as truncated. Returns true if no records are left.
    fn write(&mut self, message: &mut MessageBuf) -> bool;
}

/// Zone sources of the plugins further down the chain. Each one adds itself.
#[derive(Clone, Default)]
pub struct ZoneSources(pub Vec<Arc<dyn ZoneSource>>);
