//! Declaration of a metric, and the buckets of histograms.

use std::sync::{Mutex, PoisonError};

/// Type of a metric.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Monotonic counter.
    Counter,
    /// Value that is read when the metrics are scraped.
    Gauge,
    /// Distribution of observations over buckets.
    Histogram(&'static Buckets),
}

/// Declaration of a metric: a family of series with the same name.
#[derive(Debug)]
pub struct Metric {
    /// Name.
    pub name: &'static str,
    /// Help text, in one sentence.
    pub help: &'static str,
    /// Type.
    pub kind: Kind,
    /// Label names.
    pub labels: &'static [&'static str],
}

impl Metric {
    /// Returns the same metric under a configured name. The copy is leaked, once for each name.
    #[must_use]
    pub fn renamed(&'static self, name: &str) -> &'static Metric {
        static KNOWN: Mutex<Vec<&'static Metric>> = Mutex::new(Vec::new());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(metric) = known.iter().find(|metric| metric.name == name && metric.help == self.help) {
            debug_assert!(metric.labels == self.labels, "a metric with this name has these labels");
            return metric;
        }
        let name: &'static str = name.to_owned().leak();
        let metric: &'static Metric =
            Box::leak(Box::new(Metric { name, help: self.help, kind: self.kind, labels: self.labels }));
        known.push(metric);
        metric
    }
}

/// Buckets of a histogram.
#[derive(Debug)]
pub struct Buckets {
    /// Upper bounds in the unit of observation, ascending.
    pub bounds: &'static [u64],
    /// Factor between the unit of observation and that of the metric: 1e9 for nanoseconds shown as seconds.
    pub per_unit: f64,
}

impl Buckets {
    /// Returns the index of the bucket for an observation. The last bucket has no upper bound.
    #[must_use]
    pub fn index(&self, value: u64) -> usize {
        debug_assert!(self.bounds.is_sorted(), "bounds are ascending");
        self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len())
    }
}

/// Returns `COUNT` bounds that start with `first` and double.
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

/// Buckets for query durations: 0.25 ms, doubled 15 times.
pub static TIME: Buckets = Buckets { bounds: &doubling::<16>(250_000), per_unit: 1e9 };

/// Coarse buckets for durations of rarer events: 0.25 ms, then powers of ten.
pub static SLIM_TIME: Buckets =
    Buckets { bounds: &[250_000, 2_500_000, 25_000_000, 250_000_000, 2_500_000_000], per_unit: 1e9 };

/// Buckets for message sizes in bytes.
pub static SIZE: Buckets = Buckets {
    bounds: &[0, 100, 200, 300, 400, 511, 1023, 2047, 4095, 8291, 16_000, 32_000, 48_000, 64_000],
    per_unit: 1.0,
};
