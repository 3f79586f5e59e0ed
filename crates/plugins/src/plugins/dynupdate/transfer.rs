//! Transfers of dynamic zones, whole and incremental.

use std::sync::Arc;

use engine::{ZoneSnapshot, ZoneSource};
use wire::{MessageBuf, Name, NameRef};
use zone::Zone;
use zone::update::ChangeWriter;

use super::zone::DynamicZone;
use crate::shared::zone_store::snapshot;

/// Dynamic zones of a server block, for *transfer*.
pub(super) struct DynamicSource(pub(super) Vec<Arc<DynamicZone>>);

impl DynamicSource {
    fn find(&self, zone: NameRef<'_>) -> Option<&Arc<DynamicZone>> {
        self.0.iter().find(|known| known.held.origin.as_ref() == zone)
    }
}

impl ZoneSource for DynamicSource {
    fn zones(&self) -> Vec<Name> {
        self.0.iter().map(|zone| zone.held.origin.clone()).collect()
    }

    fn serial(&self, zone: NameRef<'_>) -> Option<u32> {
        Some(self.find(zone)?.held.soa()?.serial)
    }

    fn snapshot(&self, zone: NameRef<'_>) -> Option<Box<dyn ZoneSnapshot>> {
        Some(snapshot(self.find(zone)?.held.zone()?))
    }

    fn changes(&self, zone: NameRef<'_>, serial: u32) -> Option<Box<dyn ZoneSnapshot>> {
        let known = self.find(zone)?;
        let (zone, history) = (known.held.zone()?, known.history());
        // Longer differences than the zone are not worth it (RFC 1995 §5).
        let changes = history.since(serial, known.bytes())?;
        let is_newest = changes.back().is_some_and(|last| zone.soa().is_some_and(|soa| soa.serial == last.to));
        is_newest.then(|| Box::new(Changes { zone, writer: ChangeWriter::new(changes) }) as Box<dyn ZoneSnapshot>)
    }

    fn has_changes(&self) -> bool {
        true
    }
}

/// Changes that have been partly written.
struct Changes {
    zone: Arc<Zone>,
    writer: ChangeWriter,
}

impl ZoneSnapshot for Changes {
    fn soa(&self) -> (u32, &[u8]) {
        self.zone.soa_set().map_or((0, &[]), |set| (set.ttl, set.first()))
    }

    fn len(&self) -> usize {
        self.writer.len() + 1
    }

    fn write(&mut self, message: &mut MessageBuf) -> bool {
        self.writer.write(message)
    }
}
