//! Health of a store, and its log lines: one line for each new reason of a failure instead of one for each attempt.

use std::collections::HashSet;

use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::LOG;
use crate::endpoint::Endpoint;
use crate::error::EtcdError;

/// Health of a store.
#[derive(Default)]
pub(crate) struct Health {
    /// Start of the outage.
    since: Option<Instant>,
    /// Failed members with the reasons that have been logged.
    told: HashSet<(String, &'static str)>,
}

impl Health {
    /// Records that a member cannot be followed, or not any more.
    pub(crate) fn failed(&mut self, endpoint: &Endpoint, failure: &EtcdError) {
        self.since.get_or_insert_with(Instant::now);
        if !self.told.insert((endpoint.to_string(), failure.label())) {
            return;
        }
        match failure {
            EtcdError::Tls(_) | EtcdError::Credentials(_) | EtcdError::Forbidden(_) => {
                error!(target: LOG, "Failed to follow {endpoint}: {failure}");
            }
            _ => warn!(target: LOG, "Failed to follow {endpoint}: {failure}"),
        }
    }

    /// Records that the list is complete and the watch has started.
    pub(crate) fn well(&mut self, endpoint: &Endpoint) {
        self.told.clear();
        if let Some(since) = self.since.take() {
            info!(target: LOG, "Following {endpoint} after {:.1} s", since.elapsed().as_secs_f32());
        }
    }
}
