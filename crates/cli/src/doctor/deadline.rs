//! Time limits of gatherers.

use std::time::Duration;

use doctor::{Known, Unknown};
use tokio::time::{Instant, timeout_at};

/// Time for all gatherers together. The command promises 5 s, and also has to start and to print.
const ALL: Duration = Duration::from_millis(4_600);
/// Time for one gatherer.
const EACH: Duration = Duration::from_secs(2);

/// End of the time for all gatherers.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    /// Starts the time.
    pub(super) fn start() -> Deadline {
        Deadline(Instant::now() + ALL)
    }

    /// Returns the end of the time for a gatherer that starts now.
    pub(super) fn each(self) -> Instant {
        self.0.min(Instant::now() + EACH)
    }

    /// Runs a gatherer within its time. `what` names it in the reason if it takes longer.
    pub(super) async fn limit<T>(self, what: &str, gatherer: impl Future<Output = Known<T>>) -> Known<T> {
        let late = || Unknown::new(format!("{what}: not gathered within {} s", EACH.as_secs()));
        timeout_at(self.each(), gatherer).await.unwrap_or_else(|_| Err(late()))
    }
}
