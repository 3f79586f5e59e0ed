//! Every check with a healthy cluster, and with a seeded fault that makes exactly its row fail.

mod faults;
mod output;
mod world;

use crate::report::{Mark, Report};
use crate::{all, select};
use faults::FAULTS;
use world::World;

/// Codes of the rows with findings.
fn found(report: &Report) -> Vec<&'static str> {
    report.rows.iter().filter(|row| !row.findings.is_empty()).map(|row| row.code).collect()
}

#[test]
fn a_healthy_cluster_has_only_fine_rows() {
    let report = World::healthy().report();
    let other: Vec<_> = report.rows.iter().filter(|row| row.outcome != Mark::Fine).collect();
    assert!(other.is_empty(), "{other:#?}");
}

#[test]
fn each_fault_makes_exactly_its_row_fail() {
    for (code, name, seed) in FAULTS {
        let mut world = World::healthy();
        seed(&mut world);
        let report = world.report();
        assert_eq!(found(&report), [*code], "{name}: {report}");
        let row = report.rows.iter().find(|row| row.code == *code).unwrap();
        assert!(row.findings.iter().all(|finding| !finding.text.is_empty() && !finding.fix.is_empty()), "{row:#?}");
    }
}

#[test]
fn every_check_has_a_fault() {
    let missing: Vec<_> = all().filter(|check| !FAULTS.iter().any(|(code, ..)| *code == check.code)).collect();
    assert!(missing.is_empty(), "{:?}", missing.iter().map(|check| check.code).collect::<Vec<_>>());
}

#[test]
fn rows_without_facts_say_why_they_could_not_look() {
    let report = Report::of(&crate::Facts::unknown("nobody looked"), &all().collect::<Vec<_>>(), "0.1.0");
    assert!(report.is_blind() && !report.has_findings());
    let silent: Vec<_> = report.rows.iter().filter(|row| row.reason.as_deref() != Some("nobody looked")).collect();
    assert!(silent.is_empty(), "{silent:#?}");
}

#[test]
fn codes_are_unique_and_named_after_their_area() {
    let codes: Vec<&str> = all().map(|check| check.code).collect();
    let is_first = |at: usize| !codes[..at].contains(&codes[at]);
    assert!((0..codes.len()).all(is_first), "{codes:?}");
    for check in all() {
        let text = [check.title, check.meaning, check.fix].join(" ");
        assert!(!check.needs.is_empty() && !text.contains("  "), "{}: {text}", check.code);
        assert!(!check.title.ends_with('.') && check.meaning.ends_with('.'), "{}", check.code);
    }
}

#[test]
fn selects_checks_by_area_and_code() {
    let codes = |only| select(only).map(|checks| checks.iter().map(|check| check.code).collect::<Vec<_>>());
    assert_eq!(codes(Some("rights")).unwrap(), ["PD-R01", "PD-R02", "PD-R03"]);
    assert_eq!(codes(Some("pd-u02")).unwrap(), ["PD-U02"]);
    assert_eq!(codes(None).unwrap().len(), all().count());
    assert!(codes(Some("dns")).unwrap_err().contains("`dns` is neither an area nor a code; use one of corefile, "));
}
