//! Health of an upstream.
//!
//! ```text
//!   healthy ──an exchange fails──► suspect ──more than `max_fails` checks fail──► down
//!      ▲                              │                                             │
//!      └──────a check is answered─────┴─────────────────────────────────────────────┘
//! ```
//!
//! A healthy upstream is not checked. Any reply to a check counts as success, whatever its response code.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Health of one upstream, shared by all threads.
#[derive(Debug, Default)]
pub struct Health {
    suspected: AtomicBool,
    failed_probes: AtomicU32,
}

impl Health {
    /// Records a failed exchange. The upstream is checked from now on.
    pub fn suspect(&self) {
        self.suspected.store(true, Ordering::Relaxed);
    }

    /// Returns true if the upstream needs health checks.
    #[must_use]
    pub fn is_suspected(&self) -> bool {
        self.suspected.load(Ordering::Relaxed)
    }

    /// Records a successful health check.
    pub fn probe_answered(&self) {
        self.failed_probes.store(0, Ordering::Relaxed);
        self.suspected.store(false, Ordering::Relaxed);
    }

    /// Records a failed health check.
    pub fn probe_failed(&self) {
        // One atomic step: with a load and a store, a check that is answered in between would be undone, and the
        // upstream would stay down without being checked again.
        let _ = self.failed_probes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |failed| failed.checked_add(1));
    }

    /// Returns true if more than `max_fails` consecutive health checks failed. Always false if `max_fails` is 0.
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

    #[test]
    fn counts_failed_checks_of_several_threads() {
        const EACH: u32 = 100_000;
        let health = Health::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..EACH).for_each(|_| health.probe_failed()));
            }
        });
        assert!(health.is_down(4 * EACH - 1) && !health.is_down(4 * EACH));
    }
}
