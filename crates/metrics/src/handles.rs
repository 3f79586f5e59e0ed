//! Handles with which a thread counts.

use crate::declaration::Buckets;

/// Handle of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter(pub(crate) u32);

/// Handle of a histogram.
#[derive(Clone, Copy, Debug)]
pub struct Histogram {
    pub(crate) first: u32,
    pub(crate) buckets: &'static Buckets,
}

/// Handle of a table: the series of one family that differ in up to three labels. A series is addressed by the indices
/// of its label values.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    pub(crate) first: u32,
    pub(crate) strides: [u32; 3],
    pub(crate) buckets: Option<&'static Buckets>,
}

impl Table {
    /// Returns the counter at these indices.
    #[must_use]
    pub fn counter(&self, places: [usize; 3]) -> Counter {
        Counter(self.cell(places))
    }

    /// Returns the histogram at these indices; `None` if the metric is not a histogram.
    #[must_use]
    pub fn histogram(&self, places: [usize; 3]) -> Option<Histogram> {
        self.buckets.map(|buckets| Histogram { first: self.cell(places), buckets })
    }

    pub(crate) fn cell(&self, places: [usize; 3]) -> u32 {
        let [_, second, third] = places.map(|place| u32::try_from(place).unwrap_or(u32::MAX));
        let [whole, row, width] = self.strides;
        debug_assert!(whole == 0 || second.saturating_mul(row) < whole, "a series is in its table");
        debug_assert!(row == 0 || third.saturating_mul(width) < row, "a series is in its row");
        let offsets =
            places.iter().zip(self.strides).map(|(place, stride)| stride * u32::try_from(*place).unwrap_or(0));
        self.first + offsets.sum::<u32>()
    }
}
