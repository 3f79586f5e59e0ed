//! Report of the query benchmark.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::cluster::{Cluster, Updates};
use super::load::Load;
use xtask::{Failed, results};

/// Result of one mix.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    pub(crate) load: Load,
}

/// Result of a run.
pub(crate) struct Report {
    services: usize,
    pods: usize,
    /// Bare echo, before and after the other measurements.
    pub(crate) echo: Vec<Load>,
    pub(crate) rows: Vec<Row>,
    /// Time from the start of the process to its first answer.
    pub(crate) first_answer: Option<Duration>,
    /// Time that the API server takes to send the cluster.
    pub(crate) sent: Option<Duration>,
    /// Time from the start of the process until it knew the cluster.
    pub(crate) ready: Option<Duration>,
    /// Current and peak memory in bytes.
    pub(crate) memory: (u64, u64),
    pub(crate) updates: Option<Updates>,
}

impl Report {
    pub(crate) fn new(cluster: &Cluster) -> Report {
        Report {
            services: cluster.shape.services,
            pods: cluster.shape.pods,
            echo: Vec::new(),
            rows: Vec::new(),
            first_answer: None,
            sent: None,
            ready: None,
            memory: (0, 0),
            updates: None,
        }
    }

    fn echo_cpu(&self) -> f64 {
        let sum: f64 = self.echo.iter().map(|load| load.cpu_each).sum();
        #[allow(clippy::cast_precision_loss, reason = "there are two")]
        let count = self.echo.len().max(1) as f64;
        sum / count
    }

    /// Saves the report under the date and commit.
    pub(crate) fn save(&self) -> Result<PathBuf, Failed> {
        results::save("", self)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (services, pods) = (self.services, self.pods);
        writeln!(
            f,
            "{services} Services with ten endpoints each, {pods} Pods; one core for the server, the other for the load.\n"
        )?;
        writeln!(
            f,
            "| queries | CPU µs per query | ratio to the echo | answers/s | lost | p50, p99, p99.9 µs | answers by code |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        for (at, load) in self.echo.iter().enumerate() {
            let what = if at == 0 { "the bare echo, before" } else { "the bare echo, after" };
            write_row(f, "echo", what, load, self.echo_cpu())?;
        }
        for row in &self.rows {
            write_row(f, row.name, row.what, &row.load, self.echo_cpu())?;
        }
        writeln!(f)?;
        if let (Some(first), Some(sent), Some(ready)) = (self.first_answer, self.sent, self.ready) {
            let [first, sent, ready] = [first, sent, ready].map(|time| time.as_secs_f64() * 1e3);
            writeln!(f, "- first answer {first:.0} ms after the start; whole cluster known after {ready:.0} ms,")?;
            writeln!(f, "  of which the API server needs {sent:.0} ms (measured with a client that does not decode)")?;
        }
        if self.memory.0 > 0 {
            writeln!(
                f,
                "- memory: {:.1} MiB after the load, peak {:.1} MiB",
                mebi(self.memory.0),
                mebi(self.memory.1)
            )?;
        }
        if let Some(updates) = &self.updates {
            writeln!(f, "- {updates}")?;
        }
        Ok(())
    }
}

/// Converts bytes to MiB.
pub(crate) fn mebi(bytes: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    let bytes = bytes as f64;
    bytes / f64::from(1 << 20)
}

fn write_row(f: &mut fmt::Formatter<'_>, name: &str, what: &str, load: &Load, echo: f64) -> fmt::Result {
    let [p50, p99, p999] = load.latencies;
    let codes: Vec<String> = load
        .rcodes
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(code, count)| format!("{} {count}", wire::Rcode(u16::try_from(code).unwrap_or(0))))
        .collect();
    writeln!(
        f,
        "| {name}: {what} | {:.2} | {:.2} | {:.0} | {} | {p50:.0}, {p99:.0}, {p999:.0} | {} |",
        load.cpu_each,
        load.cpu_each / echo.max(f64::MIN_POSITIVE),
        load.per_second,
        load.lost,
        codes.join(", ")
    )
}
