//! Text, JSON and SARIF of a report, compared with files. `UPDATE_GOLDEN=1` writes them.

use serde_json::json;

use super::world::World;
use crate::report::Report;
use crate::{Attempt, Unknown};

const TEXT: &str = include_str!("report.txt");
const FIXES: &str = include_str!("fixes.txt");
const JSON: &str = include_str!("report.json");

/// Returns the report of a cluster with an error, warnings, several findings of one check, and checks that could not
/// look.
fn report() -> Report {
    let mut world = World::healthy();
    world.report_problem("PD-C03", "the last reload failed 4 m ago: unknown directive `redy`");
    world.json["pods"] = "the API server refuses to list pods (403)".into();
    world.json["disruption_budgets"] = json!([]);
    world.facts.conntrack = Err(Unknown::new("the kernel does not show it here"));
    world.facts.upstreams.as_mut().unwrap()[0].attempts = vec![Attempt::Silent; 5];
    for (at, name) in ["api", "web", "db", "cache", "jobs", "mail"].into_iter().enumerate() {
        let address = format!("192.0.2.{at}");
        let spec = json!({ "type": "ExternalName", "externalName": address });
        world.add("services", json!({ "metadata": { "name": name, "namespace": "team-\u{1b}[31m" }, "spec": spec }));
    }
    world.report()
}

#[allow(clippy::disallowed_methods, reason = "a test may write its golden files")]
fn compare(name: &str, actual: &str, expected: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let path = format!("{}/src/tests/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, actual).unwrap();
    } else {
        assert_eq!(actual, expected, "{name}; UPDATE_GOLDEN=1 writes the file");
    }
}

#[test]
fn text_json_and_sarif_are_as_recorded() {
    let report = report();
    compare("report.txt", &report.to_string(), TEXT);
    compare("fixes.txt", &report.fix_text(), FIXES);
    let sarif = report.sarif();
    let rows: Vec<_> = report.rows.iter().filter(|row| row.outcome != crate::Mark::Fine).collect();
    let value = json!({ "service": report.service, "cut": report.cut, "rows": rows, "sarif": sarif });
    compare("report.json", &format!("{value:#}\n"), JSON);
}

#[test]
fn names_of_objects_cannot_change_the_terminal() {
    let text = report().to_string();
    assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}"), "{text}");
}
