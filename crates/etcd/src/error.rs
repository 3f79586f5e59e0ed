//! Errors of following etcd: classification for metrics, and text for the log.

use std::io;
use std::path::PathBuf;

use listwatch::FailureKind;
use transport::grpc::{CallError, Code};

/// Error that prevents a store from being followed: wrong configuration, or unusable files.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Not an address of a member.
    #[error("endpoint '{endpoint}': {reason}")]
    Endpoint {
        /// Text from the configuration.
        endpoint: String,
        /// Problem with the text, and the expected form.
        reason: String,
    },
    /// A certificate or key file cannot be read.
    #[error("{}", host::errors::cannot_open(.file, .error))]
    File {
        /// Path of the file.
        file: PathBuf,
        /// Cause.
        #[source]
        error: io::Error,
    },
    /// Certificates or keys cannot be used.
    #[error("{0}")]
    Tls(String),
}

/// Error of following a member.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EtcdError {
    /// The member is unreachable, or the connection broke.
    #[error("{0}")]
    Connection(String),
    /// Unusable certificates or keys, or a failed handshake.
    #[error("TLS: {0}")]
    Tls(String),
    /// Timeout.
    #[error("no response in time")]
    Silent,
    /// The credentials were rejected.
    #[error("authentication failed: {0}")]
    Credentials(String),
    /// The user has no permission to read the keys.
    #[error("no permission to read the keys: {0}")]
    Forbidden(String),
    /// The revision of the watch has been compacted. A new list is needed.
    #[error("the requested revision has been compacted")]
    Compacted,
    /// The response exceeds the maximum size.
    #[error("a response exceeds the maximum size")]
    TooLong,
    /// Authentication is not enabled, so that no token is needed.
    #[error("authentication is not enabled")]
    Open,
    /// Any other error.
    #[error("{0}")]
    Refused(String),
}

impl EtcdError {
    /// All values of [`EtcdError::label`].
    pub(crate) const LABELS: [&str; 9] =
        ["connection", "tls", "silent", "credentials", "forbidden", "compacted", "too_long", "open", "refused"];

    /// Returns the value of the metric label `reason`.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            EtcdError::Connection(_) => "connection",
            EtcdError::Tls(_) => "tls",
            EtcdError::Silent => "silent",
            EtcdError::Credentials(_) => "credentials",
            EtcdError::Forbidden(_) => "forbidden",
            EtcdError::Compacted => "compacted",
            EtcdError::TooLong => "too_long",
            EtcdError::Open => "open",
            EtcdError::Refused(_) => "refused",
        }
    }

    /// Class of the failure for the state machine.
    pub(crate) const fn kind(&self) -> FailureKind {
        match self {
            EtcdError::Connection(_) | EtcdError::Silent => FailureKind::Disconnected,
            EtcdError::Tls(_) => FailureKind::NotSent,
            EtcdError::Forbidden(_) => FailureKind::Forbidden,
            EtcdError::Compacted => FailureKind::Expired,
            EtcdError::Credentials(_) | EtcdError::TooLong | EtcdError::Open | EtcdError::Refused(_) => {
                FailureKind::Other
            }
        }
    }

    /// Error of a watch that the member ended without a reason.
    pub(crate) fn ended() -> EtcdError {
        EtcdError::Connection("it ended the watch".to_owned())
    }
}

impl From<CallError> for EtcdError {
    fn from(error: CallError) -> EtcdError {
        match error {
            CallError::Connection(message) => EtcdError::Connection(message),
            CallError::Status(code, message) => refused(code, message),
            CallError::TooLong => EtcdError::TooLong,
            CallError::Http(_) | CallError::Compressed | CallError::Malformed => EtcdError::Refused(error.to_string()),
        }
    }
}

fn refused(code: Code, message: String) -> EtcdError {
    match code {
        Code::OUT_OF_RANGE if message.contains("compacted") => EtcdError::Compacted,
        Code::UNAUTHENTICATED => EtcdError::Credentials(message),
        // etcd uses this code for a wrong password and for a missing user name.
        Code::INVALID_ARGUMENT if message.contains("auth") || message.contains("user name") => {
            EtcdError::Credentials(message)
        }
        Code::FAILED_PRECONDITION if message.contains("authentication is not enabled") => EtcdError::Open,
        Code::PERMISSION_DENIED => EtcdError::Forbidden(message),
        _ => EtcdError::Refused(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_the_errors_of_etcd() {
        for (code, reason, label) in [
            (11, "etcdserver: mvcc: required revision has been compacted", "compacted"),
            (16, "etcdserver: invalid auth token", "credentials"),
            (3, "etcdserver: authentication failed, invalid user ID or password", "credentials"),
            (3, "etcdserver: user name is empty", "credentials"),
            (3, "etcdserver: duplicate key given in txn request", "refused"),
            (7, "etcdserver: permission denied", "forbidden"),
            (9, "etcdserver: authentication is not enabled", "open"),
            (14, "etcdserver: no leader", "refused"),
        ] {
            assert_eq!(refused(Code(code), reason.to_owned()).label(), label, "{reason}");
        }
    }
}
