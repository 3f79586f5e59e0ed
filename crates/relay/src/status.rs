//! Refusals: the status objects with which the API server refuses requests and ends watches.

use core::fmt;

use crate::encode::{Encoding, envelope, event};
use crate::selector::SelectorError;
use crate::strip::quote;
use crate::wire::{put_bytes, put_number};

/// Reason why a request is refused or a watch ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request needs a credential that this relay accepts.
    Unauthorized(&'static str),
    /// The path is not one that a relay serves.
    NotFound,
    /// Another method than GET.
    Method,
    /// The parameters are invalid or not supported.
    Parameters(String),
    /// No acceptable media type.
    NotAcceptable,
    /// The history does not reach back to this version; it starts after the other one.
    Expired(u64, u64),
    /// A page of a list that another server began.
    ExpiredPage,
    /// The API server has been restored from a backup, or replaced by another one.
    NewEpoch,
    /// The subscriber was too slow.
    TooSlow,
    /// The relay does not have this version yet; it has the other one.
    Ahead(u64, u64),
    /// Too many lists at once. The number spreads the retries.
    TooManyLists(u32),
    /// The relay has not listed all kinds yet.
    NotReady,
    /// The request wants the latest state, and nothing has confirmed that the relay has it.
    NotFresh,
}

/// Longest pause in seconds before a refused list is tried again.
const SPREAD_SECONDS: u32 = 5;

impl Refusal {
    /// Returns the HTTP status code.
    #[must_use]
    pub const fn code(&self) -> u16 {
        match self {
            Refusal::Parameters(_) => 400,
            Refusal::Unauthorized(_) => 401,
            Refusal::NotFound => 404,
            Refusal::Method => 405,
            Refusal::NotAcceptable => 406,
            Refusal::Expired(..) | Refusal::ExpiredPage | Refusal::NewEpoch | Refusal::TooSlow => 410,
            Refusal::TooManyLists(_) => 429,
            Refusal::NotReady | Refusal::NotFresh => 503,
            Refusal::Ahead(..) => 504,
        }
    }

    /// Returns the seconds of `Retry-After`.
    #[must_use]
    pub const fn retry_after(&self) -> Option<u32> {
        match self {
            Refusal::Ahead(..) | Refusal::NotReady | Refusal::NotFresh => Some(1),
            Refusal::TooManyLists(number) => Some(1 + *number % SPREAD_SECONDS),
            _ => None,
        }
    }

