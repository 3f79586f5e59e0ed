//! What a generation needs before it can take the place of another: waited for, but not for ever.

use std::time::Duration;

use engine::log::{Level, Source};
use engine::setup::Awaited;
use tokio::time::{Instant, sleep};

use crate::log;

/// How often to look.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until all is there, or until nobody is patient any more. The times run side by side.
pub(crate) async fn wait(awaited: Vec<Awaited>) {
    let start = Instant::now();
    for Awaited { directive, is_there, patience, missing, .. } in awaited {
        while !is_there() {
            let waited = start.elapsed();
            if waited >= patience {
                log::report(Level::Warning, Source::Plugin(directive), format_args!("{missing}"));
                break;
            }
            sleep(LOOK.min(patience.saturating_sub(waited))).await;
        }
    }
}

/// Says in the log what is not there yet.
pub(crate) fn announce(awaited: &[Awaited]) {
    for Awaited { directive, waiting, .. } in awaited.iter().filter(|one| !(one.is_there)()) {
        log::report(Level::Info, Source::Plugin(directive), format_args!("{waiting}"));
    }
}
