//! Why a list or a watch came to nothing: whose fault, what the metrics call it, and what is to be done.

use core::fmt;
use core::time::Duration;

use crate::decode::Lost;

/// Why a list or a watch came to nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The version, or the page, that it was to go on from is forgotten (410): everything is to be listed anew.
    Gone,
    /// The server does not have the version yet, though it said so before: its store was put back to an earlier time, or
    /// it is another server, that lags behind. Everything is to be listed anew.
    Ahead,
    /// The server refuses.
    Status { code: u16, message: String, retry_after: Option<Duration> },
    /// The server cannot be reached, or the connection broke.
    Connection(String),
    /// No client could be made: a file, a certificate or a credential plugin.
    Credentials(String),
    /// Nothing came for so long.
    Silent(Duration),
    /// The response ended in the middle.
    Cut,
    /// A watch ended at once and said nothing, or a streaming list without its end.
    Short,
    /// The answer is not what was asked for.
    Unexpected(String),
}

impl Failure {
    /// As metrics say it.
    pub(crate) const fn label(&self) -> &'static str {
        match self {
            Failure::Gone => "gone",
            Failure::Ahead => "ahead",
            Failure::Status { code: 401, .. } => "unauthorized",
            Failure::Status { code: 403, .. } => "forbidden",
            Failure::Status { code: 404, .. } => "not_found",
            Failure::Status { code: 429, .. } => "too_many_requests",
            Failure::Status { code: 500.., .. } => "server_error",
            Failure::Status { .. } => "refused",
            Failure::Connection(_) => "connection",
            Failure::Credentials(_) => "credentials",
            Failure::Silent(_) => "silent",
            Failure::Cut => "cut",
            Failure::Short => "short",
            Failure::Unexpected(_) => "unexpected",
        }
    }

    /// Whether another client may do better: credentials and certificates may have been renewed.
    pub(crate) const fn wants_new_client(&self) -> bool {
        matches!(self, Failure::Connection(_) | Failure::Credentials(_) | Failure::Status { code: 401, .. })
    }

    /// Whether the server was reached and said no, or nothing: another way of asking may do better.
    pub(crate) const fn is_an_answer(&self) -> bool {
        !matches!(self, Failure::Connection(_) | Failure::Credentials(_) | Failure::Gone | Failure::Ahead)
    }

    /// Whether there is no version any more to go on from.
    pub(crate) const fn loses_the_version(&self) -> bool {
        matches!(self, Failure::Gone | Failure::Ahead)
    }

    /// Whether it may be over by the next attempt: connections break now and then.
    pub(crate) const fn may_pass(&self) -> bool {
        matches!(self, Failure::Connection(_) | Failure::Silent(_) | Failure::Cut | Failure::Short)
    }

    /// Whether the server does not know streaming lists.
    pub(crate) const fn refuses_the_question(&self) -> bool {
        matches!(self, Failure::Status { code: 400 | 422, .. })
    }

    /// Whether a streaming list that began so will never come: the server knows them, but what it stores its objects in
    /// does not (500, an etcd before 3.4.31 or 3.5.13).
    pub(crate) const fn refuses_the_stream(&self) -> bool {
        self.refuses_the_question() || matches!(self, Failure::Status { code: 500, .. })
    }

    /// How long the server wants to be left alone.
    pub(crate) const fn retry_after(&self) -> Option<Duration> {
        if let Failure::Status { retry_after, .. } = self { *retry_after } else { None }
    }
}

impl From<Lost> for Failure {
    fn from(Lost: Lost) -> Failure {
        Failure::Unexpected("where its next object begins cannot be told".to_owned())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Gone => out.write_str("the version to go on from is gone (410)"),
            Failure::Ahead => out.write_str("the API server does not have the version to go on from"),
            Failure::Status { code, message, .. } if message.is_empty() => write!(out, "the API server says {code}"),
            Failure::Status { code, message, .. } => write!(out, "the API server says {code}: {message}"),
            Failure::Connection(problem) => write!(out, "no connection to the API server: {problem}"),
            Failure::Credentials(problem) => write!(out, "no client for the API server: {problem}"),
            Failure::Silent(time) => write!(out, "the API server said nothing for {} s", time.as_secs_f32()),
            Failure::Cut => out.write_str("the answer of the API server ended in the middle"),
            Failure::Short => out.write_str("the API server ended the watch at once"),
            Failure::Unexpected(problem) => write!(out, "the answer of the API server is not understood: {problem}"),
        }
    }
}

/// What kube says is wrong with a connection, without what it says of itself.
pub(crate) fn connection_problem(error: &kube::Error) -> String {
    if let kube::Error::Service(inner) = error { causes(&**inner) } else { causes(error) }
}

/// An error with all its causes, in one line: each says only what those above it did not.
#[must_use]
pub fn causes(error: &dyn core::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text.replace('\n', " ")
}
