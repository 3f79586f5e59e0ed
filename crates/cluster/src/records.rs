//! Records of the objects of one watch: key, version, and the object's part of the index.
//!
//! A relist is mark and sweep: it marks the objects that it lists, then removes the others. Two copies of a list
//! never exist at the same time.

use std::any::Any;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use host::invariant::{Expected as _, holds};
use host::planted::{Bug, is_planted};

use crate::Kind;
use crate::kinds::{Effect, IndexReducer, ObjectState};
use crate::object::{Event, Meta, Object};

/// Effect of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// No change: the version is already known, the deleted object is unknown, or the object is not served.
    Nothing,
    /// An object was added.
    Added,
    /// A known object has a new version. The answers may be the same.
    Updated,
    /// An object was removed.
    Removed,
    /// A list is complete.
    Listed {
        /// Number of known objects that were not in the list.
        swept: u32,
    },
}

/// Records of one watch, of any kind.
pub(crate) trait Reduce: Any + Send {
    /// Applies an event to the index.
    fn reduce(&mut self, event: &Event<'_>, reducer: &mut IndexReducer) -> Reduction;

    /// Returns true if the object is known in this version.
    fn is_current(&self, meta: Meta<'_>, reducer: &IndexReducer) -> bool;

    /// Takes over the records of another watch of the same kind. The next list marks those that still exist.
    fn absorb(&mut self, other: Box<dyn Reduce>);

    /// Forgets the versions of the known objects, or of the one with this key, so that none of them counts as current.
    /// The objects stay.
    fn forget_versions(&mut self, only: Option<u64>);

    /// Returns true if no object is known.
    fn is_empty(&self) -> bool;
}

/// Result of an event.
#[derive(Clone, Copy)]
pub(crate) struct Reduction {
    pub(crate) change: Change,
    /// True if the zone's serial advances.
    pub(crate) stamps: bool,
}

impl Reduction {
    const NOTHING: Reduction = Reduction { change: Change::Nothing, stamps: false };
}

/// Records of one watch.
pub(crate) struct Records<K> {
    records: HashTable<Record<K>>,
    /// Number of the newest list.
    list: u32,
}

#[derive(Clone, Copy)]
struct Record<K> {
    key: u64,
    /// Hash of the resource version; 0 if the source has none.
    version: u64,
    /// Number of the list that last contained the object.
    list: u32,
    state: K,
}

/// Load factor, as 1/n, below which a sweep shrinks the table.
const SPARSE: usize = 4;

impl<K> Records<K> {
    pub(crate) fn new() -> Self {
        Records { records: HashTable::new(), list: 0 }
    }
}

impl<K: ObjectState + 'static> Reduce for Records<K> {
    fn reduce(&mut self, event: &Event<'_>, reducer: &mut IndexReducer) -> Reduction {
        match event {
            Event::Listing => {
                self.list = self.list.wrapping_add(1);
                Reduction::NOTHING
            }
            Event::Applied(object) if object.kind() == K::KIND => self.apply(object, reducer),
            Event::Applied(_) => Reduction::NOTHING,
            Event::Deleted { .. } if K::KIND == Kind::EndpointSlice && is_planted(Bug::GhostEndpoints) => {
                Reduction::NOTHING
            }
            Event::Deleted { namespace, name } => self.delete(namespace, name, reducer),
            // An object that cannot be read still exists. Its last known state is better than none, so the sweep keeps
            // it.
            Event::Unreadable { namespace, name } => {
                self.mark(reducer.index.key(namespace.as_bytes(), name.as_bytes()));
                Reduction::NOTHING
            }
            Event::Listed => self.sweep(reducer),
        }
    }

    fn is_current(&self, Meta { namespace, name, version }: Meta<'_>, reducer: &IndexReducer) -> bool {
        let key = reducer.index.key(namespace.as_bytes(), name.as_bytes());
        let version = version_hash(version, reducer);
        version != 0 && self.records.find(key, |record| record.key == key && record.version == version).is_some()
    }

    fn absorb(&mut self, other: Box<dyn Reduce>) {
        let other: Box<dyn Any> = other;
        let other = other.downcast::<Records<K>>().ok().expected("records of the same kind");
        let Some(other) = other else { return };
        for record in other.records {
            let is_new = self.records.find(record.key, |known| known.key == record.key).is_none();
            holds(is_new, "no two watches see the same object");
            self.records.insert_unique(record.key, Record { list: self.list, ..record }, |record| record.key);
        }
    }

    fn forget_versions(&mut self, only: Option<u64>) {
        match only {
            Some(key) => {
                let known = self.records.find_mut(key, |record| record.key == key);
                known.into_iter().for_each(|record| record.version = 0);
            }
            None => self.records.iter_mut().for_each(|record| record.version = 0),
        }
    }

    fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}

impl<K: ObjectState> Records<K> {
    fn apply(&mut self, object: &Object<'_>, reducer: &mut IndexReducer) -> Reduction {
        let Meta { namespace, name, version } = object.meta();
        let key = reducer.index.key(namespace.as_bytes(), name.as_bytes());
        let version = version_hash(version, reducer);
        // Marked before the comparison: an object that has not changed is in the list too, and the sweep must keep it.
        match self.mark(key) {
            None => self.add(key, version, object, reducer),
            Some(record) if record.version == version && version != 0 => Reduction::NOTHING,
            Some(record) => self.update(record, version, object, reducer),
        }
    }

