//! Whether a server counts as healthy: the thresholds, and what is told of the last answer.

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is known of one server; it outlives reloads.
pub(super) struct Health {
    failures: u32,
    successes: u32,
    state: Mutex<State>,
}

#[derive(Clone, Debug)]
struct State {
    /// `None` before the first answer.
    is_healthy: Option<bool>,
    /// Outcomes in a row that contradict it.
    contrary: u32,
    latency: Duration,
    problem: String,
}

/// What a page says.
pub(super) struct Report {
    pub(super) is_ok: bool,
    pub(super) latency: Duration,
    /// Empty if the last answer was as it should be.
    pub(super) problem: String,
}

impl Health {
    /// Nothing is known yet; so many outcomes in a row make another state.
    pub(super) fn new(failures: u32, successes: u32) -> Health {
        let problem = "waiting for first probe".to_owned();
        let state = State { is_healthy: None, contrary: 0, latency: Duration::ZERO, problem };
        Health { failures, successes, state: Mutex::new(state) }
    }

    /// Takes an outcome; gives the state that it begins, if it begins one.
    pub(super) fn take(&self, outcome: Result<(), String>, latency: Duration) -> Option<bool> {
        let mut state = self.lock();
        let is_good = outcome.is_ok();
        state.latency = latency;
        state.problem = outcome.err().unwrap_or_default();
        if state.is_healthy == Some(is_good) {
            state.contrary = 0;
            return None;
        }
        state.contrary += 1;
        // The first answer decides alone: until then nobody is served.
        let wanted = match (state.is_healthy, is_good) {
            (None, _) => 1,
            (_, true) => self.successes,
            (_, false) => self.failures,
        };
        if state.contrary < wanted {
            return None;
        }
        (state.is_healthy, state.contrary) = (Some(is_good), 0);
        Some(is_good)
    }

    /// Whether the server is healthy, once that is known.
    pub(super) fn is_healthy(&self) -> Option<bool> {
        self.lock().is_healthy
    }

    pub(super) fn report(&self) -> Report {
        let state = self.lock().clone();
        Report { is_ok: state.is_healthy == Some(true), latency: state.latency, problem: state.problem }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_in_a_row_make_another_state() {
        let health = Health::new(3, 2);
        assert_eq!((health.is_healthy(), health.report().is_ok), (None, false));
        let take = |good| health.take(if good { Ok(()) } else { Err("no".to_owned()) }, Duration::ZERO);
        // Each outcome with the state that it begins.
        for (good, begins) in [
            (true, Some(true)),
            (false, None),
            (false, None),
            (true, None),
            (false, None),
            (false, None),
            (false, Some(false)),
            (true, None),
            (false, None),
            (true, None),
            (true, Some(true)),
        ] {
            assert_eq!(take(good), begins);
        }
    }
}
