//! Counts of what agrees, and the classes of what differs with examples.

use std::collections::BTreeMap;

use specification::message::Response;
use specification::scope::{Block, Case};
use specification::text;

/// Verdict on a case.
pub(crate) struct Verdict<'b> {
    pub(crate) block: &'b Block,
    pub(crate) case: &'b Case,
    /// Response, if one came.
    pub(crate) response: Option<Response>,
    /// Differences, none if the response is as expected.
    pub(crate) differences: Vec<String>,
}

impl Verdict<'_> {
    /// Returns the class of the difference: the branches of the model and the words of the differences.
    fn class(&self) -> String {
        let mut branches: Vec<String> = self.case.branches.iter().map(ToString::to_string).collect();
        branches.dedup();
        format!("{} | {} | {}", branches.join(" "), self.case.question.qtype, self.differences.join(", "))
    }
}

/// Prints the result of a server.
pub(crate) fn print(server: &str, verdicts: &[Verdict<'_>], examples: usize) {
    let mut classes: BTreeMap<String, Vec<&Verdict<'_>>> = BTreeMap::new();
    for verdict in verdicts.iter().filter(|verdict| !verdict.differences.is_empty()) {
        classes.entry(verdict.class()).or_default().push(verdict);
    }
    let differ: usize = classes.values().map(Vec::len).sum();
    println!("{server}: {} cases agree, {differ} differ in {} classes", verdicts.len() - differ, classes.len());
    let mut classes: Vec<_> = classes.into_iter().collect();
    classes.sort_by_key(|(_, verdicts)| std::cmp::Reverse(verdicts.len()));
    for (class, verdicts) in classes {
        println!("\n{} × {class}", verdicts.len());
        verdicts.iter().take(examples).for_each(|verdict| print_example(verdict));
    }
}

fn print_example(verdict: &Verdict<'_>) {
    let Verdict { block, case, response, .. } = verdict;
    let one = Block { zone: block.zone.clone(), cases: vec![(*case).clone()] };
    text::block(&one).lines().for_each(|line| println!("    {line}"));
    let Some(response) = response else { return };
    let flag = if response.authoritative { " aa" } else { "" };
    let sections: Vec<String> = response.sections.iter().map(|records| text::records(records)).collect();
    println!("    = {}{flag}: {}", response.rcode.name(), sections.join(": "));
}
