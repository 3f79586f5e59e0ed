//! What a hook says about a query.

use std::borrow::Cow;

use wire::{EdeCode, Name, Rcode, Type};

/// What a hook decided. It is small: most verdicts are one of the first two.
#[must_use]
#[derive(Debug)]
pub enum Verdict {
    /// Down: not mine. Up: nothing to add.
    Pass,
    /// The answer is in the response, written by this plugin. Down: turn around.
    Done,
    /// My zone, no such name: the response holds the denial; the engine applies `fallthrough`.
    Missing,
    /// It went wrong: the engine writes the code, the plugin `errors` reports the cause.
    Fail(Failure),
    /// Say nothing to the client.
    Drop,
    /// Another question first.
    Ask(Box<Ask>),
    /// Only the outside world knows: the engine calls [`Plugin::resolve`](crate::Plugin::resolve).
    Wait,
}

/// Something went wrong, or is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the client gets.
    pub rcode: Rcode,
    /// Why, in the terms of RFC 8914, for clients that speak EDNS.
    pub ede: EdeCode,
    /// Why, for the operator: the plugin `errors` logs it, if there is something to say.
    pub cause: Cow<'static, str>,
    /// The client gets the cause too, as the text of the Extended DNS Error: it names nothing of the operator's network.
    pub is_cause_public: bool,
}

impl Failure {
    /// SERVFAIL, with its reason.
    pub fn servfail(ede: EdeCode, cause: impl Into<Cow<'static, str>>) -> Failure {
        Failure { rcode: Rcode::SERVFAIL, ede, cause: cause.into(), is_cause_public: false }
    }

    /// REFUSED, with its reason.
    pub fn refused(ede: EdeCode, cause: impl Into<Cow<'static, str>>) -> Failure {
        Failure { rcode: Rcode::REFUSED, ede, cause: cause.into(), is_cause_public: false }
    }

    /// Sends the cause to the client too.
    #[must_use]
    pub fn with_public_cause(self) -> Failure {
        Failure { is_cause_public: true, ..self }
    }
}

/// A question that a plugin asks before it can answer.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The name.
    pub name: Name,
    /// The type; the class is IN.
    pub qtype: Type,
    /// Who is asked.
    pub whom: Whom,
}

/// Who answers the question of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Whom {
    /// The steps below the plugin that asks.
    Below,
    /// The whole server, from the routing on.
    #[default]
    Server,
}

/// What came of waiting.
#[derive(Clone, Debug)]
pub enum Resolved {
    /// A message that answers the question.
    Reply(Vec<u8>),
    /// Nothing: the next step is asked.
    Pass,
    /// It failed.
    Fail(Failure),
}
