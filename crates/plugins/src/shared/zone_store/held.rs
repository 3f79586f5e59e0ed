//! A zone by name, whose content can be replaced while it is served.

use core::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::{ArcSwapOption, Guard};
use engine::Instant;
use host::invariant::holds;
use wire::{Name, NameRef};
use zone::{Limits, Soa, Zone};

/// Memory for zones. The process provides it from its memory limit.
#[derive(Clone, Copy, Debug)]
pub struct ZoneMemory {
    /// Bytes that a zone may take while a new version of it is built, both versions together.
    pub each: usize,
    /// Returns true if the process has too little memory left for a zone, whoever took it.
    pub is_tight: fn() -> bool,
    /// Called when a zone is refused because it is too large.
    pub note_refusal: fn(),
}

impl ZoneMemory {
    /// Returns the limits for a new version of a zone.
    pub(crate) fn limits(self, held: &Held) -> Limits {
        let used = held.known().map_or(0, |zone| zone.size());
        let ZoneMemory { each, is_tight, note_refusal } = self;
        Limits { memory: each.saturating_sub(used), is_tight, note_refusal, ..Limits::default() }
    }
}

impl Default for ZoneMemory {
    fn default() -> ZoneMemory {
        ZoneMemory { each: usize::MAX, is_tight: || false, note_refusal: || {} }
    }
}

/// A zone that a directive serves, with its current content if there is any.
pub(crate) struct Held {
    /// Name of the zone in lower case.
    pub(crate) origin: Name,
    /// Primaries. A NOTIFY is accepted only from these.
    pub(crate) primaries: Vec<SocketAddr>,
    zone: ArcSwapOption<Zone>,
    expired: AtomicBool,
    /// Time at which a primary last confirmed the content, in nanoseconds of the monotonic clock.
    confirmed: AtomicU64,
    notified: AtomicBool,
    elsewhere: AtomicBool,
}

impl Held {
    /// Creates a zone without content.
    pub(crate) fn new(origin: NameRef<'_>) -> Held {
        Held {
            origin: origin.to_name().into_lowercase(),
            primaries: Vec::new(),
            zone: ArcSwapOption::empty(),
            expired: AtomicBool::default(),
            confirmed: AtomicU64::default(),
            notified: AtomicBool::default(),
            elsewhere: AtomicBool::default(),
        }
    }

    /// Creates a zone without content that is transferred from `primaries`.
    pub(crate) fn of(origin: NameRef<'_>, primaries: Vec<SocketAddr>) -> Held {
        Held { primaries, ..Held::new(origin) }
    }

    /// Returns the content to serve, unless it has expired.
    pub(crate) fn zone(&self) -> Option<Arc<Zone>> {
        let zone: Guard<Option<Arc<Zone>>> = self.zone.load();
        zone.as_ref().filter(|_| !self.is_expired()).cloned()
    }

    /// Returns the content, expired or not.
    pub(crate) fn known(&self) -> Option<Arc<Zone>> {
        self.zone.load_full()
    }

    /// Returns the SOA record of the content, expired or not.
    pub(crate) fn soa(&self) -> Option<Soa> {
        self.zone.load().as_ref()?.soa()
    }

    /// Replaces the content and clears the expiry.
    pub(crate) fn set(&self, zone: Zone) {
        holds(zone.origin() == self.origin.as_ref(), "the content is that of the zone");
        self.zone.store(Some(Arc::new(zone)));
        self.expired.store(false, Ordering::Relaxed);
    }

    /// Serves the content that another one has, if any. Returns true if it has.
    pub(crate) fn copy_content(&self, other: &Held) -> bool {
        holds(self.origin == other.origin, "both have the same zone");
        let known = other.known();
        let is_some = known.is_some();
        self.zone.store(known);
        is_some
    }

    /// Returns true if the file of this zone holds another zone and there is no content from elsewhere.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere.load(Ordering::Relaxed)
    }

    /// Records if the file of this zone holds another zone. The content stays.
    pub(crate) fn set_elsewhere(&self, elsewhere: bool) {
        self.elsewhere.store(elsewhere, Ordering::Relaxed);
    }

    /// Returns true if the content is too old to be served (EXPIRE, RFC 1035 §3.3.13).
    pub(crate) fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    /// Stops serving the content until a new version arrives.
    pub(crate) fn expire(&self) {
        self.expired.store(true, Ordering::Relaxed);
    }

    /// Serves the content again if it had expired, because it is the newest version.
    pub(crate) fn confirm(&self, now: Instant) {
        holds(self.confirmed() <= now, "time does not go backwards");
        self.confirmed.store(now.nanos(), Ordering::Relaxed);
        self.expired.store(false, Ordering::Relaxed);
    }

    /// Returns the time of the last [`Held::confirm`].
    pub(crate) fn confirmed(&self) -> Instant {
        Instant::from_nanos(self.confirmed.load(Ordering::Relaxed))
    }

    /// Records a NOTIFY from `peer`. Returns true if `peer` is one of the primaries.
    pub(crate) fn notify(&self, peer: IpAddr) -> bool {
        let known = self.primaries.iter().any(|primary| primary.ip().to_canonical() == peer.to_canonical());
        self.notified.fetch_or(known, Ordering::Relaxed);
        known
    }

    /// Returns true if a NOTIFY has been recorded since the last call.
    pub(crate) fn take_notified(&self) -> bool {
        self.notified.swap(false, Ordering::Relaxed)
    }
}
