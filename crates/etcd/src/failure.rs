//! Why etcd is not followed at the moment: what the metrics call it, and what is to be done.

use std::error::Error;
use std::fmt;

use net::grpc::Ended;

/// Why etcd is not followed at the moment.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It cannot be reached, or the connection broke.
    Connection(String),
    /// Certificates or keys cannot be used.
    Tls(String),
    /// It does not answer in time.
    Silent,
    /// It does not let us in.
    Credentials(String),
    /// It lets us in, and not see the keys.
    Forbidden(String),
    /// The changes since then are forgotten: everything is to be listed anew.
    Compacted,
    /// An answer is longer than is read.
    TooLong,
    /// It lets everybody in, so that there is nobody to introduce.
    Open,
    /// It refuses for another reason.
    Refused(String),
}

impl Failure {
    /// As metrics say it.
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

/// gRPC's numbers for how a call ended.
mod code {
    pub(super) const INVALID_ARGUMENT: u32 = 3;
    pub(super) const PERMISSION_DENIED: u32 = 7;
    pub(super) const FAILED_PRECONDITION: u32 = 9;
    pub(super) const OUT_OF_RANGE: u32 = 11;
    pub(super) const UNAUTHENTICATED: u32 = 16;
}

impl From<Ended> for Failure {
    fn from(Ended { code, reason }: Ended) -> Failure {
        match code {
            code::OUT_OF_RANGE if reason.contains("compacted") => Failure::Compacted,
            code::UNAUTHENTICATED => Failure::Credentials(reason),
            // etcd says so of a wrong password, and where a name is wanted and none is given.
            code::INVALID_ARGUMENT if reason.contains("auth") || reason.contains("user name") => {
                Failure::Credentials(reason)
            }
            code::FAILED_PRECONDITION if reason.contains("authentication is not enabled") => Failure::Open,
            code::PERMISSION_DENIED => Failure::Forbidden(reason),
            _ => Failure::Refused(reason),
        }
    }
}

/// The last cause of an error: what is before it says only that something failed.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_etcd_says_is_understood() {
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
            assert_eq!(Failure::from(Ended { code, reason: reason.to_owned() }).label(), label, "{reason}");
        }
    }
}
