//! Health of a watch, and its log lines: one line for each new reason of a failure instead of one for each attempt. A
//! connection error that is gone at the next attempt is not logged, since some connections break every few minutes.

use std::collections::HashSet;

use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::LOG;
use crate::failure::ApiError;

/// Health of a watch.
#[derive(Default)]
pub(crate) enum Health {
    /// Not tried yet.
    #[default]
    New,
    /// No failure since the last success.
    Well,
    /// Failing since `since`. `logged` has the labels of the failures already logged.
    Failing { since: Instant, logged: HashSet<&'static str> },
}

impl Health {
    /// Records a failure. `what` names the watched resource in the log, `url` is that of the API server. After a
    /// success, a failure that may pass is logged from the second attempt on.
    pub(crate) fn failed(&mut self, (what, url): (&str, &str), failure: &ApiError, now: Instant) {
        if failure.loses_the_version() {
            // Part of a watch's life: the server remembers five minutes or so.
            return info!(target: LOG, "Listing {what} again: {failure}");
        }
        let is_first = matches!(self, Health::Well);
        if !self.is_failing() {
            *self = Health::Failing { since: now, logged: HashSet::new() };
        }
        let Health::Failing { logged, .. } = self else { return };
        if !(is_first && failure.may_pass()) && logged.insert(failure.label()) {
            tell(what, url, failure);
        }
    }

    pub(crate) fn is_failing(&self) -> bool {
        matches!(self, Health::Failing { .. })
    }

    /// Records a success.
    pub(crate) fn well(&mut self, what: &str, now: Instant) {
        if let Health::Failing { since, logged, .. } = std::mem::replace(self, Health::Well)
            && !logged.is_empty()
        {
            info!(target: LOG, "Watching {what} again after {:.1} s", now.duration_since(since).as_secs_f32());
        }
    }
}

fn tell(what: &str, url: &str, failure: &ApiError) {
    match failure {
        ApiError::Status { code: 401 | 403 | 404, .. } | ApiError::Credentials(_) => {
            error!(target: LOG, "Failed to watch {what}: {failure} ({url})");
        }
        _ => warn!(target: LOG, "Failed to watch {what}: {failure} ({url})"),
    }
}
