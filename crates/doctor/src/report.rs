//! Report: the outcome of all checks.

use serde::Serialize;

use crate::{Check, Facts, Finding, Severity};

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Nothing found.
    Fine,
    /// Queries can fail, be slow, or fail at the next change.
    Warning,
    /// Queries fail, or a change is refused.
    Error,
    /// The check could not look.
    Unknown,
}

impl Mark {
    /// Returns the character for the text.
    #[must_use]
    pub const fn character(self) -> char {
        match self {
            Mark::Fine => '✓',
            Mark::Warning => '‼',
            Mark::Error => '✗',
            Mark::Unknown => '–',
        }
    }
}

impl From<Severity> for Mark {
    fn from(severity: Severity) -> Mark {
        match severity {
            Severity::Warning => Mark::Warning,
            Severity::Error => Mark::Error,
        }
    }
}

/// Outcome of all checks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Version of this program.
    pub version: String,
    /// DNS Service that was looked at, as `NAMESPACE/NAME`.
    pub service: Option<String>,
    /// Resources of which the cluster has more objects than were read.
    pub cut: Vec<String>,
    /// Rows, in the order of the checks.
    pub rows: Vec<Row>,
}

/// Outcome of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Stable code.
    pub code: &'static str,
    /// Area.
    pub area: &'static str,
    /// Statement that is true if all is well.
    pub title: &'static str,
    /// Worst outcome.
    pub outcome: Mark,
    /// Reason why the check could not look.
    pub reason: Option<String>,
    /// Findings.
    pub findings: Vec<RowFinding>,
}

/// Something that a check found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowFinding {
    /// Severity: warning or error.
    pub severity: Mark,
    /// Description.
    pub text: String,
    /// Object that it is about.
    pub object: Option<String>,
    /// What to do.
    pub fix: String,
}

impl Report {
    /// Runs checks.
    #[must_use]
    pub fn of(facts: &Facts, checks: &[&'static Check], version: &str) -> Report {
        Report {
            version: version.to_owned(),
            service: facts.dns().ok().map(|dns| dns.path()),
            cut: facts.objects.cut().into_iter().map(str::to_owned).collect(),
            rows: checks.iter().map(|check| Row::of(check, facts)).collect(),
        }
    }

    /// Number of rows with this outcome.
    #[must_use]
    pub fn count(&self, outcome: Mark) -> usize {
        self.rows.iter().filter(|row| row.outcome == outcome).count()
    }

    /// Returns true if a check found something.
    #[must_use]
    pub fn has_findings(&self) -> bool {
        self.rows.iter().any(|row| !row.findings.is_empty())
    }

    /// Returns true if no check could look.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.rows.iter().all(|row| row.outcome == Mark::Unknown)
    }
}

impl Row {
    fn of(check: &Check, facts: &Facts) -> Row {
        let (outcome, reason, findings) = match (check.run)(facts) {
            Err(reason) => (Mark::Unknown, Some(reason.to_string()), Vec::new()),
            Ok(findings) => {
                let findings: Vec<RowFinding> = findings.into_iter().map(|one| RowFinding::of(one, check)).collect();
                let is_error = findings.iter().any(|finding| finding.severity == Mark::Error);
                let worst = match (is_error, findings.is_empty()) {
                    (true, _) => Mark::Error,
                    (false, false) => Mark::Warning,
                    (false, true) => Mark::Fine,
                };
                (worst, None, findings)
            }
        };
        Row { code: check.code, area: check.area.name(), title: check.title, outcome, reason, findings }
    }
}

impl RowFinding {
    fn of(finding: Finding, check: &Check) -> RowFinding {
        let Finding { text, fix, severity, object } = finding;
        RowFinding {
            severity: severity.unwrap_or(check.severity).into(),
            text,
            object,
            fix: fix.unwrap_or_else(|| check.fix.to_owned()),
        }
    }
}