    /// Returns the value of the metric label `reason`.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Refusal::Unauthorized(_) => "unauthorized",
            Refusal::NotFound => "not_found",
            Refusal::Method => "method",
            Refusal::Parameters(_) => "parameters",
            Refusal::NotAcceptable => "not_acceptable",
            Refusal::Expired(..) | Refusal::ExpiredPage => "expired",
            Refusal::NewEpoch => "new_epoch",
            Refusal::TooSlow => "too_slow",
            Refusal::Ahead(..) => "ahead",
            Refusal::TooManyLists(_) => "too_many_lists",
            Refusal::NotReady => "not_ready",
            Refusal::NotFresh => "not_fresh",
        }
    }

    /// All values of [`Refusal::label`].
    pub const LABELS: [&str; 12] = [
        "unauthorized",
        "not_found",
        "method",
        "parameters",
        "not_acceptable",
        "expired",
        "new_epoch",
        "too_slow",
        "ahead",
        "too_many_lists",
        "not_ready",
        "not_fresh",
    ];

    /// Returns the reason in the words of the API server.
    const fn reason(&self) -> &'static str {
        match self.code() {
            400 => "BadRequest",
            401 => "Unauthorized",
            404 => "NotFound",
            405 => "MethodNotAllowed",
            406 => "NotAcceptable",
            410 => "Expired",
            429 => "TooManyRequests",
            504 => "Timeout",
            _ => "ServiceUnavailable",
        }
    }

    /// Returns the body of a response, in the encoding of the request.
    #[must_use]
    pub fn body(&self, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Protobuf => envelope("Status", "v1", &self.protobuf()),
            Encoding::Json => self.json().into_bytes(),
        }
    }

    /// Returns the last event of a watch.
    pub(crate) fn event(&self, encoding: Encoding, out: &mut Vec<u8>) {
        match encoding {
            Encoding::Protobuf => event(out, "ERROR", "Status", "v1", &self.protobuf()),
            Encoding::Json => {
                out.extend_from_slice(format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", self.json()).as_bytes());
            }
        }
    }

    fn protobuf(&self) -> Vec<u8> {
        let (mut out, mut details) = (Vec::new(), Vec::new());
        put_bytes(&mut out, 1, b"");
        put_bytes(&mut out, 2, b"Failure");
        put_bytes(&mut out, 3, self.to_string().as_bytes());
        put_bytes(&mut out, 4, self.reason().as_bytes());
        if let Refusal::Ahead(..) = self {
            let mut cause = Vec::new();
            put_bytes(&mut cause, 1, AHEAD_CAUSE.as_bytes());
            put_bytes(&mut cause, 2, AHEAD.as_bytes());
            put_bytes(&mut details, 4, &cause);
        }
        if let Some(seconds) = self.retry_after() {
            put_number(&mut details, 5, u64::from(seconds));
        }
        if !details.is_empty() {
            put_bytes(&mut out, 5, &details);
        }
        put_number(&mut out, 6, u64::from(self.code()));
        out
    }

    fn json(&self) -> String {
        let mut message = String::new();
        quote(&self.to_string(), &mut message);
        let causes = match self {
            Refusal::Ahead(..) => format!("\"causes\":[{{\"reason\":\"{AHEAD_CAUSE}\",\"message\":\"{AHEAD}\"}}],"),
            _ => String::new(),
        };
        let details = self
            .retry_after()
            .map(|seconds| format!("\"details\":{{{causes}\"retryAfterSeconds\":{seconds}}},"))
            .unwrap_or_default();
        format!(
            "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\
             \"message\":{message},\"reason\":\"{}\",{details}\"code\":{}}}",
            self.reason(),
            self.code()
        )
    }
}

/// Text and cause by which clients recognize that a server lags behind.
const AHEAD: &str = "Too large resource version";
const AHEAD_CAUSE: &str = "ResourceVersionTooLarge";

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Unauthorized(reason) => write!(out, "Unauthorized: {reason}"),
            Refusal::NotFound => out.write_str("a relay has only lists and watches of the kinds that it follows"),
            Refusal::Method => out.write_str("a relay accepts only GET"),
            Refusal::Parameters(problem) => out.write_str(problem),
            Refusal::NotAcceptable => {
                out.write_str("only application/json and application/vnd.kubernetes.protobuf are available")
            }
            Refusal::Expired(version, start) => write!(out, "too old resource version: {version} ({start})"),
            Refusal::ExpiredPage => out.write_str("The provided continue parameter is too old"),
            Refusal::NewEpoch => out.write_str(
                "too old resource version: the API server has been restored from a backup or replaced; list again \
                 without a resource version",
            ),
            Refusal::TooSlow => out.write_str("too old resource version: the subscriber was too slow"),
            Refusal::Ahead(version, known) => write!(out, "Timeout: {AHEAD}: {version}, current: {known}"),
            Refusal::TooManyLists(_) => out.write_str("too many lists at once, please try again later"),
            Refusal::NotReady => out.write_str("the relay has not listed everything yet"),
            Refusal::NotFresh => out.write_str(
                "the relay cannot confirm that its state is the latest, because its API server does not answer; a \
                 request with resourceVersion=0 gets what it has",
            ),
        }
    }
}

impl From<SelectorError> for Refusal {
    fn from(error: SelectorError) -> Refusal {
        Refusal::Parameters(error.to_string())
    }
}
