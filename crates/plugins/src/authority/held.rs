//! A zone by its name, whatever stands for it at the moment.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use wire::{Name, NameRef};
use zone::{Soa, Zone};

/// A zone that a directive serves, as far as it has it.
pub(crate) struct Held {
    /// Its name, in lower case.
    pub(crate) origin: Name,
    /// Those whose word that it has changed is believed.
    pub(crate) primaries: Vec<SocketAddr>,
    zone: ArcSwapOption<Zone>,
    expired: AtomicBool,
    notified: AtomicBool,
    elsewhere: AtomicBool,
}

impl Held {
    /// A zone that is not there yet.
    pub(crate) fn new(origin: NameRef<'_>) -> Held {
        Held {
            origin: origin.to_name().into_lowercase(),
            primaries: Vec::new(),
            zone: ArcSwapOption::empty(),
            expired: AtomicBool::default(),
            notified: AtomicBool::default(),
            elsewhere: AtomicBool::default(),
        }
    }

    /// A zone that is not there yet, and will come from these.
    pub(crate) fn of(origin: NameRef<'_>, primaries: Vec<SocketAddr>) -> Held {
        Held { primaries, ..Held::new(origin) }
    }

    /// What is served, unless it has expired.
    pub(crate) fn zone(&self) -> Option<Arc<Zone>> {
        let zone: Guard<Option<Arc<Zone>>> = self.zone.load();
        zone.as_ref().filter(|_| !self.is_expired()).cloned()
    }

    /// What is there, expired or not.
    pub(crate) fn known(&self) -> Option<Arc<Zone>> {
        self.zone.load_full()
    }

    /// Serial and times of what is there, expired or not.
    pub(crate) fn soa(&self) -> Option<Soa> {
        self.zone.load().as_ref()?.soa()
    }

    /// Serves another version.
    pub(crate) fn set(&self, zone: Zone) {
        self.zone.store(Some(Arc::new(zone)));
        self.expired.store(false, Ordering::Relaxed);
    }

    /// Whether the file that it should come from has another zone, and nothing else has come.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere.load(Ordering::Relaxed)
    }

    /// Whether the file that it should come from has another zone. What is served stays.
    pub(crate) fn set_elsewhere(&self, elsewhere: bool) {
        self.elsewhere.store(elsewhere, Ordering::Relaxed);
    }

    /// Whether it is too old to be served (RFC 1035 §3.3.13, EXPIRE).
    pub(crate) fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    /// Serves it no more until another version comes.
    pub(crate) fn expire(&self) {
        self.expired.store(true, Ordering::Relaxed);
    }

    /// Serves it again: it is still the newest.
    pub(crate) fn confirm(&self) {
        self.expired.store(false, Ordering::Relaxed);
    }

    /// Takes word from `peer` that it has changed; says whether that is one of its primaries.
    pub(crate) fn notify(&self, peer: IpAddr) -> bool {
        let known = self.primaries.iter().any(|primary| primary.ip().to_canonical() == peer.to_canonical());
        self.notified.fetch_or(known, Ordering::Relaxed);
        known
    }

    /// Whether word has come that it has changed, since this was last asked.
    pub(crate) fn take_notified(&self) -> bool {
        self.notified.swap(false, Ordering::Relaxed)
    }
}
