//! Whether a store is followed, and what the log is told of it: each change once, not each attempt.

use std::collections::HashSet;

use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::LOG;
use crate::endpoint::Endpoint;
use crate::failure::Failure;

/// Whether a store is followed.
#[derive(Default)]
pub(crate) struct Health {
    /// Since when it is not.
    since: Option<Instant>,
    /// Which members failed and how, as far as the log knows.
    told: HashSet<(String, &'static str)>,
}

impl Health {
    /// A member cannot be followed, or not any more.
    pub(crate) fn failed(&mut self, endpoint: &Endpoint, failure: &Failure) {
        self.since.get_or_insert_with(Instant::now);
        if !self.told.insert((endpoint.to_string(), failure.label())) {
            return;
        }
        match failure {
            Failure::Tls(_) | Failure::Credentials(_) | Failure::Forbidden(_) => {
                error!(target: LOG, "Failed to follow {endpoint}: {failure}");
            }
            _ => warn!(target: LOG, "Failed to follow {endpoint}: {failure}"),
        }
    }

    /// Everything is listed, and a member tells of changes.
    pub(crate) fn well(&mut self, endpoint: &Endpoint) {
        self.told.clear();
        if let Some(since) = self.since.take() {
            info!(target: LOG, "Following {endpoint} after {:.1} s", since.elapsed().as_secs_f32());
        }
    }
}
