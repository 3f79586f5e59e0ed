//! The checks as they are written in `checks.txt`, read.
//!
//! A paragraph is a check: `check NAME`, `says SOURCE: TEXT`, then what it is applicable to and its steps, one a line.
//!
//! | line | meaning |
//! |---|---|
//! | `needs cluster` | applicable only to a cluster, not to manifests |
//! | `needs endpoints` | applicable only if the server knows endpoints of Services |
//! | `unless $NAME` | applicable only if there is no such value |
//! | `ask NAME TYPE [with EXTRA] -> EXPECTATION` | over UDP and over TCP |
//! | `pipeline NAME TYPE -> EXPECTATION` | several times over one TCP connection |
//! | `try NAME TYPE -> EXPECTATION` | as `ask`, but NXDOMAIN makes the check not applicable |
//! | `reach NAME TYPE -> EXPECTATION` | as `ask`, where others may have to be asked: a failure of theirs makes it not applicable |
//! | `search NAME TYPE -> EXPECTATION` | as the resolver of a Pod asks, through its search list |
//! | `soon NAME TYPE -> EXPECTATION` | as `ask` over UDP, again and again until it holds or has taken too long |
//! | `put KIND NAME {…}` | creates an object or replaces it |
//! | `remove KIND NAME` | deletes it |
//! | `skip REASON` | never applicable |
//!
//! Values, such as `$zone` or `$web-4`, stand for what is known at run time; a check whose value is not known is not
//! applicable. A name may be `ptr:ADDRESS`, its reverse name, or `longest:NAME`, 255 octets that end in that name.

use wire::Type;

/// The checks that are built in.
const CHECKS: &str = include_str!("checks.txt");

/// A check.
#[derive(Debug, Default)]
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// Where it is written down, and what is written there in our words.
    pub(crate) says: &'static str,
    pub(crate) needs_cluster: bool,
    pub(crate) needs_endpoints: bool,
    pub(crate) unless: Option<&'static str>,
    pub(crate) steps: Vec<Step>,
}

/// What is done.
#[derive(Debug)]
pub(crate) enum Step {
    Ask(Manner, Question),
    Put { kind: &'static str, name: &'static str, rest: &'static str },
    Remove { kind: &'static str, name: &'static str },
    Skip(&'static str),
}

/// How it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    Ask,
    Pipeline,
    Try,
    Reach,
    Search,
    Soon,
}

/// What is asked and expected; both with values that are still to be filled in.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) name: &'static str,
    pub(crate) qtype: Type,
    pub(crate) extra: Extra,
    pub(crate) expectation: &'static str,
}

/// What a query has beside its question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Extra {
    #[default]
    Nothing,
    /// EDNS, version 0.
    Edns,
    /// EDNS of a version that does not exist.
    Version,
    /// EDNS with an option of local use (RFC 6891 §9).
    Option,
    /// EDNS with DO.
    DnssecOk,
    /// RD is not set.
    NoRecursion,
}

/// All checks, in order.
///
/// # Errors
/// The first line that is no line of a check.
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
        _ => check.steps.push(Step::Ask(manner(word)?, question(rest)?)),
    }
    Some(())
}

fn manner(word: &str) -> Option<Manner> {
    Some(match word {
        "ask" => Manner::Ask,
        "pipeline" => Manner::Pipeline,
        "try" => Manner::Try,
        "reach" => Manner::Reach,
        "search" => Manner::Search,
        "soon" => Manner::Soon,
        _ => return None,
    })
}

fn question(text: &'static str) -> Option<Question> {
    let (asked, expectation) = text.split_once(" -> ")?;
    let (asked, extra) = match asked.split_once(" with ") {
        Some((asked, extra)) => (asked, extra_of(extra)?),
        None => (asked, Extra::Nothing),
    };
    let (name, qtype) = asked.split_once(' ')?;
    Some(Question { name, qtype: qtype.parse().ok()?, extra, expectation })
}

fn extra_of(text: &str) -> Option<Extra> {
    Some(match text {
        "edns" => Extra::Edns,
        "version" => Extra::Version,
        "option" => Extra::Option,
        "dnssec-ok" => Extra::DnssecOk,
        "no-rd" => Extra::NoRecursion,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::Expectation;

    #[test]
    fn the_checks_can_be_read() {
        let checks = checks().unwrap();
        for check in &checks {
            assert!(check.says.contains(": ") && !check.steps.is_empty(), "{}", check.name);
            for step in &check.steps {
                let Step::Ask(_, question) = step else { continue };
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
    fn what_is_no_check_is_found() {
        for text in
            ["ask a A -> nxdomain", "check x\nask a A", "check x\nask a NONSENSE -> nodata", "check x\nhope a b"]
        {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
