//! Counts and prints differences.

use std::collections::BTreeMap;

use super::case::Case;
use super::explained::Explanations;
use xtask::Failed;

/// Counts of questions.
#[derive(Default)]
struct Counts {
    same: usize,
    explained: usize,
    unexplained: usize,
}

/// Result of all cases so far.
pub(crate) struct Report {
    explanations: Explanations,
    counts: Counts,
    cases: usize,
    skipped: usize,
}

impl Report {
    pub(crate) fn new(explanations: Explanations) -> Report {
        Report { explanations, counts: Counts::default(), cases: 0, skipped: 0 }
    }

    /// Prints that a case is not replayed.
    pub(crate) fn skip(&mut self, case: &str, reason: &str) {
        println!("{case}: SKIPPED, {reason}");
        self.skipped += 1;
    }

    /// Counts the differences of each question of a case, and prints those that are not explained, grouped.
    pub(crate) fn add(&mut self, case: &Case, differences: Vec<Vec<String>>) {
        let mut counts = Counts::default();
        let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (recorded, differences) in case.answers.iter().zip(differences) {
            if differences.is_empty() {
                counts.same += 1;
                continue;
            }
            let left = self.explanations.unexplained(&case.name, &recorded.text, differences);
            if left.is_empty() {
                counts.explained += 1;
            } else {
                counts.unexplained += 1;
                groups.entry(left.join("\n    ")).or_default().push(&recorded.text);
            }
        }
        println!("{}: {counts}", case.name);
        for (differences, questions) in groups {
            println!("    {differences}");
            questions.iter().for_each(|question| println!("        {question}"));
        }
        self.cases += 1;
        self.counts.same += counts.same;
        self.counts.explained += counts.explained;
        self.counts.unexplained += counts.unexplained;
    }

    /// Prints the totals. `all` is true if no case was left out by choice. Fails if a difference is not explained.
    pub(crate) fn finish(&self, all: bool) -> Result<(), Failed> {
        self.explanations.print(all && self.skipped == 0);
        println!("{} cases, {} skipped: {}", self.cases, self.skipped, self.counts);
        match self.counts.unexplained {
            0 => Ok(()),
            count => Err(format!("{count} questions have differences that are not explained")),
        }
    }
}

impl core::fmt::Display for Counts {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Counts { same, explained, unexplained } = self;
        let all = same + explained + unexplained;
        write!(f, "{all} questions: {same} same, {explained} explained, {unexplained} unexplained")
    }
}
