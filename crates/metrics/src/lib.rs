//! Metrics without contention: each thread counts in its own cells, and the registry sums them when it is scraped.
//!
//! A [`Metric`] is declared once, next to the code that counts it. The declaration yields the series, the Prometheus
//! text (exposition format 0.0.4) and the tables in the documentation. A handle such as [`Counter`] is an index.
//! Counting adds to a cell that no other thread writes, without an atomic read-modify-write.

mod cells;
mod declaration;
mod handles;
mod registry;
mod text;
mod totals;

pub use cells::Counters;
pub use declaration::{Buckets, Kind, Metric, SIZE, SLIM_TIME, TIME, doubling};
pub use handles::{Counter, Histogram, Table};
pub use registry::Registry;
pub use totals::HistogramTotals;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
