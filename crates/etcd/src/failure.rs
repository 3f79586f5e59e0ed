//! Why etcd is not followed at the moment: what the metrics call it, and what is to be done.

use std::error::Error;
use std::fmt;

use tonic::{Code, Status};

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

impl From<Status> for Failure {
    fn from(status: Status) -> Failure {
        let said = status.message();
        match status.code() {
            Code::OutOfRange if said.contains("compacted") => Failure::Compacted,
            // This is said by the reader of gRPC, here.
            Code::OutOfRange => Failure::TooLong,
            Code::Unauthenticated => Failure::Credentials(said.to_owned()),
            // etcd says so of a wrong password, and where a name is wanted and none is given.
            Code::InvalidArgument if said.contains("auth") || said.contains("user name") => {
                Failure::Credentials(said.to_owned())
            }
            Code::FailedPrecondition if said.contains("authentication is not enabled") => Failure::Open,
            Code::PermissionDenied => Failure::Forbidden(said.to_owned()),
            Code::DeadlineExceeded => Failure::Silent,
            _ if status.source().is_some() => Failure::Connection(causes(&status)),
            _ => Failure::Refused(said.to_owned()),
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
