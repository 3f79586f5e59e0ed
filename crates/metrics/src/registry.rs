//! Registry of all series: maps families and label values to cells, and reads gauges when it is scraped.

use core::fmt::Write;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cells::{CELLS_MAX, Counters, Slab};
use crate::declaration::{Buckets, Kind, Metric};
use crate::handles::{Counter, Histogram, Table};
use crate::text;
use crate::totals::HistogramTotals;

/// Gauges of one label set: the one that counts now, and the one of a configuration that is being built.
const GAUGES_MAX: usize = 2;

type Gauge = Box<dyn Fn() -> Option<f64> + Send + Sync>;

#[derive(Default)]
struct Family {
    /// Cells by label text. A label set can have several cells, because a reload with other plugins may register it
    /// again as part of another table.
    series: BTreeMap<String, Vec<u32>>,
    /// At most [`GAUGES_MAX`] gauges for each label text, the newest last.
    gauges: BTreeMap<String, Vec<Gauge>>,
    /// Label text of single counters. They are exported from the start, because an alert on `increase()` needs the
    /// initial 0.
    single: BTreeSet<String>,
    tables: HashMap<String, Table>,
}

#[derive(Default)]
struct Known {
    families: BTreeMap<&'static str, (&'static Metric, Family)>,
    slabs: Vec<Arc<Slab>>,
    cells: u32,
}

/// All series of the process. They survive reloads.
#[derive(Default)]
pub struct Registry {
    known: Mutex<Known>,
}

impl Registry {
    /// Creates an empty registry.
    #[must_use]
    pub fn new() -> Arc<Registry> {
        Arc::new(Registry::default())
    }

