//! Tells the log when a cluster is known, and what is missing while it is not.

use std::sync::Arc;
use std::time::Duration;

use cluster::{Index, Kind};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::LOG;

/// Time between two looks at the index.
const LOOK: Duration = Duration::from_millis(20);
/// Time after which the log says what is missing: most clusters are known long before.
const FIRST_WARNING: Duration = Duration::from_secs(5);
/// Time between two warnings after that.
const NEXT_WARNING: Duration = Duration::from_secs(60);

/// Waits until everything is listed, and logs what is known. Until then, warns of what is missing. `url` is that of
/// the API server.
pub(crate) async fn announce(index: Arc<Index>, url: String) {
    let start = Instant::now();
    let mut next_warning = FIRST_WARNING;
    while !index.is_synced() {
        sleep(LOOK).await;
        if start.elapsed() >= next_warning {
            next_warning += NEXT_WARNING;
            let missing: Vec<&str> = index.unlisted().map(Kind::plural).collect();
            let (missing, waited) = (missing.join(", "), start.elapsed().as_secs());
            warn!(target: LOG, "Not listed yet after {waited} s: {missing} ({url})");
        }
    }
    let (mut services, mut endpoints) = (0_u32, 0_usize);
    index.for_each_service(|service| {
        services += u32::from(service.is_declared());
        endpoints += service.endpoints().count();
    });
    let took = start.elapsed().as_secs_f32();
    info!(target: LOG, "{services} services, {endpoints} endpoints known after {took:.1} s ({url})");
}
