//! Health state of a probed server: thresholds for changing it, and the last result.

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Health of one server. Kept across reloads.
pub(super) struct Health {
    failures: u32,
    successes: u32,
    state: Mutex<State>,
}

#[derive(Clone, Debug)]
struct State {
    /// `None` before the first result.
    is_healthy: Option<bool>,
    /// Consecutive results that contradict `is_healthy`.
    contrary: u32,
    latency: Duration,
    problem: String,
}

/// Content of the health page.
pub(super) struct Report {
    pub(super) is_ok: bool,
    pub(super) latency: Duration,
    /// Error of the last probe; empty if it succeeded.
    pub(super) problem: String,
}

impl Health {
    /// Unknown health. `failures` and `successes` are the numbers of consecutive results that change the state.
    pub(super) fn new(failures: u32, successes: u32) -> Health {
        let problem = "waiting for first probe".to_owned();
        let state = State { is_healthy: None, contrary: 0, latency: Duration::ZERO, problem };
        Health { failures, successes, state: Mutex::new(state) }
    }

    /// Records a result. Returns the new state if it changes.
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
        // The first result sets the state on its own, because the server counts as unhealthy until then.
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

    /// Returns true if the server is healthy; `None` before the first result.
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
    fn changes_state_after_consecutive_results() {
        let health = Health::new(3, 2);
        assert_eq!((health.is_healthy(), health.report().is_ok), (None, false));
        let take = |good| health.take(if good { Ok(()) } else { Err("no".to_owned()) }, Duration::ZERO);
        // Result of a probe, and the state it starts.
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
