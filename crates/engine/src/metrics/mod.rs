//! Counting without contention: each thread has its own cells, the registry knows what they mean.
//!
//! A [`Metric`] is declared once, beside the code that counts it; from the declaration come the series, the text that
//! Prometheus reads (exposition format 0.0.4) and the tables in the documentation. A handle is a number; counting is an
//! addition to a cell that no other thread writes.

use std::sync::{Mutex, PoisonError};

mod cells;
mod registry;
mod server;
mod text;

pub use cells::Counters;
pub use registry::{Counter, Histogram, Registry, Table};
pub use server::{QueryMetrics, SERVER_METRICS, ServerMetrics};

/// What a metric is.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Is read when asked for.
    Gauge,
    /// Counts observations by size.
    Histogram(&'static Buckets),
}

/// A family of series, as it is declared.
#[derive(Debug)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What it counts, in one sentence.
    pub help: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The names of its labels.
    pub labels: &'static [&'static str],
}

impl Metric {
    /// The same under another name, which somebody has configured. It stays for the life of the process, once for each
    /// name.
    #[must_use]
    pub fn renamed(&'static self, name: &str) -> &'static Metric {
        static KNOWN: Mutex<Vec<&'static Metric>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(metric) = known.iter().find(|metric| metric.name == name && metric.help == self.help) {
            return metric;
        }
        let name: &'static str = name.to_owned().leak();
        let metric: &'static Metric =
            Box::leak(Box::new(Metric { name, help: self.help, kind: self.kind, labels: self.labels }));
        known.push(metric);
        metric
    }
}

/// The buckets of a histogram.
#[derive(Debug)]
pub struct Buckets {
    /// Upper bounds, in the unit of observation, growing.
    pub bounds: &'static [u64],
    /// Units of observation in one unit of the metric: 1e9 where nanoseconds are observed and seconds shown.
    pub per_unit: f64,
}

impl Buckets {
    /// The bucket of an observation; the last one has no bound.
    #[must_use]
    pub fn index(&self, value: u64) -> usize {
        self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len())
    }
}

/// So many bounds, each twice the one before.
#[must_use]
pub const fn doubling<const COUNT: usize>(first: u64) -> [u64; COUNT] {
    let mut bounds = [first; COUNT];
    let mut at = 1;
    while at < COUNT {
        bounds[at] = bounds[at - 1] * 2;
        at += 1;
    }
    bounds
}

/// From a quarter of a millisecond on, doubling sixteen times: times of queries.
pub static TIME: Buckets = Buckets { bounds: &doubling::<16>(250_000), per_unit: 1e9 };

/// From a quarter of a millisecond on, times ten: times of rarer things.
pub static SLIM_TIME: Buckets =
    Buckets { bounds: &[250_000, 2_500_000, 25_000_000, 250_000_000, 2_500_000_000], per_unit: 1e9 };

/// Octets of messages.
pub static SIZE: Buckets = Buckets {
    bounds: &[0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16_000, 32_000, 48_000, 64_000],
    per_unit: 1.0,
};

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
