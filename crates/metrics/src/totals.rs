//! Totals of histograms, for readers in the same process.

use crate::declaration::Buckets;

/// Total of some histograms with the same buckets.
#[derive(Clone, Debug, Default)]
pub struct HistogramTotals {
    buckets: Option<&'static Buckets>,
    /// Counts by bucket, one more than there are bounds.
    counts: Vec<u64>,
}

impl HistogramTotals {
    /// Adds the counts of a histogram.
    pub(crate) fn add(&mut self, buckets: &'static Buckets, counts: &[u64]) {
        self.buckets = Some(buckets);
        self.counts.resize(counts.len(), 0);
        self.counts.iter_mut().zip(counts).for_each(|(total, count)| *total = total.wrapping_add(*count));
    }

    /// Returns what was observed after an earlier total.
    #[must_use]
    pub fn since(&self, earlier: &HistogramTotals) -> HistogramTotals {
        let before = earlier.counts.iter().copied().chain(core::iter::repeat(0));
        let counts = self.counts.iter().zip(before).map(|(now, before)| now.saturating_sub(before)).collect();
        HistogramTotals { buckets: self.buckets, counts }
    }

    /// Returns the number of observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the bounds of the bucket that has the quantile `share`, from 0 to 1, in the unit of the metric. The last
    /// bucket has no upper bound. `None` without observations.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "the bucket is the same for nearby ranks")]
    pub fn quantile(&self, share: f64) -> Option<(f64, Option<f64>)> {
        let buckets = self.buckets.filter(|_| self.count() > 0)?;
        let rank = share * self.count() as f64;
        let mut seen = 0;
        let reaches = |count: &u64| {
            seen += count;
            seen as f64 >= rank
        };
        let at = self.counts.iter().position(reaches)?;
        let bound = |at: usize| buckets.bounds.get(at).map(|bound| *bound as f64 / buckets.per_unit);
        Some((at.checked_sub(1).and_then(bound).unwrap_or(0.0), bound(at)))
    }
}