    /// Marks an object as seen in the newest list. Returns its record before that, if it is known.
    fn mark(&mut self, key: u64) -> Option<Record<K>> {
        let list = self.list;
        self.records.find_mut(key, |record| record.key == key).map(|record| {
            holds(record.key == key, "a record is found by its key");
            record.list = list;
            *record
        })
    }

    fn add(&mut self, key: u64, version: u64, object: &Object<'_>, reducer: &mut IndexReducer) -> Reduction {
        // `None`: the object is not served.
        let Some(state) = K::apply(None, object, key, reducer).state else { return Reduction::NOTHING };
        debug_assert!(self.records.find(key, |record| record.key == key).is_none(), "an object has one record");
        let record = Record { key, version, list: self.list, state };
        self.records.insert_unique(key, record, |record| record.key);
        reducer.index.count_added(K::KIND);
        Reduction { change: Change::Added, stamps: true }
    }

    fn update(
        &mut self,
        before: Record<K>,
        version: u64,
        object: &Object<'_>,
        reducer: &mut IndexReducer,
    ) -> Reduction {
        let Effect { state, stamps } = K::apply(Some(before.state), object, before.key, reducer);
        let Some(state) = state else { return self.remove(before.key, reducer) };
        let record = self.records.find_mut(before.key, |record| record.key == before.key);
        if let Some(record) = record.expected("the record of an object that is updated") {
            *record = Record { version, state, ..before };
        }
        Reduction { change: Change::Updated, stamps }
    }

    fn delete(&mut self, namespace: &str, name: &str, reducer: &mut IndexReducer) -> Reduction {
        self.remove(reducer.index.key(namespace.as_bytes(), name.as_bytes()), reducer)
    }

    fn remove(&mut self, key: u64, reducer: &mut IndexReducer) -> Reduction {
        // A source may report the end of an object that it has never listed, or that is not served.
        let Ok(found) = self.records.find_entry(key, |record| record.key == key) else { return Reduction::NOTHING };
        let (record, _) = found.remove();
        debug_assert!(self.records.find(key, |record| record.key == key).is_none(), "an object has one record");
        record.state.remove(key, reducer);
        reducer.index.count_removed(K::KIND, 1);
        Reduction { change: Change::Removed, stamps: true }
    }

    fn sweep(&mut self, reducer: &mut IndexReducer) -> Reduction {
        let (list, before) = (self.list, self.records.len());
        let mut swept = 0;
        for record in self.records.extract_if(|record| record.list != list && !is_planted(Bug::KeepsDeleted)) {
            record.state.remove(record.key, reducer);
            swept += 1;
        }
        holds(self.records.len() + swept as usize == before, "an object is swept or stays");
        // Only far below the capacity. A table at the border would otherwise be copied by each sweep.
        if self.records.len() * SPARSE < self.records.capacity() {
            self.records.shrink_to_fit(|record| record.key);
        }
        debug_assert!(self.records.iter().all(|record| record.list == list), "a complete list has all that are left");
        reducer.index.count_removed(K::KIND, swept);
        Reduction { change: Change::Listed { swept }, stamps: swept > 0 }
    }
}

/// Returns the hash of a resource version, or 0 if it is empty.
fn version_hash(version: &str, reducer: &IndexReducer) -> u64 {
    if version.is_empty() { 0 } else { reducer.versions.hash_one(version) }
}
