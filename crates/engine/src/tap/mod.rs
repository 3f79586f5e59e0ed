//! Tap: copies of finished queries for a thread that watches them, for *tail*, *top* and the record of failures.
//!
//! A worker copies a query to its own [`Ring`] for three [`Reasons`]: it is a failure, it is the next one of the
//! sample, or a [`Filter`] selects it. The reading thread does everything else: it turns records into text, finds the
//! pods of addresses and counts. If it is too slow, the ring is full, and the worker counts what it leaves out.
//!
//! ```text
//!   answer ── failure? sample? filter? ──no──► nothing
//!                      └─yes─► record ──► ring of the worker ──► reading thread
//! ```
//!
//! The usual query costs one decrement and one branch. A selected one costs a copy of at most [`WORDS`] words. Neither
//! allocates, locks or waits.

mod filter;
mod pattern;
mod reasons;
mod record;
mod ring;

use std::sync::Arc;
use std::time::Duration;

use host::invariant::holds;

use wire::Rcode;

use crate::transaction::{Progress, Transaction};
use host::Clock;

pub use filter::{Filter, FilterError, Filters};
pub use reasons::Reasons;
pub use record::{ATTEMPTS_MAX, NAME_MAX, Record, RecordFlags, WORDS};
pub use ring::{CAPACITY_MAX, Ring, TAILS_MAX, drain};

use record::Finished;

/// Chains of a generation, which know who answers a query.
pub trait Answerers {
    /// Returns the plugin that answered or failed, with the length in bytes of its zone in wire form, or of that of the
    /// server block.
    fn answerer(&self, transaction: &Transaction) -> Option<(&str, usize)>;
}

/// Response codes that count as failures: FORMERR, SERVFAIL, NOTIMP and REFUSED. NXDOMAIN and NOERROR are answers.
const FAILURES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5;
/// Duration from which a query counts as a failure: most programs have lost patience then.
pub const SLOW: Duration = Duration::from_secs(1);

/// Returns true for a response code that counts as a failure.
#[must_use]
pub const fn is_failure(rcode: Rcode) -> bool {
    let at = if (rcode.0 as u32) < u32::BITS { rcode.0 } else { 0 };
    FAILURES >> at & 1 == 1
}

/// Returns true if a query failed: by its response code, without a response, or with a truncated one.
#[inline]
pub(crate) fn has_failed(transaction: &Transaction, progress: Progress) -> bool {
    let Transaction { query, response, .. } = transaction;
    is_failure(response.rcode()) | response.will_truncate(query) | (progress == Progress::Dropped)
}

/// Tap of one worker.
pub(crate) struct Tap {
    /// `None` if nobody reads.
    ring: Option<Arc<Ring>>,
    /// Queries until the next one of the sample.
    left: u32,
    /// Number of queries that this one represents.
    gap: u32,
    filters: Arc<Filters>,
    /// True if there is a filter.
    is_watched: bool,
    /// Selected queries until the next one that is shown, by filter.
    until_shown: [u32; TAILS_MAX],
}

impl Default for Tap {
    fn default() -> Self {
        let filters = Arc::default();
        Tap { ring: None, left: u32::MAX, gap: 0, filters, is_watched: false, until_shown: [1; TAILS_MAX] }
    }
}

impl Tap {
    /// Copies to this ring from now on.
    pub(crate) fn attach(&mut self, ring: Arc<Ring>) {
        self.ring = Some(ring);
        self.restart_sample();
    }

    /// Begins the sample again with the next query, which then represents only itself. Those since the last one of the
    /// sample are not counted.
    pub(crate) const fn restart_sample(&mut self) {
        (self.gap, self.left) = (1, 1);
    }

    pub(crate) const fn is_attached(&self) -> bool {
        self.ring.is_some()
    }

    pub(crate) fn set_filters(&mut self, filters: Arc<Filters>) {
        self.is_watched = !filters.is_empty();
        self.until_shown = [1; TAILS_MAX];
        self.filters = filters;
    }

    /// Returns true if [`Tap::record`] has something to do for this query. It is called for each query.
    #[inline]
    pub(crate) fn is_wanted(&mut self, failed: bool) -> bool {
        self.left = self.left.wrapping_sub(u32::from(!failed));
        failed | (self.left == 0) | self.is_watched
    }

    /// Copies a query if one of the reasons applies. `random` is a random number.
    pub(crate) fn record(&mut self, finished: &Finished<'_>, failed: bool, random: u64) {
        let Some(ring) = &self.ring else { return };
        let (mut reasons, mut weight) = (Reasons::default(), 0);
        if failed {
            (reasons, weight) = (Reasons::FAILURE, 1);
        } else if self.left == 0 {
            (reasons, weight) = (Reasons::SAMPLE, self.gap);
            holds(weight > 0, "a query of the sample represents itself");
            self.gap = next_gap(ring.sample_every(), random);
            self.left = self.gap;
        }
        if self.is_watched {
            for (at, filter) in self.filters.iter() {
                if filter.selects(finished) {
                    let until_shown = &mut self.until_shown[at];
                    holds(*until_shown > 0, "a filter shows a query after a whole distance");
                    *until_shown -= 1;
                    let is_shown = *until_shown == 0;
                    if is_shown {
                        *until_shown = next_gap(ring.tail_every(at).max(filter.every()), random);
                        reasons = reasons.with_tail(at);
                    }
                    ring.count_selected(at);
                }
            }
        }
        if !reasons.is_empty() {
            ring.push(reasons, weight, || finished.words(reasons, weight));
        }
    }
}

/// Returns the distance to the next selected query, on average `every`. It varies by half of that, because queries
/// repeat in patterns: a search path of four domains makes the same eight queries again and again.
fn next_gap(every: u32, random: u64) -> u32 {
    let spread = u64::from(every / 2) * 2 + 1;
    let shift = u32::try_from(random % spread).unwrap_or(0);
    (every - every / 2 + shift).max(1)
}

/// Describes a query that has its response, for the tap.
pub(crate) fn finished<'a>(
    answerers: &'a dyn Answerers,
    transaction: &'a Transaction,
    progress: Progress,
    clock: &'a dyn Clock,
) -> Finished<'a> {
    Finished { answerers, transaction, progress, clock }
}

#[cfg(test)]
mod tests;
