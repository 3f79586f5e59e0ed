//! Results of the checks, as lines of text and as JSON.

use core::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// Outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Passed. For a change, the time until it took effect.
    Pass(Option<Duration>),
    /// Failed: the query, the expectation and the response.
    Fail(String),
    /// Not applicable here, with the reason.
    NotApplicable(String),
}

impl Outcome {
    const fn word(&self) -> &'static str {
        match self {
            Outcome::Pass(_) => "pass",
            Outcome::Fail(_) => "FAIL",
            Outcome::NotApplicable(_) => "n/a",
        }
    }
}

/// Result of a check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Name, such as `headless/srv`.
    pub name: &'static str,
    /// Source of the requirement, a colon, and the requirement.
    pub says: &'static str,
    /// Outcome.
    pub outcome: Outcome,
}

impl fmt::Display for Checked {
    /// Writes one line, and a second one if the outcome has details.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:4}  {:30} {}", self.outcome.word(), self.name, self.says)?;
        match &self.outcome {
            Outcome::Pass(None) => Ok(()),
            Outcome::Pass(Some(time)) => write!(out, " (seen after {:.2} s)", time.as_secs_f64()),
            Outcome::Fail(why) | Outcome::NotApplicable(why) => write!(out, "\n      {:30} {why}", ""),
        }
    }
}

/// Results of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Address of the server.
    pub server: std::net::SocketAddr,
    /// Zone of the cluster, without a trailing dot.
    pub zone: String,
    /// Namespace of the objects.
    pub namespace: String,
    /// Results in order.
    pub checks: Vec<Checked>,
}

impl Report {
    /// Returns the number of checks that passed, failed, and were not applicable.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |word| self.checks.iter().filter(|checked| checked.outcome.word() == word).count();
        (count("pass"), count("FAIL"), count("n/a"))
    }

    /// Returns the last line of the text output.
    #[must_use]
    pub fn summary(&self) -> String {
        let (passed, failed, not_applicable) = self.counts();
        format!("{} checks: {passed} passed, {failed} failed, {not_applicable} not applicable", self.checks.len())
    }

    /// Returns the report as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (passed, failed, not_applicable) = self.counts();
        json!({
            "server": self.server.to_string(), "zone": self.zone, "namespace": self.namespace,
            "specification": crate::SPECIFICATION,
            "passed": passed, "failed": failed, "notApplicable": not_applicable,
            "checks": self.checks.iter().map(Checked::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Checked {
    fn to_json(&self) -> Value {
        let (source, text) = self.says.split_once(": ").unwrap_or((self.says, ""));
        let mut object = json!({ "name": self.name, "source": source, "text": text });
        let (outcome, detail) = match &self.outcome {
            Outcome::Pass(None) => ("pass", None),
            Outcome::Pass(Some(time)) => ("pass", Some(("seconds", json!(time.as_secs_f64())))),
            Outcome::Fail(why) => ("fail", Some(("detail", json!(why)))),
            Outcome::NotApplicable(why) => ("not applicable", Some(("detail", json!(why)))),
        };
        object["outcome"] = outcome.into();
        if let Some((name, value)) = detail {
            object[name] = value;
        }
        object
    }
}
