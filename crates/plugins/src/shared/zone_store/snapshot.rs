//! Zone transfers: all records of a zone, message by message, for *transfer*.

use std::sync::Arc;

use config::setup::Setup;
use engine::{ZoneSnapshot, ZoneSource, ZoneSources};
use host::invariant::holds;
use wire::{Class, MessageBuf, Name, NameRef, Owner, Section};
use zone::{Soa, Zone};

use super::Directory;

/// Publishes the zones of a directive to the plugins above it.
pub(crate) fn offer(zones: &Directory, setup: &mut Setup<'_>) {
    let mut sources = setup.below.find::<ZoneSources>().unwrap_or_default();
    sources.0.push(Arc::new(Source(Arc::clone(zones))));
    setup.below.provide(sources);
}

/// Returns all records of a zone.
pub(crate) fn snapshot(zone: Arc<Zone>) -> Box<dyn ZoneSnapshot> {
    Box::new(Snapshot { zone, set: 0, record: 0 })
}

struct Source(Directory);

impl ZoneSource for Source {
    fn zones(&self) -> Vec<Name> {
        self.0.load().iter().map(|(zone, _)| zone.to_name()).collect()
    }

    fn serial(&self, zone: NameRef<'_>) -> Option<u32> {
        let zone = self.0.load().get(zone)?.zone()?;
        Soa::read(zone.soa_set()?.first()).map(|soa| soa.serial)
    }

    fn snapshot(&self, zone: NameRef<'_>) -> Option<Box<dyn ZoneSnapshot>> {
        let zone = self.0.load().get(zone)?.zone()?;
        Some(snapshot(zone))
    }
}

/// A zone that has been partly written.
struct Snapshot {
    zone: Arc<Zone>,
    /// Position of the next record set.
    set: usize,
    /// Number of records of that set that have been written.
    record: usize,
}

impl ZoneSnapshot for Snapshot {
    fn soa(&self) -> (u32, &[u8]) {
        self.zone.soa_set().map_or((0, &[]), |set| (set.ttl, set.first()))
    }

    fn len(&self) -> usize {
        self.zone.len()
    }

    fn write(&mut self, message: &mut MessageBuf) -> bool {
        for (after, owner, set) in self.zone.sets_from(self.set) {
            holds(after > self.set, "a transfer goes on to the next record set");
            holds(self.record <= set.data().count(), "the records that were written are those of the set");
            for rdata in set.data().skip(self.record) {
                let fixed = (set.rtype, Class::IN, set.ttl);
                if message.push_data(Section::Answer, Owner::Name(owner.as_ref()), fixed, rdata).is_none() {
                    return false;
                }
                self.record += 1;
            }
            (self.set, self.record) = (after, 0);
        }
        true
    }
}
