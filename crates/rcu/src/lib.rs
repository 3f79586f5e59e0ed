//! Tables that are read without locks while they are written: hash tables ([`Shards`]), and one in the order of its keys
//! ([`Sorted`]).
//!
//! A hash table is cut into shards, each an immutable hash table behind one pointer. A reader takes the pointer, looks and
//! lets go: it never waits, never allocates (but for its thread's first read ever) and writes nothing that another
//! reader writes. A writer copies the one shard that it changes, so a write costs its shard and never the table; the
//! last reader of an old shard frees it. What one read sees is one state of one shard; two reads may see two states.
//!
//! Writers take turns on a lock inside the table. The alternative, `&mut`, would need a second handle beside the one
//! that readers share, to save some 20 ns of a write that costs a microsecond.
//!
//! Nothing here knows what is kept, evicts, or bounds the number of entries: that is for the owner of the table.

mod sorted;

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use hashbrown::HashTable;

pub use sorted::{Edit, Entries, Pages, Reading, Sorted};

/// The random secret of a table's hash function: with it unknown, nobody can choose keys that collide. Of the two
/// qualities the better one, because users keep its 64 bits as the identity of what was hashed.
pub type Seed = foldhash::quality::RandomState;

/// What a table keeps: a value that can tell its own hash, so that the table need not store it.
pub trait Entry {
    /// The hash under which this entry is kept. It must never change while the entry is in a table.
    fn hash(&self, seed: &Seed) -> u64;
}

impl<T: Entry + ?Sized> Entry for Arc<T> {
    fn hash(&self, seed: &Seed) -> u64 {
        T::hash(self, seed)
    }
}

/// A hash table with many readers that never wait, and writers that take turns. Entries may be equal to one another.
pub struct Shards<T> {
    shards: Box<[ArcSwap<HashTable<T>>]>,
    seed: Seed,
    writing: Mutex<()>,
}

impl<T: Entry + Clone> Shards<T> {
    /// An empty table of `shards` parts, rounded up to a power of two. A write copies entries / shards entries; a part
    /// costs 8 octets while it is empty and some 100 octets more once it is not.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        let empty = Arc::new(HashTable::new());
        let shards = (0..shards.next_power_of_two()).map(|_| ArcSwap::new(Arc::clone(&empty))).collect();
        Shards { shards, seed: Seed::default(), writing: Mutex::new(()) }
    }

    /// The hash of a key in this table.
    #[must_use]
    pub fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.seed.hash_one(key)
    }

    /// Reads an entry with this hash that `equal` accepts.
    pub fn read<R>(&self, hash: u64, equal: impl FnMut(&T) -> bool, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.shard(hash).load().find(hash, equal).map(read)
    }

    /// Visits every entry that may have this hash; the visitor compares.
    pub fn read_all(&self, hash: u64, visit: impl FnMut(&T)) {
        self.shard(hash).load().iter_hash(hash).for_each(visit);
    }

    /// Visits every entry of the shard that this hash belongs to: the neighbours among which an owner with a bound may
    /// choose the one that has to go.
    pub fn for_each_beside(&self, hash: u64, visit: impl FnMut(&T)) {
        self.shard(hash).load().iter().for_each(visit);
    }

    /// Visits every entry, shard by shard, in no order.
    pub fn for_each(&self, mut visit: impl FnMut(&T)) {
        for shard in &self.shards {
            shard.load().iter().for_each(&mut visit);
        }
    }

    /// Entries in the table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.load().len()).sum()
    }

    /// Whether the table has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.load().is_empty())
    }

    /// Adds an entry, even beside an equal one.
    pub fn insert(&self, entry: T) {
        let hash = entry.hash(&self.seed);
        self.write(hash, |table| {
            table.insert_unique(hash, entry, |kept| kept.hash(&self.seed));
        });
    }

    /// Puts an entry in the place of one that `equal` accepts, which is given back; without one it adds the entry.
    pub fn replace(&self, entry: T, equal: impl FnMut(&T) -> bool) -> Option<T> {
        let hash = entry.hash(&self.seed);
        self.write(hash, |table| match table.find_mut(hash, equal) {
            Some(kept) => Some(std::mem::replace(kept, entry)),
            None => {
                table.insert_unique(hash, entry, |kept| kept.hash(&self.seed));
                None
            }
        })
    }

    /// Takes out one entry with this hash that `equal` accepts. Without one nothing is copied.
    pub fn remove(&self, hash: u64, mut equal: impl FnMut(&T) -> bool) -> Option<T> {
        self.read(hash, &mut equal, |_| ())?;
        self.write(hash, |table| {
            let (entry, _) = table.find_entry(hash, equal).ok()?.remove();
            if table.len() * SPARSE < table.capacity() {
                table.shrink_to_fit(|kept| kept.hash(&self.seed));
            }
            Some(entry)
        })
    }

    fn shard(&self, hash: u64) -> &ArcSwap<HashTable<T>> {
        // Inside a shard the lowest bits choose the bucket and the highest seven are the tag: those between are free.
        #[allow(clippy::cast_possible_truncation, reason = "the mask keeps fewer bits than any usize has")]
        let number = (hash >> 32) as usize & (self.shards.len() - 1);
        &self.shards[number]
    }

    /// Changes a copy of one shard and lets readers see it. If `change` panics, they go on with the old one.
    fn write<R>(&self, hash: u64, change: impl FnOnce(&mut HashTable<T>) -> R) -> R {
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = self.shard(hash);
        let mut table = HashTable::clone(&shard.load());
        let result = change(&mut table);
        shard.store(Arc::new(table));
        result
    }
}

/// A shard gives memory back when less than one in so many of its places is taken.
const SPARSE: usize = 4;

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
