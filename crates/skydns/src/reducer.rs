//! The single writer of an [`Index`]: applies lists and watch events of the store.

use std::collections::HashMap;
use std::sync::Arc;

use host::invariant::holds;
use rcu::Edit;

use crate::index::Index;
use crate::key::name_of;
use crate::record::Entry;
use crate::{Lease, Range, Record, RecordError, Request};

/// Maximum number of records. At about 200 bytes each, they take a fifth of a gigabyte.
pub const RECORDS_MAX: usize = 1_000_000;
/// Maximum number of leases whose expiry is tracked. Records with other leases get the minimum TTL of a lease.
const LEASES_MAX: usize = 65_536;
/// Minimum interval between two queries for the expiry of a lease.
const PAUSE_MIN_NANOS: u64 = 10_000_000_000;
/// Maximum interval, because a lease can be revoked and granted again with the same id.
const PAUSE_MAX_NANOS: u64 = 3_600_000_000_000;

/// Key-value pair of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    /// Full key.
    pub key: &'a [u8],
    /// Value.
    pub value: &'a [u8],
    /// Id of the lease it is tied to; 0 for none.
    pub lease: i64,
}

/// Event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A key was created or updated.
    Put(Pair<'a>),
    /// A key was deleted.
    Delete(&'a [u8]),
}

/// Callback for values that are not served: receives the full key and the reason.
pub type OnError<'c> = &'c mut dyn FnMut(&[u8], &RecordError);

/// Single writer of an [`Index`], with the state that it needs to apply the next event of a store.
pub struct Reducer {
    index: Arc<Index>,
    root: Vec<u8>,
    leases: HashMap<i64, TrackedLease>,
    /// Maximum number of records.
    records_max: usize,
}

/// A tracked lease, and the time to query its expiry.
struct TrackedLease {
    lease: Arc<Lease>,
    query_at_nanos: u64,
}

impl Reducer {
    /// Creates an empty reducer and the index that it writes.
    #[must_use]
    pub fn new(request: &Request) -> (Reducer, Arc<Index>) {
        Reducer::with_bound(request, RECORDS_MAX)
    }

    /// Creates a reducer with a given maximum number of records.
    #[must_use]
    pub(crate) fn with_bound(request: &Request, records_max: usize) -> (Reducer, Arc<Index>) {
        let index = Arc::<Index>::default();
        let reducer = Reducer { index: Arc::clone(&index), root: request.root(), leases: HashMap::new(), records_max };
        (reducer, index)
    }

    /// Applies one page of a list: `pairs` are all keys in the range, in order.
    pub fn list(&mut self, range: &Range, pairs: &[Pair<'_>], now_seconds: u32, on_error: OnError<'_>) {
        let index = Arc::clone(&self.index);
        let mut edit = index.entries.edit();
        let gone = self.gone(&edit, range, pairs);
        let mut changed = !gone.is_empty();
        for key in gone {
            edit.remove(&key);
        }
        for pair in pairs {
            changed |= self.put(&mut edit, pair, on_error);
        }
        self.publish(edit, changed, now_seconds);
    }

    /// Applies events. Readers see all of them at once.
    pub fn apply(&mut self, events: &[Event<'_>], now_seconds: u32, on_error: OnError<'_>) {
        let index = Arc::clone(&self.index);
        let mut edit = index.entries.edit();
        let mut changed = false;
        for event in events {
            changed |= match event {
                Event::Put(pair) => self.put(&mut edit, pair, on_error),
                Event::Delete(key) => {
                    key.strip_prefix(self.root.as_slice()).is_some_and(|key| edit.remove(key).is_some())
                }
            };
        }
        self.publish(edit, changed, now_seconds);
    }

    fn publish(&self, edit: Edit<'_, Entry>, changed: bool, now_seconds: u32) {
        if changed {
            edit.publish();
            self.index.stamp(now_seconds);
        }
    }

    /// Records that everything has been listed and that the watches work.
    pub fn set_listed(&self) {
        self.index.set_listed();
        self.index.set_current(true);
    }

    /// Records that the watches have failed, so the index may be stale.
    pub fn set_lost(&self) {
        self.index.set_current(false);
    }

    /// Returns the known keys in a range that are not among `pairs`.
    fn gone(&self, edit: &Edit<'_, Entry>, range: &Range, pairs: &[Pair<'_>]) -> Vec<Vec<u8>> {
        debug_assert!(range.from.starts_with(&self.root), "a range of another store");
        let within = |key: &[u8]| key.strip_prefix(self.root.as_slice()).unwrap_or_default().to_vec();
        let (from, to) = (within(&range.from), within(&range.to));
        // The end of the range may be beyond the path.
        let is_before_end = |key: &[u8]| to.is_empty() || key < to.as_slice();
        let mut listed = pairs.iter().filter_map(|pair| pair.key.strip_prefix(self.root.as_slice())).peekable();
        let known = edit.pages().from(&from).map(|(key, _)| key).take_while(|key| is_before_end(key));
        known
            .filter(|key| {
                while listed.next_if(|other| other < key).is_some() {}
                listed.peek() != Some(key)
            })
            .map(<[u8]>::to_vec)
            .collect()
    }

    /// Stores a value. Returns true if this changes anything.
    fn put(&mut self, edit: &mut Edit<'_, Entry>, pair: &Pair<'_>, on_error: OnError<'_>) -> bool {
        let Some(key) = pair.key.strip_prefix(self.root.as_slice()) else { return false };
        let known = edit.pages().get(key);
        let record = match self.record(key, pair, known.is_none() && edit.pages().len() >= self.records_max) {
            Ok(record) => Some(Arc::new(record)),
            Err(error) => {
                self.index.count_refused();
                on_error(pair.key, &error);
                // These keys are not stored. Other invalid values are, as `None`, because they show that the name
                // exists.
                if matches!(error, RecordError::Key | RecordError::TooMany) {
                    return false;
                }
                None
            }
        };
        let changes = known != Some(&record);
        if changes {
            edit.insert(key, record);
        }
        holds(edit.pages().len() <= self.records_max, "the number of records is bounded");
        changes
    }

    fn record(&mut self, key: &[u8], pair: &Pair<'_>, is_full: bool) -> Result<Record, RecordError> {
        if name_of(key, 0).is_none() {
            return Err(RecordError::Key);
        }
        if is_full {
            return Err(RecordError::TooMany);
        }
        Record::read(pair.value, (pair.lease != 0).then(|| self.lease(pair.lease)))
    }
}

/// Leases.
impl Reducer {
    fn lease(&mut self, id: i64) -> Arc<Lease> {
        if let Some(tracked) = self.leases.get(&id) {
            return Arc::clone(&tracked.lease);
        }
        let lease = Arc::new(Lease::new(id));
        if self.leases.len() < LEASES_MAX {
            self.leases.insert(id, TrackedLease { lease: Arc::clone(&lease), query_at_nanos: 0 });
        }
        holds(self.leases.len() <= LEASES_MAX, "the number of leases is bounded");
        lease
    }

    /// Returns up to `most` leases whose expiry should be queried now. Stops tracking leases without records.
    pub fn leases_due(&mut self, now_nanos: u64, most: usize) -> Vec<i64> {
        self.leases.retain(|_, tracked| Arc::strong_count(&tracked.lease) > 1);
        let due = self.leases.iter().filter(|(_, tracked)| tracked.query_at_nanos <= now_nanos);
        due.map(|(id, _)| *id).take(most).collect()
    }

    /// Sets the remaining time of a lease, in seconds. `None` means that the store does not know the lease.
    ///
    /// The expiry is queried again after half of that time, because a client that keeps the lease alive does so by
    /// then.
    pub fn set_lease(&mut self, id: i64, left_seconds: Option<u32>, now_nanos: u64) {
        let Some(tracked) = self.leases.get_mut(&id) else { return };
        let left_nanos = u64::from(left_seconds.unwrap_or_default()) * 1_000_000_000;
        tracked.lease.set_end(now_nanos.saturating_add(left_nanos));
        let pause = (left_nanos / 2).clamp(PAUSE_MIN_NANOS, PAUSE_MAX_NANOS);
        tracked.query_at_nanos = now_nanos.saturating_add(pause);
    }
}

#[cfg(test)]
#[path = "reducer_tests.rs"]
mod tests;
