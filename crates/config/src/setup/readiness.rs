//! Readiness of a generation's plugins.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Readiness of the plugins of a generation.
#[derive(Default)]
pub struct Readiness {
    members: Mutex<Vec<Member>>,
    ending: AtomicBool,
}

struct Member {
    name: &'static str,
    test: Box<dyn Fn() -> bool + Send + Sync>,
    was_ready: bool,
}

impl Readiness {
    /// Adds a readiness check.
    pub fn add(&self, name: &'static str, test: impl Fn() -> bool + Send + Sync + 'static) {
        self.lock().push(Member { name, test: Box::new(test), was_ready: false });
    }

    /// Returns the names of the plugins that are not ready, sorted and without duplicates.
    ///
    /// A plugin that was ready once counts as ready from then on, unless `again` is true.
    #[must_use]
    pub fn unready(&self, again: bool) -> Vec<&'static str> {
        let mut names = Vec::new();
        for member in &mut *self.lock() {
            if !member.was_ready || again {
                member.was_ready = (member.test)();
            }
            if !member.was_ready {
                names.push(member.name);
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Records that the process terminates.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Returns true if the process terminates.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Member>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
