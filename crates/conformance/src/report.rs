//! What came out, as lines for people and as JSON for machines.

use core::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// What came out of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds; for a change also how long it took to be seen.
    Pass(Option<Duration>),
    /// It does not: what was asked, expected and answered.
    Fail(String),
    /// It cannot be asked here: why.
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

/// A check that was made.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Such as `headless/srv`.
    pub name: &'static str,
    /// Where it is written down, and what.
    pub says: &'static str,
    /// What came out.
    pub outcome: Outcome,
}

impl fmt::Display for Checked {
    /// A line, and a second one for what is to be said of the outcome.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:4}  {:30} {}", self.outcome.word(), self.name, self.says)?;
        match &self.outcome {
            Outcome::Pass(None) => Ok(()),
            Outcome::Pass(Some(time)) => write!(out, " (seen after {:.2} s)", time.as_secs_f64()),
            Outcome::Fail(why) | Outcome::NotApplicable(why) => write!(out, "\n      {:30} {why}", ""),
        }
    }
}

/// All checks that were made.
#[derive(Clone, Debug)]
pub struct Report {
    /// The server's address.
    pub server: std::net::SocketAddr,
    /// The zone of the cluster, without its final dot.
    pub zone: String,
    /// Where the objects were.
    pub namespace: String,
    /// In order.
    pub checks: Vec<Checked>,
}

impl Report {
    /// How many checks passed, failed and were not applicable.
    #[must_use]
    pub fn counts(&self) -> (usize, usize, usize) {
        let count = |word| self.checks.iter().filter(|checked| checked.outcome.word() == word).count();
        (count("pass"), count("FAIL"), count("n/a"))
    }

    /// The last line for people.
    #[must_use]
    pub fn summary(&self) -> String {
        let (passed, failed, not_applicable) = self.counts();
        format!("{} checks: {passed} passed, {failed} failed, {not_applicable} not applicable", self.checks.len())
    }

    /// All of it for machines.
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
