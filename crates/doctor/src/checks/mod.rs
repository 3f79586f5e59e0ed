//! Checks, one module per area.

mod corefile;
mod kubernetes;
mod local;
mod network;
mod network_policy;
mod pods;
mod rights;
mod services;
mod system;
mod top_level_domains;
mod upstreams;
mod workload;

use control::status::Problem;

use crate::{Area, Check, Facts, Finding, Known, Outcome};

/// Checks of all modules.
const AREAS: [&[Check]; 10] = [
    corefile::CHECKS,
    rights::CHECKS,
    kubernetes::CHECKS,
    workload::CHECKS,
    pods::CHECKS,
    network::CHECKS,
    local::CHECKS,
    upstreams::CHECKS,
    services::CHECKS,
    system::CHECKS,
];

/// Returns all checks, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let mut checks: Vec<&Check> = AREAS.into_iter().flatten().collect();
    checks.sort_by_key(|check| (Area::ALL.iter().position(|area| *area == check.area), check.code));
    checks.into_iter()
}

/// Returns the checks of an area, or the one with this code. All of them for `None`.
///
/// # Errors
/// The words that are possible, if none matches.
pub fn select(only: Option<&str>) -> Result<Vec<&'static Check>, String> {
    let Some(word) = only else { return Ok(all().collect()) };
    let is_it = |check: &&Check| check.area.name() == word || check.code.eq_ignore_ascii_case(word);
    let found: Vec<_> = all().filter(is_it).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let areas: Vec<&str> = Area::ALL.into_iter().map(Area::name).collect();
    Err(format!("`{word}` is neither an area nor a code; use one of {}, or a code such as PD-C01", areas.join(", ")))
}

/// Returns the problems of the status of the server with a code, as findings.
fn of_status(facts: &Facts, code: &str) -> Known<Vec<Finding>> {
    let server = crate::facts::known(&facts.server)?;
    let own = server.status.problems.iter().filter(|problem| problem.code == code);
    Ok(own.map(|problem: &Problem| Finding::new(problem.text.clone())).collect())
}

/// Returns the outcome of a check that finds at most one thing.
fn at_most(finding: Option<Finding>) -> Outcome {
    Ok(finding.into_iter().collect())
}
