//! Counts of questions and differences, and the list of those that no rule explains.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::rules::{Rules, Words};
use xtask::Failed;

/// Number of unexplained differences that are printed. The file has all.
const SHOWN: usize = 20;

/// How a seed ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Complete,
    /// Both servers refuse the Corefile.
    Refused,
    /// The time limit was hit, or a server ended: some questions were not asked.
    Incomplete,
}

/// Number of questions for each rule in the list of those that are explained.
const EXAMPLES: usize = 20;

/// Attempt to get equal answers to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// A question with differences that no rule explains is asked again.
    First,
    /// The second attempt.
    Last,
    /// A failure that prevents the questions of a seed. There is no second attempt.
    Only,
}

/// A question with differences.
pub(crate) struct Case<'c> {
    pub(crate) seed: u64,
    /// The question as text, and the shapes of the answers.
    pub(crate) question: String,
    pub(crate) words: Words<'c>,
}

/// Result of all seeds so far.
pub(crate) struct Report {
    rules: Rules,
    folder: PathBuf,
    file: File,
    /// File with examples for each rule, for those who review the rules.
    examples: File,
    /// File with the counts of each seed, from which those of several runs can be added.
    counts: File,
    /// Counts of the rows up to the last seed.
    before: Vec<usize>,
    started: Instant,
    questions: usize,
    same: usize,
    explained: usize,
    unexplained: usize,
    /// Questions with differences that no rule explains and that did not come again.
    once: usize,
    /// Questions without a response of CoreDNS, and those of them without one of Portolan.
    silent: [usize; 2],
    corefiles: usize,
    refused: Vec<u64>,
    incomplete: Vec<u64>,
}

impl Report {
    /// Creates the file of unexplained differences in a folder.
    pub(crate) fn new(rules: Rules, folder: &Path) -> Result<Report, Failed> {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let create =
            |name| File::create(folder.join(name)).map_err(|error| format!("{}/{name}: {error}", folder.display()));
        Ok(Report {
            before: vec![0; rules.rows.len()],
            rules,
            folder: folder.to_owned(),
            file: create("unexplained.txt")?,
            examples: create("explained.txt")?,
            counts: create("counts.txt")?,
            started: Instant::now(),
            questions: 0,
            same: 0,
            explained: 0,
            unexplained: 0,
            once: 0,
            silent: [0, 0],
            corefiles: 0,
            refused: Vec::new(),
            incomplete: Vec::new(),
        })
    }

    /// Counts a question that CoreDNS did not answer.
    pub(crate) fn count_silent(&mut self, both: bool) {
        self.questions += 1;
        self.silent[0] += 1;
        self.silent[1] += usize::from(both);
    }

    /// Counts a question with its differences and the responses. Writes those that no rule explains. If the question
    /// should be asked again, counts only that, and returns false.
    pub(crate) fn add(
        &mut self,
        case: &Case,
        differences: Vec<String>,
        responses: [Option<&[u8]>; 2],
        attempt: Attempt,
    ) -> bool {
        let all = differences.join("; ");
        let is_same = differences.is_empty();
        let (left, rules) = self.rules.unexplained(&case.words, &case.question, differences);
        if !left.is_empty() && attempt == Attempt::First {
            self.once += 1;
            return false;
        }
        self.questions += 1;
        if is_same {
            self.same += 1;
        } else if left.is_empty() {
            self.explained += 1;
            self.write_examples(case, &all, &rules);
        } else {
            self.unexplained += 1;
            self.once -= usize::from(attempt == Attempt::Last);
            self.write(case, &left.join("; "), &all, responses);
        }
        true
    }

    /// Writes a question for each rule that explains it, if the rule has few examples yet.
    fn write_examples(&mut self, case: &Case, all: &str, rules: &[usize]) {
        for &at in rules {
            let rule = &self.rules.rules[at];
            if rule.count <= EXAMPLES {
                let words = case.words.own.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
                let _ = writeln!(self.examples, "{rule}\t{}\t{}\t{all}\t{words}", case.seed, case.question);
            }
        }
    }

    /// Prints an unexplained difference if there are few, and writes it to the file.
    fn write(&mut self, case: &Case, left: &str, all: &str, responses: [Option<&[u8]>; 2]) {
        let (seed, question) = (case.seed, &case.question);
        if self.unexplained <= SHOWN {
            let corefile = self.folder.join(seed.to_string()).join("Corefile");
            println!("seed {seed}, {}: {question}: {left}", corefile.display());
        }
        let words = case.words.own.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let [coredns, portolan] = responses.map(hex);
        let line = format!("{seed}\t{words}\t{question}\t{left}\t{all}\t{coredns}\t{portolan}");
        // A full disk must not end the comparison: the counts are printed in any case.
        let _ = writeln!(self.file, "{line}");
    }

    /// Returns the number of questions with unexplained differences.
    pub(crate) const fn unexplained(&self) -> usize {
        self.unexplained
    }

    /// Counts a seed, and prints the state.
    pub(crate) fn end_seed(&mut self, seed: u64, outcome: Outcome) {
        match outcome {
            Outcome::Complete => self.corefiles += 1,
            Outcome::Refused => self.refused.push(seed),
            Outcome::Incomplete => self.incomplete.push(seed),
        }
        let (questions, unexplained) = (self.questions, self.unexplained);
        self.write_counts(seed, outcome);
        let seconds = self.started.elapsed().as_secs();
        println!("{seconds} s, seed {seed} {outcome:?}: {questions} questions, {unexplained} unexplained");
    }

    /// Writes the totals after a seed, and the number of its questions for each row.
    fn write_counts(&mut self, seed: u64, outcome: Outcome) {
        let Report { questions, same, explained, unexplained, once, silent: [silent, both], .. } = self;
        let totals = format!("{questions}\t{same}\t{explained}\t{unexplained}\t{silent}\t{both}\t{once}");
        let _ = writeln!(self.counts, "{seed}\t{outcome:?}\t{totals}");
        for (at, (row, count)) in self.rules.counts().into_iter().enumerate() {
            let new = count - self.before[at];
            if new > 0 {
                let _ = writeln!(self.counts, "{seed}\trow\t{new}\t{}: {}", row.section, row.start);
            }
            self.before[at] = count;
        }
    }

    /// Prints the totals. Fails if a difference is not explained, or a seed was not completed.
    pub(crate) fn finish(&self) -> Result<(), Failed> {
        println!("\n| questions | row of docs/differences.md |\n|---|---|");
        for (row, count) in self.rules.counts() {
            println!("| {count} | {}: {} |", row.section, row.start);
        }
        self.rules.unused().iter().for_each(|rule| println!("unused: {rule}"));
        let Report { questions, same, explained, unexplained, corefiles, .. } = self;
        let [silent, both] = self.silent;
        println!("{corefiles} Corefiles, {questions} questions in {} s:", self.started.elapsed().as_secs());
        println!("{same} same, {explained} explained, {unexplained} unexplained");
        println!("{} unexplained differences did not come again", self.once);
        println!("{silent} without an answer of CoreDNS, {both} of them without one of Portolan");
        println!("seeds that both servers refuse: {:?}", self.refused);
        println!("seeds that are not complete: {:?}", self.incomplete);
        match (unexplained, self.incomplete.len()) {
            (0, 0) => Ok(()),
            (0, count) => Err(format!("{count} seeds are not complete")),
            (count, _) => Err(format!("{count} questions have differences that are not explained")),
        }
    }
}

fn hex(bytes: Option<&[u8]>) -> String {
    bytes.unwrap_or_default().iter().map(|byte| format!("{byte:02x}")).collect()
}
