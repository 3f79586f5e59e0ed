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

/// Declares the kinds with their codes, so that none is missing in a list of them.
macro_rules! problem_codes {
    ($($(#[$about:meta])* $kind:ident = $code:literal,)*) => {
        /// Kind of a problem. Its code is that of the check of `portolan doctor` with the same subject.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum ProblemCode {
            $($(#[$about])* #[serde(rename = $code)] $kind,)*
            /// Code of another version.
            #[serde(untagged)]
            Other(String),
        }

        impl ProblemCode {
            /// Codes of all kinds that this version reports, in the order of the codes.
            pub const ALL: &[&str] = &[$($code),*];

            /// Returns the code.
            #[must_use]
            pub fn name(&self) -> &str {
                match self {
                    $(ProblemCode::$kind => $code,)*
                    ProblemCode::Other(code) => code,
                }
            }
        }
    };
}

problem_codes! {
    /// Replicas serve different configurations.
    ReplicasDiffer = "PD-C02",
    /// The last reload failed.
    ReloadFailed = "PD-C03",
    /// Memory or CPU are short.
    ResourcesShort = "PD-K06",
    /// A plugin is not ready.
    NotReady = "PD-K09",
    /// The API server refuses a watch.
    WatchRefused = "PD-R01",
    /// A watch fails, is silent, or has not begun.
    WatchLate = "PD-R02",
    /// A certificate ends soon or has ended.
    CertificateEnds = "PD-T02",
    /// A limit was reached.
    LimitReached = "PD-T05",
    /// Clients get failures, or an upstream sends them.
    AnswersFail = "PD-T06",
    /// The keeper has started the server again.
    Restarted = "PD-T07",
    /// Queries come back to this server.
    ForwardingLoop = "PD-U01",
    /// An upstream does not answer.
    UpstreamFails = "PD-U02",
    /// Somebody may be guessing message IDs.
    UnwantedReplies = "PD-U06",
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
