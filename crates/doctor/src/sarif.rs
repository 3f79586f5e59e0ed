//! SARIF 2.1.0 log (OASIS) of a report.

use serde_json::{Value, json};

use crate::report::{Mark, Report, RowFinding};
use crate::{Check, checks};

impl Report {
    /// Returns a SARIF log with one run.
    #[must_use]
    pub fn sarif(&self) -> Value {
        let driver = json!({ "name": "portolan", "version": self.version, "rules": self.sarif_rules() });
        json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{ "tool": { "driver": driver }, "results": self.sarif_results() }],
        })
    }

    /// Returns the rules that have results.
    fn sarif_rules(&self) -> Vec<Value> {
        checks::all().filter(|check| self.found(check.code)).map(rule).collect()
    }

    /// Returns the results. They have no position in a file; `logicalLocations` names the object.
    fn sarif_results(&self) -> Vec<Value> {
        let rules: Vec<&str> = checks::all().map(|check| check.code).filter(|code| self.found(code)).collect();
        let index = |code: &str| rules.iter().position(|known| *known == code).unwrap_or_default();
        let of_row = |row: &crate::Row| {
            row.findings.iter().map(|finding| result(row.code, index(row.code), finding)).collect::<Vec<_>>()
        };
        self.rows.iter().flat_map(of_row).collect()
    }

    fn found(&self, code: &str) -> bool {
        self.rows.iter().any(|row| row.code == code && !row.findings.is_empty())
    }
}

fn rule(check: &'static Check) -> Value {
    json!({
        "id": check.code,
        "shortDescription": { "text": check.title },
        "help": { "text": format!("{} {}", check.meaning, check.fix) },
    })
}

fn result(code: &str, index: usize, finding: &RowFinding) -> Value {
    let level = if finding.severity == Mark::Error { "error" } else { "warning" };
    let mut object = json!({
        "ruleId": code,
        "ruleIndex": index,
        "level": level,
        "message": { "text": format!("{} ({})", finding.text, finding.fix) },
    });
    if let Some(name) = &finding.object {
        object["locations"] = json!([{ "logicalLocations": [{ "fullyQualifiedName": name, "kind": "resource" }] }]);
    }
    object
}
