//! Words for what a plugin did with a query, for people who ask why a name has the answer that it has.
//!
//! A plugin returns an [`Explanation`] from [`Plugin::explain`](crate::Plugin::explain), which is never called while
//! serving. The parts that programs read have stable names: the [`ReasonCode`] and the kind of an [`ExplainedObject`].

use core::fmt::Write;
use core::net::SocketAddr;
use core::num::NonZeroU64;
use core::time::Duration;

/// Description of what a plugin did with a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    /// Data that the answer comes from, in a few words: `Service shop/db, ClusterIP, rv 81234`.
    pub text: String,
    /// Object that the answer comes from.
    pub object: Option<ExplainedObject>,
    /// Reason for the answer, if there is more to say than that the data exists.
    pub reason: Option<Reason>,
    /// Age of a cached answer.
    pub cache: Option<CachedAnswer>,
    /// Upstreams that the query goes to, in no particular order.
    pub upstreams: Vec<ExplainedUpstream>,
    /// Endpoints that are in no answer because they are not ready, if they are the reason.
    pub not_ready: Option<ExplainedEndpoints>,
}

impl Explanation {
    /// Returns an explanation with a text only.
    pub fn new(text: impl Into<String>) -> Explanation {
        Explanation { text: text.into(), ..Explanation::default() }
    }

    /// Adds a reason.
    #[must_use]
    pub fn because(mut self, code: &'static ReasonCode, text: impl Into<String>) -> Explanation {
        self.reason = Some(Reason { code, text: text.into(), advice: None });
        self
    }

    /// Adds advice to the reason.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Explanation {
        if let Some(reason) = &mut self.reason {
            reason.advice = Some(advice.into());
        }
        self
    }

    /// Adds an object.
    #[must_use]
    pub fn of(mut self, kind: &'static str, namespace: &str, name: &str) -> Explanation {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        self.object = Some(ExplainedObject { kind, namespace, name, version: None });
        self
    }

    /// Adds the resource version to the object and to the text, if it is known.
    #[must_use]
    pub fn at_version(mut self, version: Option<NonZeroU64>) -> Explanation {
        if let (Some(object), Some(version)) = (&mut self.object, version) {
            object.version = Some(version.to_string());
            // Writing to a `String` cannot fail.
            let _ = write!(self.text, ", rv {version}");
        }
        self
    }
}

/// Kind of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Way down.
    Query,
    /// Way up.
    Response,
    /// Answer to a subquery.
    Subresponse,
}

/// Object of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedObject {
    /// Kind, as Kubernetes writes it.
    pub kind: &'static str,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Resource version, if it is known.
    pub version: Option<String>,
}

/// Stable code of a reason. The plugin that uses it declares it.
#[derive(Debug, PartialEq, Eq)]
pub struct ReasonCode {
    /// Code: `PE-K01`.
    pub code: &'static str,
    /// Meaning, in one sentence without a full stop.
    pub meaning: &'static str,
    /// Advice for the reader. Empty if nothing is wrong.
    pub advice: &'static str,
}

/// Reason for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Code.
    pub code: &'static ReasonCode,
    /// Reason with the names of this case.
    pub text: String,
    /// Advice for this case; `None` for the general advice of the code.
    pub advice: Option<String>,
}

/// Age of a cached answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedAnswer {
    /// True for a denial or a failure.
    pub denial: bool,
    /// Time since it was stored.
    pub age: Duration,
    /// TTL when it was stored.
    pub ttl: Duration,
    /// Time for which an expired answer is still served.
    pub stale: Duration,
}

impl CachedAnswer {
    /// Returns the time until it expires; `None` if it has expired.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        self.ttl.checked_sub(self.age).filter(|left| !left.is_zero())
    }
}

/// Endpoints that are not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExplainedEndpoints {
    /// Number of all of them.
    pub count: usize,
    /// The first ones: name of the pod, if it is known, and address.
    pub first: Vec<(Option<String>, String)>,
}

/// Upstream and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedUpstream {
    /// Address.
    pub address: SocketAddr,
    /// Transport: `udp`, `tcp`, `tls`, `https` or `quic`.
    pub transport: &'static str,
    /// State: `up`, `suspected` or `down`.
    pub state: &'static str,
    /// Time since it went down.
    pub down_for: Option<Duration>,
    /// Error of its last health check.
    pub error: Option<String>,
    /// Time since the last exchange that failed, and its error.
    pub last_failure: Option<(Duration, String)>,
}
