//! Read-copy-update tables: a sharded hash table ([`Shards`]), a sharded table without free slots ([`Packed`]), and an
//! ordered table with byte-string keys ([`Sorted`]).
//!
//! Each shard of a hash table is an immutable hash table behind one atomic pointer. A reader loads the pointer, looks
//! up the entry and releases the pointer. Readers never wait, do not write to memory that other readers write, and do
//! not allocate except for the first read on a thread. A writer copies one shard, changes the copy and swaps the
//! pointer. The cost of a write is thus the size of one shard, not of the table. The last reader of an old shard frees
//! it. One read sees one consistent state of one shard. Two reads may see different states.
//!
//! Locks inside the table serialize writers of one shard. Writers of different shards wait for each other only if their
//! shards share one of the [`LOCKS_MAX`] locks. The alternative, `&mut` access, would need a writer handle in addition
//! to the shared one, to save about 20 ns of a write that takes a microsecond.
//!
//! The tables do not evict entries or bound their number. The owner of a table does that.
//!
//! ```
//! use rcu::{Entry, Seed, Shards};
//!
//! #[derive(Clone)]
//! struct Port(&'static str, u16);
//!
//! impl Entry for Port {
//!     fn hash(&self, seed: &Seed) -> u64 {
//!         std::hash::BuildHasher::hash_one(seed, self.0)
//!     }
//! }
//!
//! let ports = Shards::new(16);
//! ports.insert(Port("domain", 53));
//! let hash = ports.hash("domain");
//! assert_eq!(ports.read(hash, |port| port.0 == "domain", |port| port.1), Some(53));
//! ```

mod packed;
mod sorted;

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use hashbrown::HashTable;

pub use packed::{Keyed, Packed};
pub use sorted::{Edit, Entries, Pages, Reading, Sorted};

/// Random seed of a table's hash function. Because it is secret, an attacker cannot choose colliding keys. This is the
/// `quality` variant of foldhash, because users of the table keep the 64-bit hash as the identity of a key.
pub type Seed = foldhash::quality::RandomState;

/// Table entry that computes its own hash, so that the table does not have to store it.
pub trait Entry {
    /// Returns the hash under which the table stores this entry. It must not change while the entry is in a table.
    fn hash(&self, seed: &Seed) -> u64;
}

impl<T: Entry + ?Sized> Entry for Arc<T> {
    fn hash(&self, seed: &Seed) -> u64 {
        T::hash(self, seed)
    }
}

/// Sharded hash table with lock-free readers and serialized writers. Equal entries may coexist.
pub struct Shards<T> {
    shards: Box<[ArcSwap<HashTable<T>>]>,
    seed: Seed,
    writing: Box<[Mutex<()>]>,
}

/// Maximum number of locks per table: several times the number of workers, so that two of them rarely need the same.
const LOCKS_MAX: usize = 64;

