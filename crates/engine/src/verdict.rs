//! Verdicts: how a hook of a plugin tells the engine to proceed with a query.
//!
//! A hook returns a [`Verdict`]. The direction in which the query travels decides where it continues:
//!
//! | verdict | on the way down | on the way up |
//! |---|---|---|
//! | `Pass` | next step | next step above |
//! | `Done` | turns around: the steps above see the response | next step above |
//! | `Missing` | next step if `fallthrough` covers the name, else as `Done` | next step above |
//! | `Fail` | turns around with an error response | replaces the response by an error |
//! | `Drop` | turns around; the client gets no response | the client gets no response |
//! | `Subquery` | runs a subquery, then `on_subresponse` | the same |
//! | `Wait` | runs `resolve`, then `on_resolved` | the same |
//!
//! A plugin reports a denial of a name in its own zone as `Missing`, not `Done`. Otherwise `fallthrough` has no
//! effect.

use std::borrow::Cow;

use wire::{EdeCode, Name, Rcode, Reply, Type};

/// Decision of a hook. The common variants, `Pass` and `Done`, carry no data.
#[must_use]
#[derive(Debug)]
pub enum Verdict {
    /// Continues with the next step: the plugin does not handle this query, or leaves the response unchanged.
    Pass,
    /// The plugin wrote the answer to the response. On the way down, the query turns around here.
    Done,
    /// The name does not exist in the plugin's zone. The response contains the denial, and the engine applies
    /// `fallthrough`.
    Missing,
    /// Answers with an error. The engine writes the response code, and the plugin *errors* logs the cause.
    Fail(Failure),
    /// Sends no response to the client.
    Drop,
    /// Runs a subquery first. Its answer goes to [`Plugin::on_subresponse`](crate::Plugin::on_subresponse).
    Subquery(Box<Subquery>),
    /// Waits for I/O: the engine calls [`Plugin::resolve`](crate::Plugin::resolve).
    Wait,
}

/// Error response and its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Response code for the client.
    pub rcode: Rcode,
    /// Extended DNS Error code (RFC 8914), sent to clients that use EDNS.
    pub ede: EdeCode,
    /// Cause for the operator, logged by the plugin *errors*. Empty if there is nothing to log.
    pub cause: Cow<'static, str>,
    /// Text of the Extended DNS Error. It says what failed, and must not reveal names or addresses of the operator's
    /// network.
    pub text: Cow<'static, str>,
}

impl Failure {
    /// Returns a SERVFAIL with this cause. The client gets a constant cause too, and otherwise a text about the code.
    pub fn servfail(ede: EdeCode, cause: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(Rcode::SERVFAIL, ede, cause.into())
    }

    /// Returns a REFUSED with this cause. The client gets a constant cause too, and otherwise a text about the code.
    pub fn refused(ede: EdeCode, cause: impl Into<Cow<'static, str>>) -> Failure {
        Failure::new(Rcode::REFUSED, ede, cause.into())
    }

    fn new(rcode: Rcode, ede: EdeCode, cause: Cow<'static, str>) -> Failure {
        let text = match cause {
            // A constant names nothing of the operator's network.
            Cow::Borrowed(constant) if !constant.is_empty() => constant,
            _ => text_of(ede),
        };
        Failure { rcode, ede, cause, text: Cow::Borrowed(text) }
    }

    /// Sends the cause to the client as well.
    #[must_use]
    pub fn with_public_cause(self) -> Failure {
        Failure { text: self.cause.clone(), ..self }
    }

    /// Sends this text to the client.
    #[must_use]
    pub fn with_text(self, text: &'static str) -> Failure {
        Failure { text: Cow::Borrowed(text), ..self }
    }
}

/// Returns the text for clients about an error without a text of its own.
fn text_of(ede: EdeCode) -> &'static str {
    match ede {
        EdeCode::NOT_READY => "the data of this zone is not loaded yet",
        EdeCode::NOT_AUTHORITATIVE => "this server does not serve the name",
        EdeCode::NO_REACHABLE_AUTHORITY => "no upstream answered in time",
        EdeCode::NETWORK_ERROR => "the connection to the upstream failed",
        EdeCode::INVALID_DATA => "the data for the answer is invalid",
        _ => "the query could not be processed",
    }
}

/// Subquery: a question that a plugin asks before it can answer its own.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// Name.
    pub name: Name,
    /// Type. The class is always IN.
    pub qtype: Type,
    /// Starting point.
    pub target: SubqueryTarget,
}

/// Starting point of a subquery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SubqueryTarget {
    /// The step below the plugin that asks. The subquery stays in the same server block.
    Below,
    /// Like `Below`, unless a client's query for this name would reach another server block: then like `Top`.
    BelowOrOther,
    /// The whole server: the subquery is routed like a query of a client and may reach another server block.
    #[default]
    Top,
}

/// Outcome of [`Plugin::resolve`](crate::Plugin::resolve).
#[derive(Clone, Debug)]
pub enum Resolved {
    /// Reply of an upstream, or one that looks like it.
    Reply(Reply),
    /// No reply; the query continues with the next step.
    Pass,
    /// Error response.
    Fail(Failure),
}
