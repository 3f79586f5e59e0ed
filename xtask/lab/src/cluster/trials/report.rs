//! Report of the trials.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::bed::{Bed, Server};
use super::traffic::Outcome;
use crate::cluster::components::PORTOLAN;

/// Kinds of clients, in the order of the columns.
const KINDS: [&str; 3] = ["udp", "udp-port", "tcp"];

/// First lines of the table.
const HEADER: &str = "\
| change | server | s | `udp` lost | `udp-port` lost | `tcp` lost | first and last loss after the begin, s | \
slowest answer, ms | causes |
|---|---|---|---|---|---|---|---|---|";

/// Run of a trial.
pub(crate) struct Row {
    pub(crate) trial: String,
    pub(crate) server: String,
    pub(crate) outcome: Outcome,
    /// Duration of the change.
    pub(crate) took: Duration,
}

/// Result of all trials.
pub(crate) struct Report {
    conditions: String,
    rows: Vec<Row>,
    /// Results that are no table rows.
    pub(crate) notes: Vec<String>,
    /// Trials that did not run, with the reason and what to do.
    pub(crate) skipped: Vec<String>,
    pub(crate) failed: Vec<String>,
}

impl Report {
    pub(crate) fn new(bed: &Bed<'_>) -> Report {
        let version = |command: &str, words: &[&str]| {
            let text = bed.inside.output(command, words).unwrap_or_default();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let portolan = version(&bed.inside.home.text(PORTOLAN), &["--version"]);
        let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).unwrap_or_default().1;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let compared = if bed.servers.contains(&Server::CoreDns) { "with CoreDNS beside" } else { "without CoreDNS" };
        let is_single = bed.nodes.len() == 1;
        let conditions = format!(
            "{cores} cores of {cpu}; Linux {}; {}; {}; {}; {portolan}; {compared}. {}, kube-proxy in mode \
             iptables with its default of at least 1 s between updates. 320 queries/s over UDP from 16 source \
             ports that stay (`udp`), 100 from new ports (`udp-port`), 40 on new TCP connections (`tcp`), from \
             one pod{}. A query without an answer after 2 s is lost.",
            kernel.trim(),
            version("kubelet", &["--version"]),
            version("containerd", &["--version"]),
            version("etcd", &["--version"]),
            if is_single { "Two pods of the DNS on one node" } else { "Two nodes" },
            if is_single { "" } else { " of each node, unless the row has another rate" },
        );
        Report { conditions, rows: Vec::new(), notes: Vec::new(), skipped: Vec::new(), failed: Vec::new() }
    }

    /// Adds a row and prints it, because the whole report takes long.
    pub(crate) fn add(&mut self, row: Row) {
        eprintln!("{row}");
        self.rows.push(row);
    }

    /// Notes that a trial did not run.
    pub(crate) fn skip(&mut self, what: &str) {
        eprintln!("SKIPPED {what}");
        self.skipped.push(what.to_owned());
    }

    /// Notes a result.
    pub(crate) fn note(&mut self, what: String) {
        eprintln!("{what}");
        self.notes.push(what);
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "| {} | {} | {:.1} |", self.trial, self.server, self.took.as_secs_f64())?;
        let mut causes: BTreeMap<String, u64> = BTreeMap::new();
        let (mut slowest, mut times) = (0, Vec::new());
        let seconds = |time: u64| {
            let milliseconds = time.saturating_sub(self.outcome.begin);
            format!("{}.{}", milliseconds / 1000, milliseconds / 100 % 10)
        };
        for name in KINDS {
            let kind = self.outcome.kinds.get(name).cloned().unwrap_or_default();
            write!(f, " {} of {} |", kind.failed(), kind.sent)?;
            slowest = slowest.max(kind.micros[2]);
            if let Some([first, last]) = kind.failing {
                times.push(format!("{name} {} and {}", seconds(first), seconds(last)));
            }
            for (cause, count) in kind.causes {
                *causes.entry(format!("{name}: {cause}")).or_default() += count;
            }
        }
        let causes: Vec<String> = causes.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
        let or_dash = |text: String| if text.is_empty() { "–".to_owned() } else { text };
        write!(f, " {} | {} | {} |", or_dash(times.join(", ")), slowest / 1000, or_dash(causes.join("; ")))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.conditions)?;
        if !self.rows.is_empty() {
            writeln!(f, "{HEADER}")?;
            for row in &self.rows {
                writeln!(f, "{row}")?;
            }
            writeln!(f)?;
        }
        for note in &self.notes {
            writeln!(f, "- {note}")?;
        }
        for skipped in &self.skipped {
            writeln!(f, "- Skipped: {skipped}")?;
        }
        for failed in &self.failed {
            writeln!(f, "- Failed: {failed}")?;
        }
        Ok(())
    }
}
