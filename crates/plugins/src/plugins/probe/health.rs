//! Health of a probed server: thresholds for changing its state, and the last result.

use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::question::ProbeError;

/// Health of one server. Kept across reloads.
pub(super) struct Health {
    failures: u32,
    successes: u32,
    last: Mutex<Last>,
}

/// State of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Before the first result. Counts as unhealthy.
    Unknown,
    Healthy,
    Unhealthy,
}

/// State and last result.
#[derive(Clone, Debug)]
struct Last {
    state: State,
    /// Consecutive results that contradict `state`.
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
        let last = Last { state: State::Unknown, contrary: 0, latency: Duration::ZERO, problem };
        Health { failures, successes, last: Mutex::new(last) }
    }

    /// Records a result. Returns true if it changes the state.
    pub(super) fn record(&self, outcome: &Result<(), ProbeError>, latency: Duration) -> bool {
        let mut last = self.lock();
        last.latency = latency;
        last.problem = outcome.as_ref().err().map_or_else(String::new, ProbeError::to_string);
        let result = if outcome.is_ok() { State::Healthy } else { State::Unhealthy };
        if last.state == result {
            last.contrary = 0;
            return false;
        }
        last.contrary += 1;
        // The first result sets the state on its own, because the server counts as unhealthy until then.
        let wanted = match last.state {
            State::Unknown => 1,
            State::Unhealthy => self.successes,
            State::Healthy => self.failures,
        };
        if last.contrary < wanted {
            return false;
        }
        (last.state, last.contrary) = (result, 0);
        true
    }

    /// Returns the state.
    pub(super) fn state(&self) -> State {
        self.lock().state
    }

    pub(super) fn report(&self) -> Report {
        let Last { state, latency, problem, .. } = self.lock().clone();
        Report { is_ok: state == State::Healthy, latency, problem }
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_state_after_consecutive_results() {
        let health = Health::new(3, 2);
        assert_eq!((health.state(), health.report().is_ok), (State::Unknown, false));
        let record = |good| health.record(&if good { Ok(()) } else { Err(ProbeError::NoRecords) }, Duration::ZERO);
        // Result of a probe, and the state it starts.
        for (good, begins) in [
            (true, Some(State::Healthy)),
            (false, None),
            (false, None),
            (true, None),
            (false, None),
            (false, None),
            (false, Some(State::Unhealthy)),
            (true, None),
            (false, None),
            (true, None),
            (true, Some(State::Healthy)),
        ] {
            assert_eq!(record(good).then(|| health.state()), begins);
        }
    }
}
