//! Counts, and what was found.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::client::Transport;
use super::schedule::Action;
use xtask::Failed;

/// Number of faulty answers that are described.
const DESCRIBED_MAX: usize = 200;
/// Number of those that are printed.
const PRINTED_MAX: usize = 5;

/// Outcome of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    Right,
    Excused,
    Wrong,
    Open,
    Lost,
    LostInGap,
}

/// Report of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    fates: BTreeMap<(Transport, Fate), usize>,
    late: usize,
    late_in_fault: usize,
    second_attempts: usize,
    /// First attempts without an answer that no gap excuses.
    pub(crate) unanswered: usize,
    /// True if the API server is kube-apiserver.
    pub(crate) is_real: bool,
    actions: BTreeMap<Action, usize>,
    /// Faults with their times.
    events: Vec<String>,
    /// Right answers for names of the cluster when one state was permitted.
    pub(crate) exact: usize,
    /// Times from a kill or SIGSTOP until the next answer.
    pub(crate) restarts: Vec<Duration>,
    slowest: Duration,
    described: Vec<String>,
    not_tested: Vec<String>,
    failures: Vec<String>,
}

impl Report {
    /// Counts a fault or a change.
    pub(crate) fn count(&mut self, action: Action, begin: Duration, end: Duration) {
        *self.actions.entry(action).or_default() += 1;
        if action != Action::ChangeCluster {
            self.events.push(format!("{begin:?} to {end:?}: {}", action.words(self.is_real)));
        }
    }

    /// Counts a query.
    pub(crate) fn query(&mut self, transport: Transport, fate: Fate, took: Duration, attempts: usize) {
        *self.fates.entry((transport, fate)).or_default() += 1;
        self.second_attempts += usize::from(attempts > 1);
        if matches!(fate, Fate::Right | Fate::Excused) {
            self.slowest = self.slowest.max(took);
        }
    }

    /// Counts a late answer.
    pub(crate) fn late(&mut self, is_declared: bool) {
        if is_declared {
            self.late_in_fault += 1;
        } else {
            self.late += 1;
        }
    }

    /// Describes a faulty answer.
    pub(crate) fn describe(&mut self, text: String) {
        if self.described.len() < DESCRIBED_MAX {
            self.described.push(text);
        }
    }

    /// Notes what is not tested, and says so at once.
    pub(crate) fn not_tested(&mut self, what: &str) {
        println!("NOT TESTED: {what}");
        self.not_tested.push(what.to_owned());
    }

    /// Notes something else that failed.
    pub(crate) fn fail(&mut self, what: String) {
        self.failures.push(what);
    }

    fn of(&self, fate: Fate) -> usize {
        self.fates.iter().filter(|((_, known), _)| *known == fate).map(|(_, count)| count).sum()
    }

    /// Prints the report, and writes the faulty answers to a file.
    pub(crate) fn finish(
        &mut self,
        folder: &Path,
        length: Duration,
        seed: u64,
        is_planted: bool,
    ) -> Result<(), Failed> {
        println!("{}", self.text(length, seed));
        for text in self.described.iter().take(PRINTED_MAX).chain(&self.failures) {
            println!("\n{text}");
        }
        for (name, lines) in [("found.txt", &self.described), ("faults.txt", &self.events)] {
            let file = folder.join(name);
            std::fs::write(&file, lines.join("\n")).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let (wrong, lost) = (self.of(Fate::Wrong), self.of(Fate::Lost));
        if is_planted {
            let found = format!("{wrong} answers wrong because of the planted mistakes");
            println!("\n{found}");
            return if wrong > 0 { Ok(()) } else { Err(found) };
        }
        match (wrong, lost, self.failures.len()) {
            (0, 0, 0) if !self.fates.is_empty() => Ok(()),
            (_, _, failures) => {
                println!("\nfaulty answers, all faults with their times, and the end of the log: {}", folder.display());
                Err(format!("{wrong} answers wrong, {lost} queries lost, {failures} other failures"))
            }
        }
    }

    fn text(&self, length: Duration, seed: u64) -> String {
        let mut text = format!("torture: {} s, seed {seed}\n", length.as_secs());
        let total: usize = self.fates.values().sum();
        let of = |transport| {
            self.fates.iter().filter(move |((known, _), _)| *known == transport).map(|(_, count)| count).sum::<usize>()
        };
        let mut restarts = self.restarts.clone();
        restarts.sort_unstable();
        let (median, longest) = (restarts.get(restarts.len() / 2).copied(), restarts.last().copied());
        let rows = [
            ("queries", format!("{total} ({} over UDP, {} over TCP)", of(Transport::Udp), of(Transport::Tcp))),
            ("right", self.of(Fate::Right).to_string()),
            ("of these, names of the cluster with one permitted state", self.exact.to_string()),
            ("SERVFAIL in declared faults", self.of(Fate::Excused).to_string()),
            ("wrong", self.of(Fate::Wrong).to_string()),
            ("lost", self.of(Fate::Lost).to_string()),
            ("lost in declared gaps", self.of(Fate::LostInGap).to_string()),
            ("late (answered after more than 5 s)", self.late.to_string()),
            ("late in declared gaps and faults", self.late_in_fault.to_string()),
            ("needed a second attempt", self.second_attempts.to_string()),
            ("of these, outside of declared gaps", self.unanswered.to_string()),
            ("not decided (too many possible states)", self.of(Fate::Open).to_string()),
            ("slowest answer", format!("{:.2} s", self.slowest.as_secs_f64())),
            ("from a kill or SIGSTOP to the next answer, median and longest", {
                let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
                format!("{:.2} s, {:.2} s", seconds(median), seconds(longest))
            }),
        ];
        for (name, value) in rows {
            let _ = writeln!(text, "| {name} | {value} |");
        }
        text.push('\n');
        for (action, count) in &self.actions {
            let _ = writeln!(text, "| {} | {count} |", action.words(self.is_real));
        }
        for what in &self.not_tested {
            let _ = writeln!(text, "NOT TESTED: {what}");
        }
        text
    }
}