    /// Allocates the counters of one more thread.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let slab = Arc::new(Slab::new());
        self.lock().slabs.push(Arc::clone(&slab));
        Counters::new(slab)
    }

    /// Returns the counter with these label values. It is exported from now on, even at 0.
    pub fn counter(&self, metric: &'static Metric, values: &[&str]) -> Counter {
        let counter = self.table(metric, values, &[]).counter([0; 3]);
        if let Some((_, family)) = self.lock().families.get_mut(metric.name) {
            family.single.insert(text::labels(metric.labels, values.iter().copied()));
        }
        counter
    }

    /// Returns the histogram with these label values; `None` if the metric is not a histogram.
    pub fn histogram(&self, metric: &'static Metric, values: &[&str]) -> Option<Histogram> {
        self.table(metric, values, &[]).histogram([0; 3])
    }

    /// Returns the series whose first labels have `values`, and whose last labels take each value in `dimensions`.
    ///
    /// The same arguments always return the same series, so that they survive a reload.
    pub fn table(&self, metric: &'static Metric, values: &[&str], dimensions: &[&[&str]]) -> Table {
        debug_assert!(dimensions.len() <= 3, "a table has at most three dimensions");
        debug_assert!(
            values.len() + dimensions.len() == metric.labels.len(),
            "each label of {} has a value",
            metric.name
        );
        let mut known = self.lock();
        let key = format!("{values:?}{dimensions:?}");
        let Known { families, cells, .. } = &mut *known;
        let (_, family) = families.entry(metric.name).or_insert_with(|| (metric, Family::default()));
        if let Some(table) = family.tables.get(&key) {
            return *table;
        }
        let buckets = if let Kind::Histogram(buckets) = metric.kind { Some(buckets) } else { None };
        let width = buckets.map_or(1, |buckets| small(buckets.bounds.len()) + 2);
        let sizes = [0, 1, 2].map(|place| dimensions.get(place).map_or(1, |names| small(names.len())));
        let strides = [sizes[1] * sizes[2] * width, sizes[2] * width, width];
        let wanted = sizes[0] * strides[0];
        let table = if (*cells + wanted) as usize <= CELLS_MAX {
            let first = *cells;
            *cells += wanted;
            debug_assert!(*cells as usize <= CELLS_MAX, "the number of cells is bounded");
            Table { first, strides, buckets }
        } else {
            // Above the limit, all series share one cell that does not exist: they are not exported and use no memory.
            Table { first: small(CELLS_MAX), strides: [0; 3], buckets }
        };
        for places in all_places(sizes) {
            let named = dimensions.iter().zip(places).map(|(names, place)| names[place]);
            let labels = text::labels(metric.labels, values.iter().copied().chain(named));
            family.series.entry(labels).or_default().push(table.cell(places));
        }
        family.tables.insert(key, table);
        table
    }

    /// Exports the sum of counters as a series of another metric as well, for example under an older name.
    pub fn alias(&self, metric: &'static Metric, values: &[&str], of: &[Counter]) {
        self.show(metric, values, of.iter().map(|counter| counter.0));
    }

    /// Exports a histogram as another metric as well, with another name or unit. Both must have the same number of
    /// buckets.
    pub fn alias_histogram(&self, metric: &'static Metric, values: &[&str], of: Histogram) {
        let same = matches!(metric.kind, Kind::Histogram(buckets) if buckets.bounds.len() == of.buckets.bounds.len());
        debug_assert!(same, "both histograms have the same number of buckets");
        self.show(metric, values, same.then_some(of.first).into_iter());
    }

    /// Adds cells to a series, except for those it already has.
    fn show(&self, metric: &'static Metric, values: &[&str], cells: impl Iterator<Item = u32>) {
        debug_assert!(values.len() == metric.labels.len(), "each label of {} has a value", metric.name);
        let labels = text::labels(metric.labels, values.iter().copied());
        let mut known = self.lock();
        let (_, family) = known.families.entry(metric.name).or_insert_with(|| (metric, Family::default()));
        let series = family.series.entry(labels).or_default();
        for cell in cells {
            if !series.contains(&cell) {
                series.push(cell);
            }
        }
    }

    /// Registers a gauge. Of several with the same labels, the newest that returns a value counts: if a configuration
    /// is built but never serves, its gauge returns `None` and the previous one counts again. If all return `None`,
    /// the series is omitted.
    pub fn gauge(
        &self,
        metric: &'static Metric,
        values: &[&str],
        read: impl Fn() -> Option<f64> + Send + Sync + 'static,
    ) {
        let labels = text::labels(metric.labels, values.iter().copied());
        let mut known = self.lock();
        let (_, family) = known.families.entry(metric.name).or_insert_with(|| (metric, Family::default()));
        let gauges = family.gauges.entry(labels).or_default();
        gauges.retain(|known| known().is_some());
        gauges.drain(..gauges.len().saturating_sub(GAUGES_MAX - 1));
        gauges.push(Box::new(read));
        debug_assert!(gauges.len() <= GAUGES_MAX, "the gauges of a label set are few");
    }

    /// Removes all gauges of a metric.
    pub fn forget_gauges(&self, metric: &'static Metric) {
        if let Some((_, family)) = self.lock().families.get_mut(metric.name) {
            family.gauges.clear();
        }
    }

    /// Renders all series in the text format of Prometheus.
    #[must_use]
    pub fn render(&self) -> String {
        let known = self.lock();
        let mut out = String::with_capacity(16 * 1024);
        for (metric, family) in known.families.values() {
            known.render_family(&mut out, metric, family);
        }
        out
    }

    /// Returns the value of a counter, summed over all threads.
    #[must_use]
    pub fn read(&self, counter: Counter) -> u64 {
        self.lock().sum(&[counter.0])
    }

    /// Returns the totals of a family's counters by the value of a label, or all in one under the empty text if `label`
    /// is empty. Omits those that are 0.
    #[must_use]
    pub fn totals_by(&self, family: &str, label: &str) -> BTreeMap<String, u64> {
        by_value(self.totals_by_all(family, [label]))
    }

    /// Returns the totals of a family's counters by the values of several labels. Omits those that are 0.
    #[must_use]
    pub fn totals_by_all<const N: usize>(&self, family: &str, labels: [&str; N]) -> BTreeMap<[String; N], u64> {
        let known = self.lock();
        let mut totals = BTreeMap::new();
        for (text, cells) in known.series_of(family) {
            let total = known.sum(cells);
            if total > 0 {
                *totals.entry(labels.map(|label| text::value_of(text, label))).or_insert(0) += total;
            }
        }
        totals
    }

    /// Returns the totals of a family's histograms by the value of a label, like [`Registry::totals_by`].
    #[must_use]
    pub fn histograms_by(&self, family: &str, label: &str) -> BTreeMap<String, HistogramTotals> {
        by_value(self.histograms_by_all(family, [label]))
    }

    /// Returns the totals of a family's histograms by the values of several labels.
    #[must_use]
    pub fn histograms_by_all<const N: usize>(
        &self,
        family: &str,
        wanted: [&str; N],
    ) -> BTreeMap<[String; N], HistogramTotals> {
        let known = self.lock();
        let Some((Metric { kind: Kind::Histogram(buckets), .. }, _)) = known.families.get(family) else {
            return BTreeMap::new();
        };
        let mut totals: BTreeMap<[String; N], HistogramTotals> = BTreeMap::new();
        for (labels, cells) in known.series_of(family) {
            let counts = known.bucket_counts(cells, buckets);
            if counts.iter().all(|count| *count == 0) {
                continue;
            }
            totals.entry(wanted.map(|label| text::value_of(labels, label))).or_default().add(buckets, &counts);
        }
        totals
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // Ignores poisoning: each change is a single insertion, so a panic leaves the data consistent.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Returns the label texts and cells of a family's series.
    fn series_of(&self, family: &str) -> impl Iterator<Item = (&str, &[u32])> {
        let series = self.families.get(family).into_iter().flat_map(|(_, family)| &family.series);
        series.map(|(labels, cells)| (labels.as_str(), cells.as_slice()))
    }

    /// Returns the counts of a histogram's buckets, one more than there are bounds.
    fn bucket_counts(&self, cells: &[u32], buckets: &Buckets) -> Vec<u64> {
        let at = |offset: usize| self.sum(&cells.iter().map(|cell| cell + small(offset)).collect::<Vec<_>>());
        (0..=buckets.bounds.len()).map(at).collect()
    }

    fn sum(&self, cells: &[u32]) -> u64 {
        let read = |cell: &u32| self.slabs.iter().map(|slab| slab.read(*cell as usize)).fold(0, u64::wrapping_add);
        cells.iter().map(read).fold(0, u64::wrapping_add)
    }

    /// Renders a family. Series of tables and histograms without any observation are omitted, because there may be
    /// hundreds.
    fn render_family(&self, out: &mut String, metric: &Metric, family: &Family) {
        let start = out.len();
        text::head(out, metric);
        let body = out.len();
        for (labels, gauges) in &family.gauges {
            if let Some(value) = gauges.iter().rev().find_map(|read| read()) {
                let _ = writeln!(out, "{}{} {value}", metric.name, text::braced(labels));
            }
        }
        for (labels, cells) in &family.series {
            let shown = labels.is_empty() || family.single.contains(labels);
            match metric.kind {
                Kind::Histogram(buckets) => self.render_histogram(out, metric, (labels, cells), buckets, shown),
                Kind::Counter | Kind::Gauge => {
                    let value = self.sum(cells);
                    if shown || value > 0 {
                        let _ = writeln!(out, "{}{} {value}", metric.name, text::braced(labels));
                    }
                }
            }
        }
        if out.len() == body {
            out.truncate(start);
        }
    }

    fn render_histogram(
        &self,
        out: &mut String,
        metric: &Metric,
        (labels, cells): (&str, &[u32]),
        buckets: &Buckets,
        shown: bool,
    ) {
        let counts = self.bucket_counts(cells, buckets);
        debug_assert!(counts.len() == buckets.bounds.len() + 1, "the last bucket has no bound");
        let total: u64 = counts.iter().sum();
        if total > 0 || shown {
            let sum_cells: Vec<u32> = cells.iter().map(|cell| cell + small(buckets.bounds.len() + 1)).collect();
            #[allow(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
            let sum = self.sum(&sum_cells) as f64 / buckets.per_unit;
            text::histogram(out, metric.name, labels, buckets, &counts, sum);
        }
    }
}

/// Returns totals by the value of their only label. Not with `collect`, which sorts first, with 4 KB of code per type.
fn by_value<T>(totals: BTreeMap<[String; 1], T>) -> BTreeMap<String, T> {
    let mut by_value = BTreeMap::new();
    by_value.extend(totals.into_iter().map(|([value], total)| (value, total)));
    by_value
}

fn all_places(sizes: [u32; 3]) -> impl Iterator<Item = [usize; 3]> {
    let [first, second, third] = sizes.map(|size| size as usize);
    (0..first).flat_map(move |a| (0..second).flat_map(move |b| (0..third).map(move |c| [a, b, c])))
}

/// Converts a count that is far below 2³².
fn small(count: usize) -> u32 {
    let count = u32::try_from(count);
    debug_assert!(count.is_ok(), "metrics and their label values are few");
    count.unwrap_or(u32::MAX)
}
