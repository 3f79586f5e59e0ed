//! The one writer of an [`Index`]: takes what the store lists and what its watches say, and keeps the index up to it.

use std::collections::HashMap;
use std::sync::Arc;

use rcu::Edit;

use crate::index::Index;
use crate::key::name_of;
use crate::record::Entry;
use crate::{Lease, Range, Record, Refusal, Request};

/// Records that are kept: at some 200 octets each a fifth of a gigabyte.
pub const RECORDS_MAX: usize = 1_000_000;
/// Leases whose end is asked for. Records of others are answered with the shortest time to live that a lease may give.
const LEASES_MAX: usize = 65_536;
/// The end of a lease is not asked for again before this, however near it is.
const PAUSE_MIN_NANOS: u64 = 10_000_000_000;
/// ... nor later than this, however far it is: leases can be revoked and granted anew under the same id.
const PAUSE_MAX_NANOS: u64 = 3_600_000_000_000;

/// A key of the store and what stands under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The whole key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// The lease that it is tied to; 0 for none.
    pub lease: i64,
}

/// A change of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A key has another value, its first or the same again.
    Put(Pair<'a>),
    /// A key is gone.
    Delete(&'a [u8]),
}

/// Is told the whole keys that are not served, and why.
pub type Complain<'c> = &'c mut dyn FnMut(&[u8], &Refusal);

/// What is known of a store, so that the next change of it can be understood.
pub struct Mirror {
    index: Arc<Index>,
    root: Vec<u8>,
    leases: HashMap<i64, Followed>,
    /// How many records are kept.
    records_max: usize,
}

/// A lease, and when to ask for its end.
struct Followed {
    lease: Arc<Lease>,
    ask_at_nanos: u64,
}

impl Mirror {
    /// A mirror in which nothing is seen yet, and the index that it will keep.
    #[must_use]
    pub fn new(request: &Request) -> (Mirror, Arc<Index>) {
        Mirror::with_bound(request, RECORDS_MAX)
    }

    /// A mirror that keeps so many records.
    #[must_use]
    pub fn with_bound(request: &Request, records_max: usize) -> (Mirror, Arc<Index>) {
        let index = Arc::<Index>::default();
        let mirror = Mirror { index: Arc::clone(&index), root: request.root(), leases: HashMap::new(), records_max };
        (mirror, index)
    }

    /// Takes part of a list: in this range there are these keys, in order, and no others.
    pub fn list(&mut self, range: &Range, pairs: &[Pair<'_>], now_seconds: u32, complain: Complain<'_>) {
        let index = Arc::clone(&self.index);
        let mut edit = index.entries.edit();
        let gone = self.gone(&edit, range, pairs);
        let mut changed = !gone.is_empty();
        for key in gone {
            edit.remove(&key);
        }
        for pair in pairs {
            changed |= self.put(&mut edit, pair, complain);
        }
        self.publish(edit, changed, now_seconds);
    }

    /// Takes changes, all of which answers see at once.
    pub fn apply(&mut self, events: &[Event<'_>], now_seconds: u32, complain: Complain<'_>) {
        let index = Arc::clone(&self.index);
        let mut edit = index.entries.edit();
        let mut changed = false;
        for event in events {
            changed |= match event {
                Event::Put(pair) => self.put(&mut edit, pair, complain),
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

    /// Everything has been listed, and changes are heard of from here on.
    pub fn set_listed(&self) {
        self.index.set_listed();
        self.index.set_current(true);
    }

    /// Changes are not heard of any more.
    pub fn set_lost(&self) {
        self.index.set_current(false);
    }

    /// The keys of a range that are known and not among those that there are.
    fn gone(&self, edit: &Edit<'_, Entry>, range: &Range, pairs: &[Pair<'_>]) -> Vec<Vec<u8>> {
        let within = |key: &[u8]| key.strip_prefix(self.root.as_slice()).unwrap_or_default().to_vec();
        let (from, to) = (within(&range.from), within(&range.to));
        // The end of the range may lie behind all keys of the path.
        let is_before_end = |key: &[u8]| to.is_empty() || key < to.as_slice();
        let mut there = pairs.iter().filter_map(|pair| pair.key.strip_prefix(self.root.as_slice())).peekable();
        let known = edit.pages().from(&from).map(|(key, _)| key).take_while(|key| is_before_end(key));
        known
            .filter(|key| {
                while there.next_if(|other| other < key).is_some() {}
                there.peek() != Some(key)
            })
            .map(<[u8]>::to_vec)
            .collect()
    }

    /// Puts a value under its key, and says whether that changes anything.
    fn put(&mut self, edit: &mut Edit<'_, Entry>, pair: &Pair<'_>, complain: Complain<'_>) -> bool {
        let Some(key) = pair.key.strip_prefix(self.root.as_slice()) else { return false };
        let known = edit.pages().get(key);
        let record = match self.record(key, pair, known.is_none() && edit.pages().len() >= self.records_max) {
            Ok(record) => Some(Arc::new(record)),
            Err(refusal) => {
                self.index.count_refused();
                complain(pair.key, &refusal);
                // Of these nothing can be known; that there is some value at a name, though not which, can.
                if matches!(refusal, Refusal::Key | Refusal::TooMany) {
                    return false;
                }
                None
            }
        };
        let changes = known != Some(&record);
        if changes {
            edit.insert(key, record);
        }
        changes
    }

    fn record(&mut self, key: &[u8], pair: &Pair<'_>, is_full: bool) -> Result<Record, Refusal> {
        if name_of(key, 0).is_none() {
            return Err(Refusal::Key);
        }
        if is_full {
            return Err(Refusal::TooMany);
        }
        Record::read(pair.value, (pair.lease != 0).then(|| self.lease(pair.lease)))
    }
}

/// Leases.
impl Mirror {
    fn lease(&mut self, id: i64) -> Arc<Lease> {
        if let Some(followed) = self.leases.get(&id) {
            return Arc::clone(&followed.lease);
        }
        let lease = Arc::new(Lease::new(id));
        if self.leases.len() < LEASES_MAX {
            self.leases.insert(id, Followed { lease: Arc::clone(&lease), ask_at_nanos: 0 });
        }
        lease
    }

    /// At most so many leases whose end should be asked for by now. Those that no record has are forgotten.
    pub fn leases_due(&mut self, now_nanos: u64, most: usize) -> Vec<i64> {
        self.leases.retain(|_, followed| Arc::strong_count(&followed.lease) > 1);
        let due = self.leases.iter().filter(|(_, followed)| followed.ask_at_nanos <= now_nanos);
        due.map(|(id, _)| *id).take(most).collect()
    }

    /// Takes what was said about a lease: how many seconds are left; none if it is not known there.
    ///
    /// It is asked for again when half of that is over: who keeps it alive does so by then.
    pub fn set_lease(&mut self, id: i64, left_seconds: Option<u32>, now_nanos: u64) {
        let Some(followed) = self.leases.get_mut(&id) else { return };
        let left_nanos = u64::from(left_seconds.unwrap_or_default()) * 1_000_000_000;
        followed.lease.set_end(now_nanos.saturating_add(left_nanos));
        let pause = (left_nanos / 2).clamp(PAUSE_MIN_NANOS, PAUSE_MAX_NANOS);
        followed.ask_at_nanos = now_nanos.saturating_add(pause);
    }
}

#[cfg(test)]
#[path = "mirror_tests.rs"]
mod tests;
