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
        let (late, unanswered, failures) = (self.late, self.unanswered, self.failures.len());
        if is_planted {
            println!("\n{wrong} answers wrong because of the planted mistakes");
        }
        let is_good = !self.fates.is_empty() && (wrong > 0) == is_planted && lost + late + unanswered + failures == 0;
        if is_good {
            return Ok(());
        }
        println!(
            "\n`found.txt` has the faulty answers, `faults.txt` all faults with their times, `log.txt` the last lines"
        );
        Err(format!(
            "{wrong} answers wrong, {lost} queries lost, {late} answers late, {unanswered} first attempts without an \
             answer outside of gaps, {failures} other failures"
        ))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns true if a run passes whose report has these entries.
    fn passes(is_planted: bool, change: impl Fn(&mut Report)) -> bool {
        let folder = std::env::temp_dir().join(format!("portolan-torture-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut report = Report::default();
        report.query(Transport::Udp, Fate::Right, Duration::ZERO, 1);
        change(&mut report);
        report.finish(&folder, Duration::ZERO, 1, is_planted).is_ok()
    }

    #[test]
    fn a_run_passes_without_faults_alone_or_with_wrong_answers_if_they_are_planted() {
        let query = |fate| move |report: &mut Report| report.query(Transport::Udp, fate, Duration::ZERO, 2);
        for (is_planted, expected) in [(false, true), (true, false)] {
            assert_eq!(passes(is_planted, |_| ()), expected);
            assert_eq!(passes(is_planted, query(Fate::Wrong)), !expected);
            assert_eq!(passes(is_planted, query(Fate::LostInGap)), expected);
        }
        for is_planted in [false, true] {
            let planted = |report: &mut Report| {
                report.query(Transport::Udp, if is_planted { Fate::Wrong } else { Fate::Right }, Duration::ZERO, 1);
            };
            assert!(passes(is_planted, planted));
            for spoil in [
                |report: &mut Report| report.query(Transport::Tcp, Fate::Lost, Duration::ZERO, 2),
                |report: &mut Report| report.unanswered += 1,
                |report: &mut Report| report.late(false),
                |report: &mut Report| report.fail("the keeper ended".to_owned()),
            ] {
                let both = |report: &mut Report| {
                    planted(report);
                    spoil(report);
                };
                assert!(!passes(is_planted, both));
            }
        }
    }
}
