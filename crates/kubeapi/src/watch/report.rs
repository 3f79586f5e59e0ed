//! Log lines about a watch that fails and works again.

use std::time::Duration;

use tracing::{error, info, warn};

use crate::LOG;
use crate::failure::ApiError;

/// Logs a failure. `what` names the watched resource, `url` is that of the API server.
pub(crate) fn log_failure(what: &str, url: &str, failure: &ApiError) {
    match failure {
        ApiError::Status { code: 401 | 403 | 404, .. } | ApiError::Credentials(_) => {
            error!(target: LOG, "Failed to watch {what}: {failure} ({url})");
        }
        _ => warn!(target: LOG, "Failed to watch {what}: {failure} ({url})"),
    }
}

/// Logs the end of an outage, unless none of its failures was logged.
pub(crate) fn log_recovery(what: &str, after: Option<Duration>) {
    if let Some(after) = after {
        info!(target: LOG, "Watching {what} again after {:.1} s", after.as_secs_f32());
    }
}
