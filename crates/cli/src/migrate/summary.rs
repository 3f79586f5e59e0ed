//! Summary of a comparison of two servers, as text and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use conformance::{Comparison, Difference};
use serde_json::{Value, json};

/// Maximum number of differences to print, and of undecided queries. Further ones are only counted.
const DIFFERENCES_MAX: usize = 200;
/// Latency percentiles to print.
const PERCENTILES: [usize; 2] = [50, 99];

/// Counts of equal and different answers, and latencies.
pub(super) struct Summary {
    servers: [SocketAddr; 2],
    /// True to keep the differences for a JSON object; otherwise they are printed immediately.
    is_json: bool,
    questions: usize,
    /// Number of queries with different answers.
    pub(super) differences: usize,
    /// Number of queries to which both servers answered SERVFAIL.
    undecided: usize,
    /// Queries to which both servers answered SERVFAIL.
    undecided_kept: Vec<String>,
    /// Number of queries with equal answers, by response code.
    same: BTreeMap<String, usize>,
    /// Number of queries with different answers, by the kind of difference.
    different: BTreeMap<&'static str, usize>,
    kept: Vec<Difference>,
    took: [Vec<Duration>; 2],
}

impl Summary {
    /// Creates an empty summary for the old and the new server.
    pub(super) fn new(servers: [SocketAddr; 2], is_json: bool) -> Summary {
        Summary {
            servers,
            is_json,
            questions: 0,
            differences: 0,
            undecided: 0,
            undecided_kept: Vec::new(),
            same: BTreeMap::new(),
            different: BTreeMap::new(),
            kept: Vec::new(),
            took: [Vec::new(), Vec::new()],
        }
    }

    /// Counts one query, and prints or keeps its difference.
    pub(super) fn take(&mut self, comparison: Comparison) {
        self.questions += 1;
        for (all, took) in self.took.iter_mut().zip(comparison.took) {
            all.extend(took);
        }
        if comparison.is_undecided() {
            return self.count_undecided(comparison.question);
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

    /// Counts a query to which both servers answered SERVFAIL, and prints or keeps it.
    fn count_undecided(&mut self, question: String) {
        self.undecided += 1;
        if self.undecided > DIFFERENCES_MAX {
            return;
        }
        if self.is_json {
            self.undecided_kept.push(question);
        } else {
            println!("undecided: {question}\n  both servers answered SERVFAIL");
        }
    }

    /// Returns the summary as lines of text.
    pub(super) fn text(&mut self) -> String {
        let queries = if self.questions == 1 { "query" } else { "queries" };
        let mut text = format!("{} {queries}, {} with different answers\n", self.questions, self.differences);
        let list = |counts: Vec<(&str, usize)>| {
            counts.iter().map(|(what, count)| format!("{what} {count}")).collect::<Vec<_>>().join(", ")
        };
        // Writing to a `String` cannot fail.
        if !self.same.is_empty() {
            let same = self.same.iter().map(|(rcode, count)| (rcode.as_str(), *count)).collect();
            let _ = writeln!(text, "  same: {}", list(same));
        }
        if self.undecided > 0 {
            let _ = writeln!(text, "  undecided, because both servers answered SERVFAIL: {}", self.undecided);
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
        let server = |at: usize, [half, most]: [Option<f64>; 2]| {
            let latency = json!({ "p50": half, "p99": most });
            json!({ "address": self.servers[at].to_string(), "latency_ms": latency })
        };
        json!({
            "questions": self.questions,
            "different": self.differences,
            "undecided": self.undecided,
            "same_by_rcode": self.same,
            "different_by_kind": self.different,
            "old": server(0, old),
            "new": server(1, new),
            "differences": differences.collect::<Vec<_>>(),
            "undecided_questions": self.undecided_kept,
        })
    }

    /// Returns the latency percentiles of both servers in milliseconds; `None` for a server that never answered.
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
