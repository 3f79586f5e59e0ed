//! Readiness of the server.

use std::time::Duration;

use control::ready::Readiness;

use super::super::context::Context;
use super::status;

/// Time that a worker has to respond. It takes microseconds unless the thread hangs or the node is overloaded.
const WORKER_LIMIT: Duration = Duration::from_millis(500);

/// Returns whether the server serves: all directives are ready, and all workers respond.
pub(super) async fn ready(context: &Context) -> Readiness {
    let (serving, unready) = status::serving(&context.view.loaded());
    let workers = &context.view.workers;
    let stuck = workers.count_stuck(WORKER_LIMIT).await;
    Readiness { serving, unready, workers: workers.count() as u64, stuck: stuck as u64 }
}
