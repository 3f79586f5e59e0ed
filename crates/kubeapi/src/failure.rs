//! Failures of lists and watches: classification for metrics, text for the log, and what to do next.

use core::fmt;
use core::time::Duration;

use listwatch::{Failure, FailureKind};

use crate::ClientError;
use crate::causes::causes;
use crate::decode::OutOfSyncError;
use crate::gzip::GzipError;

/// Error of a list or a watch.
#[derive(Debug)]
pub(crate) enum ApiError {
    /// The resource version or the continue token has expired (410). A new list is needed.
    Gone,
    /// The server does not have the resource version yet, although it was known before: etcd was restored from a
    /// backup, or another server answers that lags behind. A new list is needed.
    Ahead,
    /// A relay sent an older list or event than the ones that are known.
    Older,
    /// The storage of the API server was restored from a backup, and does not have the known resource version.
    Restored,
    /// The API server has another number of objects at the known resource version: its list or watch left some out.
    Missed {
        /// Number of objects that were known.
        known: u64,
        /// Number of objects that the API server has.
        counted: u64,
    },
    /// The server responded with an error status.
    Status { code: u16, message: String, retry_after: Option<Duration> },
    /// The server is unreachable, or the connection broke.
    Connection(String),
    /// No client could be built, because of a file, a certificate or a credential plugin.
    Credentials(ClientError),
    /// The server did not begin to answer within this time.
    Unanswered(Duration),
    /// No data arrived for this long.
    Silent(Duration),
    /// The response ended in the middle of an event or a list.
    Cut,
    /// A watch ended right after it started without an event, or a streaming list ended before its final bookmark.
    Short,
    /// The compressed response cannot be decompressed.
    Gzip(GzipError),
    /// The response is not what the request asked for.
    Unexpected(String),
    /// The snapshot lacks events, so that a new one needs a new list.
    Unrecorded,
}

impl ApiError {
    /// All values of [`ApiError::label`].
    pub(crate) const LABELS: [&str; 19] = [
        "gone",
        "ahead",
        "older",
        "restored",
        "missed",
        "unauthorized",
        "forbidden",
        "not_found",
        "too_many_requests",
        "server_error",
        "refused",
        "connection",
        "credentials",
        "silent",
        "cut",
        "short",
        "gzip",
        "unexpected",
        "snapshot",
    ];

    /// Returns the value of the metric label `reason`.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            ApiError::Gone => "gone",
            ApiError::Ahead => "ahead",
            ApiError::Older => "older",
            ApiError::Restored => "restored",
            ApiError::Missed { .. } => "missed",
            ApiError::Status { code: 401, .. } => "unauthorized",
            ApiError::Status { code: 403, .. } => "forbidden",
            ApiError::Status { code: 404, .. } => "not_found",
            ApiError::Status { code: 429, .. } => "too_many_requests",
            ApiError::Status { code: 500.., .. } => "server_error",
            ApiError::Status { .. } => "refused",
            ApiError::Connection(_) => "connection",
            ApiError::Credentials(_) => "credentials",
            ApiError::Unanswered(_) | ApiError::Silent(_) => "silent",
            ApiError::Cut => "cut",
            ApiError::Short => "short",
            ApiError::Gzip(_) => "gzip",
            ApiError::Unexpected(_) => "unexpected",
            ApiError::Unrecorded => "snapshot",
        }
    }

    /// Returns true if a new client may help, because credentials or certificates may have been rotated.
    pub(crate) const fn wants_new_client(&self) -> bool {
        matches!(self, ApiError::Connection(_) | ApiError::Credentials(_) | ApiError::Status { code: 401, .. })
    }

    /// Returns true if the server may have another history than the known one, with the same versions.
    pub(crate) const fn is_of_other_history(&self) -> bool {
        matches!(self, ApiError::Ahead | ApiError::Older | ApiError::Restored)
    }

    /// Classifies the failure for the state machine.
    pub(crate) const fn classify(&self) -> Failure {
        let kind = match self {
            ApiError::Gone | ApiError::Unrecorded => FailureKind::Expired,
            ApiError::Ahead | ApiError::Older => FailureKind::Ahead,
            ApiError::Restored => FailureKind::Restored,
            ApiError::Missed { .. } => FailureKind::Incomplete,
            ApiError::Status { code: 400 | 422, .. } => FailureKind::Unsupported,
            ApiError::Status { code: 403, .. } => FailureKind::Forbidden,
            ApiError::Status { code: 404, .. } => FailureKind::Unknown,
            ApiError::Status { code: 500, .. } => FailureKind::Internal,
            ApiError::Connection(_) => FailureKind::Disconnected,
            ApiError::Credentials(_) => FailureKind::NotSent,
            ApiError::Unanswered(_) | ApiError::Silent(_) => FailureKind::Silent,
            ApiError::Status { .. } | ApiError::Cut | ApiError::Short | ApiError::Gzip(_) | ApiError::Unexpected(_) => {
                FailureKind::Other
            }
        };
        let (is_transient, retry_after) = (self.is_transient(), self.retry_after());
        Failure { kind, reason: (0, self.label()), is_transient, retry_after }
    }

    /// Returns true if the next attempt is likely to succeed, since connections break now and then.
    const fn is_transient(&self) -> bool {
        matches!(
            self,
            ApiError::Connection(_) | ApiError::Silent(_) | ApiError::Cut | ApiError::Short | ApiError::Ahead
        )
    }

    /// Returns the duration of the `Retry-After` header.
    const fn retry_after(&self) -> Option<Duration> {
        if let ApiError::Status { retry_after, .. } = self { *retry_after } else { None }
    }
}

impl From<OutOfSyncError> for ApiError {
    fn from(error: OutOfSyncError) -> ApiError {
        ApiError::Unexpected(error.to_string())
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApiError::Gone => out.write_str("the resource version has expired (410)"),
            ApiError::Ahead => out.write_str("the API server does not have the known resource version yet"),
            ApiError::Older => out.write_str("the relay has sent an older list or event than the known ones"),
            ApiError::Restored => out.write_str("the storage of the API server was restored from a backup"),
            ApiError::Missed { known, counted } => {
                write!(out, "its watch has left out events: {known} objects are known, and it has {counted}")
            }
            ApiError::Status { code, message, .. } if message.is_empty() => write!(out, "the API server says {code}"),
            ApiError::Status { code, message, .. } => write!(out, "the API server says {code}: {message}"),
            ApiError::Connection(problem) => write!(out, "no connection to the API server: {problem}"),
            ApiError::Credentials(problem) => write!(out, "no client for the API server: {problem}"),
            ApiError::Unanswered(time) => write!(out, "the API server did not answer within {} s", time.as_secs_f32()),
            ApiError::Silent(time) => write!(out, "the API server said nothing for {} s", time.as_secs_f32()),
            ApiError::Cut => out.write_str("the answer of the API server ended in the middle"),
            ApiError::Short => out.write_str("the API server ended the watch at once"),
            ApiError::Unrecorded => out.write_str("the snapshot lacks events and begins again"),
            ApiError::Gzip(problem) => write!(out, "the answer of the relay cannot be decompressed: {problem}"),
            ApiError::Unexpected(problem) => write!(out, "the answer of the API server is not understood: {problem}"),
        }
    }
}

impl core::error::Error for ApiError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        if let ApiError::Credentials(error) = self { Some(error) } else { None }
    }
}

/// Returns the cause of a connection error, without the text that kube adds.
pub(crate) fn connection_problem(error: &kube::Error) -> String {
    if let kube::Error::Service(inner) = error { causes(&**inner) } else { causes(error) }
}
