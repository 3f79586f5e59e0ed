//! Whether a watch works, and what the log is told of it: each change once, not each attempt; and nothing of a connection
//! that breaks and is back at the next attempt, as some do every few minutes.

use std::collections::HashSet;

use tokio::time::Instant;
use tracing::{error, info, warn};

use crate::LOG;
use crate::failure::Failure;

/// Whether a watch works.
#[derive(Default)]
pub(crate) enum Health {
    /// Nothing is wrong, as far as we know.
    #[default]
    Well,
    /// It has failed since then; the log knows these reasons.
    Failing { since: Instant, told: HashSet<&'static str> },
}

impl Health {
    /// The watch failed; `what` it is about.
    pub(crate) fn failed(&mut self, what: &str, failure: &Failure, now: Instant) {
        if failure.loses_the_version() {
            // Part of a watch's life: the server remembers five minutes or so.
            return info!(target: LOG, "Listing {what} anew: {failure}");
        }
        let is_first = matches!(self, Health::Well);
        if is_first {
            *self = Health::Failing { since: now, told: HashSet::new() };
        }
        let Health::Failing { told, .. } = self else { return };
        if !(is_first && failure.may_pass()) && told.insert(failure.label()) {
            tell(what, failure);
        }
    }

    pub(crate) fn is_failing(&self) -> bool {
        matches!(self, Health::Failing { .. })
    }

    /// The watch works.
    pub(crate) fn well(&mut self, what: &str, now: Instant) {
        if let Health::Failing { since, told, .. } = std::mem::take(self)
            && !told.is_empty()
        {
            info!(target: LOG, "Watching {what} again after {:.1} s", now.duration_since(since).as_secs_f32());
        }
    }
}

fn tell(what: &str, failure: &Failure) {
    match failure {
        Failure::Status { code: 401 | 403 | 404, .. } | Failure::Credentials(_) => {
            error!(target: LOG, "Failed to watch {what}: {failure}");
        }
        _ => warn!(target: LOG, "Failed to watch {what}: {failure}"),
    }
}
