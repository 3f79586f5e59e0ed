//! Parser for the checks in `checks.txt`.
//!
//! A paragraph is a check: `check NAME`, `says SOURCE: TEXT`, then its conditions and steps, one per line.
//!
//! | line | meaning |
//! |---|---|
//! | `needs cluster` | not applicable without a cluster |
//! | `needs endpoints` | not applicable if the server does not serve endpoints |
//! | `unless $NAME` | not applicable if the value is known |
//! | `ask NAME TYPE [with EXTRA] -> EXPECTATION` | query over UDP and TCP |
//! | `pipeline NAME TYPE -> EXPECTATION` | query several times over one TCP connection |
//! | `try NAME TYPE -> EXPECTATION` | like `ask`; not applicable if the response is NXDOMAIN |
//! | `reach NAME TYPE -> EXPECTATION` | like `ask` for a name the server may forward; not applicable if that fails |
//! | `search NAME TYPE -> EXPECTATION` | query through the search list, like the resolver of a Pod |
//! | `soon NAME TYPE -> EXPECTATION` | query over UDP until the expectation is met or time is up |
//! | `put KIND NAME {…}` | create or replace an object |
//! | `remove KIND NAME` | delete an object |
//! | `skip REASON` | never applicable |
//!
//! Placeholders such as `$zone` or `$web-4` are replaced at run time; a check whose placeholder has no value is not
//! applicable. A name may be `ptr:ADDRESS`, the reverse name of an address, or `longest:NAME`, a name of 255 bytes
//! that ends in NAME.

use wire::Type;

/// Built-in checks.
const CHECKS: &str = include_str!("checks.txt");

/// A check.
#[derive(Debug, Default)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// Source of the requirement, a colon, and the requirement.
    pub(crate) says: &'static str,
    pub(crate) needs_cluster: bool,
    pub(crate) needs_endpoints: bool,
    pub(crate) unless: Option<&'static str>,
    pub(crate) steps: Vec<Step>,
}

/// Step of a check.
#[derive(Debug)]
pub(crate) enum Step {
    Query(QueryMode, QuerySpec),
    Put { kind: &'static str, name: &'static str, rest: &'static str },
    Remove { kind: &'static str, name: &'static str },
    Skip(&'static str),
}

/// Way to send a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueryMode {
    Ask,
    Pipeline,
    Try,
    Reach,
    Search,
    Soon,
}

/// Query and expectation, with placeholders.
#[derive(Debug)]
pub(crate) struct QuerySpec {
    pub(crate) name: &'static str,
    pub(crate) qtype: Type,
    pub(crate) extra: QueryExtra,
    pub(crate) expectation: &'static str,
}

/// Additions to a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum QueryExtra {
    #[default]
    Nothing,
    /// EDNS version 0.
    Edns,
    /// EDNS with an unsupported version.
    Version,
    /// EDNS with an option code for local use (RFC 6891 §9).
    Option,
    /// EDNS with the DO bit.
    DnssecOk,
    /// RD is not set.
    NoRecursion,
}

/// Returns all checks, in order.
///
/// # Errors
/// Returns the first invalid line.
pub(crate) fn checks() -> Result<Vec<Check>, &'static str> {
    read(CHECKS)
}

fn read(text: &'static str) -> Result<Vec<Check>, &'static str> {
    let mut checks: Vec<Check> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').ok_or(line)?;
        if word == "check" {
            checks.push(Check { name: rest, ..Check::default() });
            continue;
        }
        read_line(checks.last_mut().ok_or(line)?, word, rest).ok_or(line)?;
    }
    Ok(checks)
}

fn read_line(check: &mut Check, word: &str, rest: &'static str) -> Option<()> {
    match word {
        "says" => check.says = rest,
        "needs" if rest == "cluster" => check.needs_cluster = true,
        "needs" if rest == "endpoints" => check.needs_endpoints = true,
        "unless" => check.unless = Some(rest.strip_prefix('$')?),
        "put" => {
            let (kind, rest) = rest.split_once(' ')?;
            let (name, rest) = rest.split_once(' ')?;
            check.steps.push(Step::Put { kind, name, rest });
        }
        "remove" => {
            let (kind, name) = rest.split_once(' ')?;
            check.steps.push(Step::Remove { kind, name });
        }
        "skip" => check.steps.push(Step::Skip(rest)),
        _ => check.steps.push(Step::Query(mode(word)?, question(rest)?)),
    }
    Some(())
}

fn mode(word: &str) -> Option<QueryMode> {
    Some(match word {
        "ask" => QueryMode::Ask,
        "pipeline" => QueryMode::Pipeline,
        "try" => QueryMode::Try,
        "reach" => QueryMode::Reach,
        "search" => QueryMode::Search,
        "soon" => QueryMode::Soon,
        _ => return None,
    })
}

fn question(text: &'static str) -> Option<QuerySpec> {
    let (asked, expectation) = text.split_once(" -> ")?;
    let (asked, extra) = match asked.split_once(" with ") {
        Some((asked, extra)) => (asked, extra_of(extra)?),
        None => (asked, QueryExtra::Nothing),
    };
    let (name, qtype) = asked.split_once(' ')?;
    Some(QuerySpec { name, qtype: qtype.parse().ok()?, extra, expectation })
}

fn extra_of(text: &str) -> Option<QueryExtra> {
    Some(match text {
        "edns" => QueryExtra::Edns,
        "version" => QueryExtra::Version,
        "option" => QueryExtra::Option,
        "dnssec-ok" => QueryExtra::DnssecOk,
        "no-rd" => QueryExtra::NoRecursion,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::Expectation;

    #[test]
    fn built_in_checks_parse_and_have_unique_names() {
        let checks = checks().unwrap();
        for check in &checks {
            assert!(check.says.contains(": ") && !check.steps.is_empty(), "{}", check.name);
            for step in &check.steps {
                let Step::Query(_, question) = step else { continue };
                let filled = question.expectation.replace('$', "");
                assert!(Expectation::read(&filled).is_ok(), "{}: {}", check.name, question.expectation);
            }
        }
        let mut names: Vec<_> = checks.iter().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), checks.len(), "each has a name of its own");
    }

    #[test]
    fn refuses_invalid_lines() {
        for text in
            ["ask a A -> nxdomain", "check x\nask a A", "check x\nask a NONSENSE -> nodata", "check x\nhope a b"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
