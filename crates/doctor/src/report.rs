//! Report: the outcome of all checks.

use serde::Serialize;

use crate::{Check, Facts, Finding, Gap, Looked, Severity};

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Everything that applies was looked at, and nothing was found.
    Fine,
    /// Queries can fail, be slow, or fail at the next change.
    Warning,
    /// Queries fail, or a change is refused.
    Error,
    /// The check could not look, or only at a part.
    Unknown,
    /// This cluster or this server does not have what the check is about.
    NotApplicable,
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
            Mark::NotApplicable => '·',
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
    /// Inspected facts.
    pub evidence: Option<String>,
    /// Reason why the check could not look, or only at a part, or why it does not apply.
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

    /// Returns true if no check could look, and at least one applies.
    #[must_use]
    pub fn is_blind(&self) -> bool {
        self.rows.iter().all(|row| row.evidence.is_none()) && self.is_incomplete()
    }

    /// Returns true if something that applies could not be looked at.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.rows.iter().any(Row::is_incomplete)
    }
}

impl Row {
    fn of(check: &Check, facts: &Facts) -> Row {
        let (code, area, title) = (check.code, check.area.name(), check.title);
        match (check.run)(facts) {
            Err(reason) => {
                let outcome = match reason.gap() {
                    Gap::NotLooked => Mark::Unknown,
                    Gap::DoesNotApply => Mark::NotApplicable,
                };
                let (evidence, reason) = (None, Some(reason.to_string()));
                Row { code, area, title, outcome, evidence, reason, findings: Vec::new() }
            }
            Ok(Looked { evidence, findings }) => {
                let findings: Vec<RowFinding> = findings.into_iter().map(|one| RowFinding::of(one, check)).collect();
                let is_error = findings.iter().any(|finding| finding.severity == Mark::Error);
                let reason = evidence.unseen();
                let outcome = match (is_error, findings.is_empty(), &reason) {
                    (true, ..) => Mark::Error,
                    (false, false, _) => Mark::Warning,
                    (false, true, Some(_)) => Mark::Unknown,
                    (false, true, None) => Mark::Fine,
                };
                Row { code, area, title, outcome, evidence: Some(evidence.seen().to_owned()), reason, findings }
            }
        }
    }

    /// Returns true if the check could not look at something that applies.
    #[must_use]
    pub fn is_incomplete(&self) -> bool {
        self.reason.is_some() && self.outcome != Mark::NotApplicable
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