impl<T: Entry + Clone> Shards<T> {
    /// Creates an empty table with `shards` shards, rounded up to a power of two. A write copies one shard, on average
    /// `entries / shards` entries. A shard costs 8 bytes while it is empty, and about 100 bytes plus its entries
    /// otherwise.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        let empty = Arc::new(HashTable::new());
        let locks = shards.next_power_of_two().min(LOCKS_MAX);
        let shards: Box<[_]> = (0..shards.next_power_of_two()).map(|_| ArcSwap::new(Arc::clone(&empty))).collect();
        let writing: Box<[_]> = (0..locks).map(|_| Mutex::default()).collect();
        debug_assert!(writing.len() <= shards.len(), "each lock is that of a shard");
        Shards { shards, seed: Seed::default(), writing }
    }

    /// Returns the hash of a key in this table.
    #[must_use]
    pub fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        self.seed.hash_one(key)
    }

    /// Finds an entry with this hash for which `equal` returns true, and returns the result of `read`.
    pub fn read<R>(&self, hash: u64, equal: impl FnMut(&T) -> bool, read: impl FnOnce(&T) -> R) -> Option<R> {
        self.shard(hash).load().find(hash, equal).map(read)
    }

    /// Visits every entry that may have this hash. The visitor has to compare the key.
    pub fn read_all(&self, hash: u64, visit: impl FnMut(&T)) {
        self.shard(hash).load().iter_hash(hash).for_each(visit);
    }

    /// Visits every entry in the shard of this hash. An owner that bounds the table can choose an entry to evict among
    /// them.
    pub fn for_each_beside(&self, hash: u64, visit: impl FnMut(&T)) {
        self.shard(hash).load().iter().for_each(visit);
    }

    /// Visits every entry, shard by shard, in no particular order.
    pub fn for_each(&self, mut visit: impl FnMut(&T)) {
        for shard in &self.shards {
            shard.load().iter().for_each(&mut visit);
        }
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.load().len()).sum()
    }

    /// Returns true if the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.load().is_empty())
    }

    /// Adds an entry, even if the table has an equal one.
    pub fn insert(&self, entry: T) {
        let hash = entry.hash(&self.seed);
        self.write(hash, |table| {
            let before = table.len();
            table.insert_unique(hash, entry, |kept| kept.hash(&self.seed));
            debug_assert!(table.len() == before + 1, "an insertion adds an entry");
        });
    }

    /// Replaces an entry for which `equal` returns true, and returns the old one. If no entry matches, adds the new
    /// one.
    pub fn replace(&self, entry: T, equal: impl FnMut(&T) -> bool) -> Option<T> {
        let hash = entry.hash(&self.seed);
        self.write(hash, |table| match table.find_mut(hash, equal) {
            Some(kept) => {
                debug_assert!(kept.hash(&self.seed) == hash, "the hash of an entry does not change in the table");
                Some(std::mem::replace(kept, entry))
            }
            None => {
                table.insert_unique(hash, entry, |kept| kept.hash(&self.seed));
                None
            }
        })
    }

    /// Removes one entry with this hash for which `equal` returns true. If no entry matches, copies nothing.
    pub fn remove(&self, hash: u64, mut equal: impl FnMut(&T) -> bool) -> Option<T> {
        self.read(hash, &mut equal, |_| ())?;
        self.write(hash, |table| {
            // Another writer may have removed it since.
            let (entry, _) = table.find_entry(hash, equal).ok()?.remove();
            debug_assert!(entry.hash(&self.seed) == hash, "the hash of an entry does not change in the table");
            // Far below the point at which it grows. Otherwise entries that come and go would rehash the shard each
            // time.
            if table.len() * SPARSE < table.capacity() {
                table.shrink_to_fit(|kept| kept.hash(&self.seed));
            }
            Some(entry)
        })
    }

    /// Removes all entries for which `keep` returns false, and calls `removed` for each. Copies only the shards that
    /// have one.
    pub fn retain(&self, keep: impl Fn(&T) -> bool, mut removed: impl FnMut(&T)) {
        for number in 0..self.shards.len() {
            // Without the lock: an entry that is added after this look is added after the call, as far as anybody can
            // tell.
            if self.shards[number].load().iter().all(&keep) {
                continue;
            }
            self.write_shard(number, |table| {
                table.retain(|entry| {
                    let kept = keep(entry);
                    if !kept {
                        removed(entry);
                    }
                    kept
                });
                table.shrink_to_fit(|kept| kept.hash(&self.seed));
                debug_assert!(table.iter().all(&keep), "only entries to keep are left");
            });
        }
    }

    fn shard(&self, hash: u64) -> &ArcSwap<HashTable<T>> {
        &self.shards[self.shard_number(hash)]
    }

    fn shard_number(&self, hash: u64) -> usize {
        // Inside a shard, hashbrown uses the lowest bits for the bucket and the top seven as the tag. The bits between
        // them are free to select the shard.
        #[allow(clippy::cast_possible_truncation, reason = "the mask keeps fewer bits than any usize has")]
        let number = (hash >> 32) as usize & (self.shards.len() - 1);
        debug_assert!(self.shards.len().is_power_of_two(), "the mask selects each shard");
        number
    }

    /// Checks a shard before readers see it, with debug assertions.
    fn check(&self, number: usize, table: &HashTable<T>) {
        if cfg!(debug_assertions) && table.len() <= CHECKED_MAX {
            let is_here = |entry: &T| {
                let hash = entry.hash(&self.seed);
                self.shard_number(hash) == number && table.iter_hash(hash).any(|kept| std::ptr::eq(kept, entry))
            };
            debug_assert!(table.iter().all(is_here), "each entry is found by its hash");
        }
    }

    /// Changes a copy of one shard and publishes it. If `change` panics, readers keep the old shard.
    fn write<R>(&self, hash: u64, change: impl FnOnce(&mut HashTable<T>) -> R) -> R {
        self.write_shard(self.shard_number(hash), change)
    }

    fn write_shard<R>(&self, number: usize, change: impl FnOnce(&mut HashTable<T>) -> R) -> R {
        let lock = &self.writing[number % self.writing.len()];
        // After a panic in `change`, the lock protects nothing half-done: the changed copy was dropped.
        let _turn = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = &self.shards[number];
        // Under the lock. A copy from before would lack the change of the writer that had it, and would undo that
        // change.
        let mut table = HashTable::clone(&shard.load());
        let before = table.len();
        let result = change(&mut table);
        debug_assert!(table.len() <= before + 1, "a write adds one entry at most");
        self.check(number, &table);
        shard.store(Arc::new(table));
        result
    }
}

/// Maximum number of entries of a shard that is checked before it is published.
const CHECKED_MAX: usize = 64;

/// Load factor below which a shard shrinks: fewer than one in `SPARSE` slots in use.
const SPARSE: usize = 4;

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
