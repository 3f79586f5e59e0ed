//! Conditions that a new generation waits for before it replaces the old one, each with a time limit.

use std::time::Duration;

use config::setup::StartupGate;
use engine::log::{Level, Source};
use tokio::time::{Instant, sleep};

use crate::log;

/// Interval between checks of a condition.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// Waits until each condition holds or its time limit is over. All limits count from the same start.
pub async fn wait(startup_gates: Vec<StartupGate>) {
    let start = Instant::now();
    for StartupGate { directive, is_there, timeout, missing, .. } in startup_gates {
        while !is_there() {
            let waited = start.elapsed();
            if waited >= timeout {
                log::report(Level::Warning, Source::Plugin(directive), format_args!("{missing}"));
                break;
            }
            sleep(CHECK_EVERY.min(timeout.saturating_sub(waited))).await;
        }
    }
}

/// Logs the conditions that do not hold yet.
pub fn announce(startup_gates: &[StartupGate]) {
    for StartupGate { directive, waiting, .. } in startup_gates.iter().filter(|one| !(one.is_there)()) {
        log::report(Level::Info, Source::Plugin(directive), format_args!("{waiting}"));
    }
}
