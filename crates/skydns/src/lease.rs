//! Leases of etcd: time-limited grants that keys can be tied to.

use std::sync::atomic::{AtomicU64, Ordering};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A lease. Records share it, so renewing it takes a single store.
#[derive(Debug)]
pub struct Lease {
    id: i64,
    /// Known expiry, in nanoseconds since an arbitrary epoch.
    end_nanos: AtomicU64,
}

impl Lease {
    /// Creates a lease with unknown expiry, which counts as expired.
    #[must_use]
    pub const fn new(id: i64) -> Lease {
        Lease { id, end_nanos: AtomicU64::new(0) }
    }

    /// Returns the id.
    #[must_use]
    pub const fn id(&self) -> i64 {
        self.id
    }

    /// Sets the expiry.
    pub(crate) fn set_end(&self, end_nanos: u64) {
        self.end_nanos.store(end_nanos, Ordering::Relaxed);
    }

    /// Returns the remaining time in whole seconds.
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
