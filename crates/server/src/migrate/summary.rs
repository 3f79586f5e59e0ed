//! Summary of a comparison of two servers, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use conformance::{Comparison, Difference};
use serde_json::{Value, json};

/// Differences that are printed; the others are counted.
const DIFFERENCES_MAX: usize = 200;
/// Percentiles of the latency that are printed.
const PERCENTILES: [usize; 2] = [50, 99];

/// Counts of what came of the questions.
pub(super) struct Summary {
    servers: [SocketAddr; 2],
    /// Differences are kept for a JSON object and printed at once otherwise.
    is_json: bool,
    questions: usize,
    /// Questions that were answered in different ways.
    pub(super) differences: usize,
    /// Questions that were answered the same, by response code.
    same: BTreeMap<String, usize>,
    /// Questions that were answered in different ways, by the kind of the difference.
    different: BTreeMap<&'static str, usize>,
    kept: Vec<Difference>,
    took: [Vec<Duration>; 2],
}

impl Summary {
    /// Starts a summary for the old and the new server.
    pub(super) fn new(servers: [SocketAddr; 2], is_json: bool) -> Summary {
        Summary {
            servers,
            is_json,
            questions: 0,
            differences: 0,
            same: BTreeMap::new(),
            different: BTreeMap::new(),
            kept: Vec::new(),
            took: [Vec::new(), Vec::new()],
        }
    }

    /// Counts one question; prints its difference, if there is one.
    pub(super) fn take(&mut self, comparison: Comparison) {
        self.questions += 1;
        for (all, took) in self.took.iter_mut().zip(comparison.took) {
            all.extend(took);
        }
        let Some(difference) = comparison.difference else {
            let rcode = comparison.rcode.map_or_else(String::new, |rcode| rcode.to_string());
            *self.same.entry(rcode).or_default() += 1;
            return;
        };
        self.differences += 1;
        *self.different.entry(difference.differs.word()).or_default() += 1;
        if self.differences > DIFFERENCES_MAX {
            return;
        }
        if self.is_json {
            self.kept.push(difference);
        } else {
            println!("{}: {}", difference.differs.word(), difference.question);
            println!("  old: {}\n  new: {}", difference.old, difference.new);
        }
    }

    /// Writes the summary as lines.
    pub(super) fn text(&mut self) -> String {
        let mut text = format!("{} questions, {} answered in different ways\n", self.questions, self.differences);
        let list = |counts: Vec<(&str, usize)>| {
            counts.iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ")
        };
        // Writing to a text cannot fail.
        if !self.same.is_empty() {
            let same = self.same.iter().map(|(rcode, count)| (rcode.as_str(), *count)).collect();
            let _ = writeln!(text, "  same: {}", list(same));
        }
        if !self.different.is_empty() {
            let different = self.different.iter().map(|(kind, count)| (*kind, *count)).collect();
            let _ = writeln!(text, "  different: {}", list(different));
        }
        let [old, new] = self.latencies();
        for (which, server, [half, most]) in [("old", self.servers[0], old), ("new", self.servers[1], new)] {
            let ms = |took: Option<f64>| took.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
            let _ = writeln!(text, "  latency of the {which} server {server}: median {}, 99 % {}", ms(half), ms(most));
        }
        text
    }

    /// Returns the summary and the differences as one JSON object.
    pub(super) fn json(&mut self) -> Value {
        let [old, new] = self.latencies();
        let differences = self.kept.iter().map(
            |one| json!({ "question": one.question, "differs": one.differs.word(), "old": one.old, "new": one.new }),
        );
        let server = |at: usize, [half, most]: [Option<f64>; 2]| json!({ "address": self.servers[at].to_string(), "latency_ms": { "p50": half, "p99": most } });
        json!({
            "questions": self.questions,
            "different": self.differences,
            "same_by_rcode": self.same,
            "different_by_kind": self.different,
            "old": server(0, old),
            "new": server(1, new),
            "differences": differences.collect::<Vec<_>>(),
        })
    }

    /// The percentiles of the latency of both servers in milliseconds; `None` of one that never answered.
    fn latencies(&mut self) -> [[Option<f64>; 2]; 2] {
        self.took.each_mut().map(|took| {
            took.sort_unstable();
            PERCENTILES.map(|percent| {
                let at = (took.len() * percent / 100).min(took.len().saturating_sub(1));
                took.get(at).map(|took| took.as_secs_f64() * 1000.0)
            })
        })
    }
}
