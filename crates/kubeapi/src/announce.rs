//! Logs when all objects of a cluster are listed, and which kinds are missing until then.

use std::sync::Arc;
use std::time::Duration;

use cluster::{Index, Kind};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::LOG;

/// Interval at which the index is checked.
const LOOK: Duration = Duration::from_millis(20);
/// Time until the first warning about missing kinds. Most clusters are listed long before.
const FIRST_WARNING: Duration = Duration::from_secs(5);
/// Time between two warnings after that.
const NEXT_WARNING: Duration = Duration::from_secs(60);

/// Waits until every kind is listed, and then logs the number of Services and endpoints. Until then, warns about
/// missing kinds. `url` is that of the API server.
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
    let services_word = if services == 1 { "service" } else { "services" };
    let endpoints_word = if endpoints == 1 { "endpoint" } else { "endpoints" };
    let took = start.elapsed().as_secs_f32();
    info!(
        target: LOG,
        "{services} {services_word}, {endpoints} {endpoints_word} known after {took:.1} s ({url})"
    );
}
