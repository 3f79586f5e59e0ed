//! Leases: how long a key lives if nobody keeps it alive.

use std::sync::atomic::{AtomicU64, Ordering};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A lease of etcd, which keys are tied to. Its records share it, so that to prolong it is one store.
#[derive(Debug)]
pub struct Lease {
    id: i64,
    /// When it ends, as far as is known, in nanoseconds since whatever start.
    end_nanos: AtomicU64,
}

impl Lease {
    /// A lease of which nothing is known but its id: it may end at any moment.
    #[must_use]
    pub const fn new(id: i64) -> Lease {
        Lease { id, end_nanos: AtomicU64::new(0) }
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// Says when it ends if nobody prolongs it.
    pub fn set_end(&self, end_nanos: u64) {
        self.end_nanos.store(end_nanos, Ordering::Relaxed);
    }

    /// Whole seconds until it ends.
    #[must_use]
    pub fn left(&self, now_nanos: u64) -> u32 {
        let left = self.end_nanos.load(Ordering::Relaxed).saturating_sub(now_nanos);
        u32::try_from(left / NANOS_PER_SECOND).unwrap_or(u32::MAX)
    }
}

impl PartialEq for Lease {
    fn eq(&self, other: &Lease) -> bool {
        self.id == other.id
    }
}

impl Eq for Lease {}
