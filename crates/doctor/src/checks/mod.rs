//! Checks, one module per area.

mod corefile;
mod every_node;
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

use core::fmt;

use control::status::{Problem, ProblemCode};

use crate::{Area, Check, Facts, Finding, Known};

/// Checks of all modules.
const AREAS: [&[Check]; 11] = [
    corefile::CHECKS,
    rights::CHECKS,
    kubernetes::CHECKS,
    workload::CHECKS,
    pods::CHECKS,
    network::CHECKS,
    local::CHECKS,
    every_node::CHECKS,
    upstreams::CHECKS,
    services::CHECKS,
    system::CHECKS,
];

/// Returns all checks, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Check> {
    let mut checks: Vec<&Check> = AREAS.into_iter().flatten().collect();
    checks.sort_unstable_by_key(|check| (Area::ALL.iter().position(|area| *area == check.area), check.code));
    checks.into_iter()
}

/// Returns the checks of an area, or the one with this code. All of them for `None`. The case does not matter, an area
/// may be in the singular or plural, and a code may lack `PD-`.
///
/// # Errors
/// No check matches.
pub fn select(only: Option<&str>) -> Result<Vec<&'static Check>, SelectError> {
    let Some(word) = only else { return Ok(all().collect()) };
    let wanted = word.to_ascii_lowercase();
    let is_it = |check: &&Check| {
        let code = check.code.to_ascii_lowercase();
        singular(check.area.name()) == singular(&wanted) || code == wanted || code.strip_prefix("pd-") == Some(&wanted)
    };
    let found: Vec<_> = all().filter(is_it).collect();
    if found.is_empty() { Err(SelectError(word.to_owned())) } else { Ok(found) }
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').unwrap_or(word)
}

/// Error: a word is neither an area nor the code of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectError(String);

impl fmt::Display for SelectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let areas: Vec<&str> = Area::ALL.into_iter().map(Area::name).collect();
        let SelectError(word) = self;
        write!(out, "`{word}` is neither an area nor a code; use one of {}, or a code such as PD-C01", areas.join(", "))
    }
}

impl core::error::Error for SelectError {}

/// Returns the problems of the status of the server with a code.
fn problems_of(facts: &Facts, code: ProblemCode) -> Known<impl Iterator<Item = &Problem>> {
    let server = crate::known::known(&facts.server)?;
    Ok(server.status.problems.iter().filter(move |problem| problem.code == code))
}

/// Returns the problems of the status of the server with a code, as findings.
fn of_status(facts: &Facts, code: ProblemCode) -> Known<Vec<Finding>> {
    Ok(problems_of(facts, code)?.map(|problem| Finding::new(problem.text.clone())).collect())
}
