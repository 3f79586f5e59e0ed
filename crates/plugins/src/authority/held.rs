//! A zone by its name, whatever stands for it at the moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use wire::{Name, NameRef};
use zone::Zone;

/// A zone that a directive serves, as far as it has it.
pub(crate) struct Held {
    /// Its name, in lower case.
    pub(crate) origin: Name,
    zone: ArcSwapOption<Zone>,
    expired: AtomicBool,
}

impl Held {
    /// A zone that is not there yet.
    pub(crate) fn new(origin: NameRef<'_>) -> Held {
        let origin = origin.to_name().into_lowercase();
        Held { origin, zone: ArcSwapOption::empty(), expired: AtomicBool::new(false) }
    }

    /// What is served, unless it has expired.
    pub(crate) fn zone(&self) -> Option<Arc<Zone>> {
        let zone: Guard<Option<Arc<Zone>>> = self.zone.load();
        zone.as_ref().filter(|_| !self.is_expired()).cloned()
    }

    /// The serial of what is there, expired or not.
    pub(crate) fn serial(&self) -> Option<u32> {
        self.zone.load().as_ref()?.soa().map(|soa| soa.serial)
    }

    /// Serves another version.
    pub(crate) fn set(&self, zone: Zone) {
        self.zone.store(Some(Arc::new(zone)));
        self.expired.store(false, Ordering::Relaxed);
    }

    /// Whether it is too old to be served (RFC 1035 §3.3.13, EXPIRE).
    pub(crate) fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }
}
