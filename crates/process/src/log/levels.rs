//! Temporary log levels of single plugins.
//!
//! The writer thread applies them, so that a level costs the threads that report events nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use engine::log::{Event, Level};
use net::log_queue;

/// Name of the server itself, beside those of plugins.
pub const SERVER: &str = "portolan";

static LEVELS: Levels =
    Levels { state: Mutex::new(State { usual: Level::Info, temporary: Vec::new() }), any: AtomicBool::new(false) };

struct Levels {
    state: Mutex<State>,
    /// True if there is a temporary level, or the usual one is not [`Level::Info`].
    any: AtomicBool,
}

struct State {
    /// Least severe level that is written.
    usual: Level,
    temporary: Vec<Temporary>,
}

struct Temporary {
    plugin: String,
    level: Level,
    until: Instant,
}

impl State {
    fn prune(&mut self) {
        let now = Instant::now();
        self.temporary.retain(|one| one.until > now);
    }

    /// Publishes a change to the threads that report events.
    fn publish(&self) {
        let levels = self.temporary.iter().map(|one| one.level);
        log_queue().set_level(levels.fold(self.usual, Level::max));
        LEVELS.any.store(!self.temporary.is_empty() || self.usual != Level::Info, Ordering::Relaxed);
    }
}

fn lock() -> MutexGuard<'static, State> {
    LEVELS.state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the least severe level that is written, of plugins without a temporary level.
pub fn set_usual(level: Level) {
    let mut state = lock();
    state.usual = level;
    state.publish();
}

/// Returns the least severe level that is written, of plugins without a temporary level.
pub fn usual() -> Level {
    lock().usual
}

/// Sets the level of a plugin for some time, in place of an earlier temporary level.
pub fn set(plugin: &str, level: Level, duration: Duration) {
    let mut state = lock();
    state.temporary.retain(|one| one.plugin != plugin);
    state.temporary.push(Temporary { plugin: plugin.to_owned(), level, until: Instant::now() + duration });
    state.prune();
    state.publish();
    if duration.is_zero() {
        tracing::info!(target: "portolan", "log level of {plugin}: as usual");
    } else {
        tracing::info!(target: "portolan", "log level of {plugin}: {} for {} s", level.name(), duration.as_secs());
    }
}

/// Returns the temporary levels, each with the time that is left.
pub fn temporary() -> Vec<(String, Level, Duration)> {
    let mut state = lock();
    state.prune();
    state.publish();
    let now = Instant::now();
    state.temporary.iter().map(|one| (one.plugin.clone(), one.level, one.until.duration_since(now))).collect()
}

/// Returns true if an event is to be written.
pub(super) fn admits(event: &Event<'_>) -> bool {
    if !LEVELS.any.load(Ordering::Relaxed) {
        return event.level <= Level::Info;
    }
    let mut state = lock();
    let (usual, before) = (state.usual, state.temporary.len());
    state.prune();
    if state.temporary.len() != before {
        state.publish();
    }
    let own = state.temporary.iter().find(|one| one.plugin == event.source.name());
    event.level <= own.map_or(usual, |one| one.level)
}
