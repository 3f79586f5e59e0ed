//! Failures of following etcd: classification for metrics, and text for the log.

use std::fmt;

use transport::grpc::{CallError, Code};

/// Failure of following a member.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The member is unreachable, or the connection broke.
    Connection(String),
    /// Unusable certificates or keys, or a failed handshake.
    Tls(String),
    /// Timeout.
    Silent,
    /// The credentials were rejected.
    Credentials(String),
    /// The user has no permission to read the keys.
    Forbidden(String),
    /// The revision of the watch has been compacted. A new list is needed.
    Compacted,
    /// The response exceeds the maximum size.
    TooLong,
    /// Authentication is not enabled, so that no token is needed.
    Open,
    /// Any other error.
    Refused(String),
}

impl Failure {
    /// All values of [`Failure::label`].
    pub(crate) const LABELS: [&str; 9] =
        ["connection", "tls", "silent", "credentials", "forbidden", "compacted", "too_long", "open", "refused"];

    /// Returns the value of the metric label `reason`.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Failure::Connection(_) => "connection",
            Failure::Tls(_) => "tls",
            Failure::Silent => "silent",
            Failure::Credentials(_) => "credentials",
            Failure::Forbidden(_) => "forbidden",
            Failure::Compacted => "compacted",
            Failure::TooLong => "too_long",
            Failure::Open => "open",
            Failure::Refused(_) => "refused",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Connection(what) | Failure::Refused(what) => out.write_str(what),
            Failure::Tls(what) => write!(out, "TLS: {what}"),
            Failure::Silent => out.write_str("it does not answer"),
            Failure::Credentials(what) => write!(out, "it does not let us in: {what}"),
            Failure::Forbidden(what) => write!(out, "it does not let us see the keys: {what}"),
            Failure::Compacted => out.write_str("the changes since the last list are forgotten"),
            Failure::Open => out.write_str("it knows no users"),
            Failure::TooLong => out.write_str("an answer is longer than is read"),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        match error {
            CallError::Broken(why) => Failure::Connection(why),
            CallError::Refused(code, why) => refused(code, why),
            CallError::TooLong => Failure::TooLong,
            CallError::Http(_) | CallError::Compressed | CallError::Malformed => Failure::Refused(error.to_string()),
        }
    }
}

fn refused(code: Code, why: String) -> Failure {
    match code {
        Code::OUT_OF_RANGE if why.contains("compacted") => Failure::Compacted,
        Code::UNAUTHENTICATED => Failure::Credentials(why),
        // etcd uses this code for a wrong password and for a missing user name.
        Code::INVALID_ARGUMENT if why.contains("auth") || why.contains("user name") => Failure::Credentials(why),
        Code::FAILED_PRECONDITION if why.contains("authentication is not enabled") => Failure::Open,
        Code::PERMISSION_DENIED => Failure::Forbidden(why),
        _ => Failure::Refused(why),
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
