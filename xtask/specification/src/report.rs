//! Counts of what agrees, and the classes of what differs with examples.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use specification::compare::differences;
use specification::message::Response;
use specification::scope::Case;
use specification::text;

use crate::ask;
use xtask::Failed;

/// Zone or cluster with its cases.
pub(crate) struct Subject {
    /// Text of the zone or the cluster.
    pub(crate) setting: String,
    pub(crate) cases: Vec<Case>,
}

/// Verdict on a case.
pub(crate) struct Verdict<'s> {
    subject: &'s Subject,
    case: &'s Case,
    /// Response, if one came.
    response: Option<Response>,
    /// Differences, none if the response is as expected.
    differences: Vec<String>,
}

impl Verdict<'_> {
    /// Returns true if the response is not as expected.
    pub(crate) const fn differs(&self) -> bool {
        !self.differences.is_empty()
    }
}

/// Asks a server all cases.
pub(crate) fn verdicts(server: SocketAddr, subjects: &[Subject]) -> Result<Vec<Verdict<'_>>, Failed> {
    let all: Vec<(&Subject, &Case)> =
        subjects.iter().flat_map(|subject| subject.cases.iter().map(move |case| (subject, case))).collect();
    let responses = ask::all(server, all.iter().map(|(_, case)| &case.question))?;
    let verdicts = all.into_iter().zip(responses).map(|((subject, case), response)| Verdict {
        differences: match &response {
            Ok(response) => differences(&case.answer, response),
            Err(what) => vec![what.clone()],
        },
        subject,
        case,
        response: response.ok(),
    });
    Ok(verdicts.collect())
}

/// Maximum number of ways through the model that are printed for a class.
const WAYS_MAX: usize = 5;

/// Prints the result of a server: the counts, and the classes of equal differences.
pub(crate) fn print(server: &str, what: &str, verdicts: &[Verdict<'_>], examples: usize) {
    let mut classes: BTreeMap<String, Vec<&Verdict<'_>>> = BTreeMap::new();
    for verdict in verdicts.iter().filter(|verdict| !verdict.differences.is_empty()) {
        classes.entry(verdict.differences.join(", ")).or_default().push(verdict);
    }
    let differ: usize = classes.values().map(Vec::len).sum();
    println!("{server}: {what}: {} cases agree, {differ} differ in {} classes", verdicts.len() - differ, classes.len());
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(_, verdicts)| std::cmp::Reverse(verdicts.len()));
    for (class, verdicts) in classes {
        println!("\n{} × {class}", verdicts.len());
        let types: BTreeSet<String> = verdicts.iter().map(|verdict| verdict.case.question.qtype.to_string()).collect();
        println!("    types: {}", types.into_iter().collect::<Vec<_>>().join(" "));
        let ways: BTreeSet<String> = verdicts.iter().map(|verdict| way(verdict.case)).collect();
        println!("    {} ways: {}", ways.len(), ways.into_iter().take(WAYS_MAX).collect::<Vec<_>>().join("; "));
        verdicts.iter().take(examples).for_each(|verdict| print_example(verdict));
    }
}

/// Returns the branches that lead to an answer.
fn way(case: &Case) -> String {
    let mut branches: Vec<String> = case.branches.iter().map(ToString::to_string).collect();
    branches.dedup();
    branches.join(" ")
}

fn print_example(verdict: &Verdict<'_>) {
    let Verdict { subject, case, response, .. } = verdict;
    subject.setting.lines().chain(text::case(case).lines()).for_each(|line| println!("    {line}"));
    let Some(response) = response else { return };
    let flag = if response.authoritative { " aa" } else { "" };
    let sections: Vec<String> = response.sections.iter().map(|records| text::records(records)).collect();
    println!("    = {}{flag}: {}", response.rcode.name(), sections.join(": "));
}
