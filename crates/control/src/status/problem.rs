//! Problems that a server reports in its status.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Problem that needs attention.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// Stable code, such as `PD-U02`.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub code: ProblemCode,
    /// Description of the problem, with the names of this case.
    pub text: String,
    /// Address and port of the upstream that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
}

impl Problem {
    /// Creates a problem that is not about a single upstream.
    #[must_use]
    pub fn new(code: ProblemCode, text: impl Into<String>) -> Problem {
        Problem { code, text: text.into(), upstream: None }
    }

    /// Creates a problem of an upstream.
    #[must_use]
    pub fn of_upstream(code: ProblemCode, address: &str, text: impl Into<String>) -> Problem {
        Problem { code, text: text.into(), upstream: Some(address.to_owned()) }
    }
}

/// Kind of a problem. Its code is that of the check of `portolan doctor` with the same subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProblemCode {
    /// Replicas serve different configurations.
    #[serde(rename = "PD-C02")]
    ReplicasDiffer,
    /// The last reload failed.
    #[serde(rename = "PD-C03")]
    ReloadFailed,
    /// Memory or CPU are short.
    #[serde(rename = "PD-K06")]
    ResourcesShort,
    /// A plugin is not ready.
    #[serde(rename = "PD-K09")]
    NotReady,
    /// The API server refuses a watch.
    #[serde(rename = "PD-R01")]
    WatchRefused,
    /// A watch fails, is silent, or has not begun.
    #[serde(rename = "PD-R02")]
    WatchLate,
    /// A certificate ends soon or has ended.
    #[serde(rename = "PD-T02")]
    CertificateEnds,
    /// A limit was reached.
    #[serde(rename = "PD-T05")]
    LimitReached,
    /// Clients get failures, or an upstream sends them.
    #[serde(rename = "PD-T06")]
    AnswersFail,
    /// The keeper has started the server again.
    #[serde(rename = "PD-T07")]
    Restarted,
    /// Queries come back to this server.
    #[serde(rename = "PD-U01")]
    ForwardingLoop,
    /// An upstream does not answer.
    #[serde(rename = "PD-U02")]
    UpstreamFails,
    /// Somebody may be guessing message IDs.
    #[serde(rename = "PD-U06")]
    UnwantedReplies,
    /// Code of another version.
    #[serde(untagged)]
    Other(String),
}

impl ProblemCode {
    /// Returns the code.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            ProblemCode::ReplicasDiffer => "PD-C02",
            ProblemCode::ReloadFailed => "PD-C03",
            ProblemCode::ResourcesShort => "PD-K06",
            ProblemCode::NotReady => "PD-K09",
            ProblemCode::WatchRefused => "PD-R01",
            ProblemCode::WatchLate => "PD-R02",
            ProblemCode::CertificateEnds => "PD-T02",
            ProblemCode::LimitReached => "PD-T05",
            ProblemCode::AnswersFail => "PD-T06",
            ProblemCode::Restarted => "PD-T07",
            ProblemCode::ForwardingLoop => "PD-U01",
            ProblemCode::UpstreamFails => "PD-U02",
            ProblemCode::UnwantedReplies => "PD-U06",
            ProblemCode::Other(code) => code,
        }
    }
}

impl fmt::Display for ProblemCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_codes_of_this_and_other_versions() {
        for (code, name) in [
            (ProblemCode::UpstreamFails, "PD-U02"),
            (ProblemCode::CertificateEnds, "PD-T02"),
            (ProblemCode::Other("PD-X99".to_owned()), "PD-X99"),
        ] {
            let json = serde_json::to_string(&code).expect("JSON");
            assert_eq!(json, format!("\"{name}\""));
            assert_eq!(serde_json::from_str::<ProblemCode>(&json).expect("a code"), code);
            assert_eq!(code.to_string(), name);
        }
    }
}
