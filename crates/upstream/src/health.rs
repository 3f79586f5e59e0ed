//! Whether an upstream is well.
//!
//! ```text
//!   well ──an exchange fails──► suspected ──more than `max_fails` probes fail──► down
//!    ▲                              │                                              │
//!    └──────────a probe is answered─┴──────────────────────────────────────────────┘
//! ```
//!
//! Nothing is probed while all is well, and any answer to a probe is a good one: what it says is not asked.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Whether one upstream is well, for all threads.
#[derive(Debug, Default)]
pub struct Health {
    suspected: AtomicBool,
    failed_probes: AtomicU32,
}

impl Health {
    /// An exchange with it failed: it is probed from now on.
    pub fn suspect(&self) {
        self.suspected.store(true, Ordering::Relaxed);
    }

    /// Whether it is to be probed.
    #[must_use]
    pub fn is_suspected(&self) -> bool {
        self.suspected.load(Ordering::Relaxed)
    }

    /// A probe was answered.
    pub fn probe_answered(&self) {
        self.failed_probes.store(0, Ordering::Relaxed);
        self.suspected.store(false, Ordering::Relaxed);
    }

    /// A probe was not answered.
    pub fn probe_failed(&self) {
        let failed = self.failed_probes.load(Ordering::Relaxed);
        self.failed_probes.store(failed.saturating_add(1), Ordering::Relaxed);
    }

    /// Whether it is down: more probes in a row than `max_fails` failed. With 0 it never is.
    #[must_use]
    pub fn is_down(&self, max_fails: u32) -> bool {
        max_fails > 0 && self.failed_probes.load(Ordering::Relaxed) > max_fails
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_down_after_more_failures_than_max_fails() {
        let health = Health::default();
        health.suspect();
        for _ in 0..2 {
            health.probe_failed();
        }
        assert!(!health.is_down(2) && health.is_suspected());
        health.probe_failed();
        assert!(health.is_down(2) && !health.is_down(0));
        health.probe_answered();
        assert!(!health.is_down(2) && !health.is_suspected());
    }
}
