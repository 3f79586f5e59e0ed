//! Sharded table whose shards are sorted slices of exact length.
//!
//! An entry takes its own size and nothing more: a hash table has a power of two of slots, so that up to half of them
//! are empty. In return, a lookup is a binary search, and a write copies all entries of a shard.

use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;

use crate::Seed;

/// Entry of a [`Packed`] table.
pub trait Keyed: Clone {
    /// Key of an entry. Several entries may have the same key.
    type Key: Copy + Ord + Hash;

    /// Returns the key. It must not change while the entry is in a table.
    fn key(&self) -> Self::Key;
}

/// Sharded table of entries without free slots, with lock-free readers and serialized writers.
///
/// ```
/// use rcu::{Keyed, Packed};
///
/// #[derive(Clone)]
/// struct Port(u16, &'static str);
///
/// impl Keyed for Port {
///     type Key = u16;
///
///     fn key(&self) -> u16 {
///         self.0
///     }
/// }
///
/// let ports = Packed::new(16);
/// ports.put(Port(53, "domain"), |known| known.1 == "domain");
/// let mut names = Vec::new();
/// ports.at(53, |port| names.push(port.1));
/// assert_eq!(names, ["domain"]);
/// ```
pub struct Packed<T> {
    shards: Box<[ArcSwap<Box<[T]>>]>,
    seed: Seed,
    writing: Mutex<()>,
}

impl<T: Keyed> Packed<T> {
    /// Creates an empty table with `shards` shards, rounded up to a power of two. A shard costs 8 bytes while it is
    /// empty, and about 50 bytes plus its entries otherwise.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        let empty: Arc<Box<[T]>> = Arc::default();
        let shards = (0..shards.next_power_of_two()).map(|_| ArcSwap::new(Arc::clone(&empty))).collect();
        Packed { shards, seed: Seed::default(), writing: Mutex::default() }
    }

    /// Visits every entry with this key.
    pub fn at(&self, key: T::Key, visit: impl FnMut(&T)) {
        let shard = self.shard(key).load();
        let start = start_of(&shard, key);
        debug_assert!(start == 0 || shard[start - 1].key() < key, "entries with a key follow those with smaller ones");
        shard.iter().skip(start).take_while(|entry| entry.key() == key).for_each(visit);
    }

    /// Visits every entry, shard by shard.
    pub fn for_each(&self, mut visit: impl FnMut(&T)) {
        for shard in &self.shards {
            shard.load().iter().for_each(&mut visit);
        }
    }

    /// Replaces the entry with the same key for which `equal` returns true. If no entry matches, adds the new one.
    pub fn put(&self, entry: T, equal: impl Fn(&T) -> bool) {
        self.write(entry.key(), equal, Some(entry));
    }

    /// Removes an entry with this key for which `equal` returns true. If no entry matches, copies nothing.
    pub fn remove(&self, key: T::Key, equal: impl Fn(&T) -> bool) {
        self.write(key, equal, None);
    }

    /// Puts `entry` in the place of the one that `equal` selects, and publishes the shard.
    fn write(&self, key: T::Key, equal: impl Fn(&T) -> bool, entry: Option<T>) {
        debug_assert!(entry.as_ref().is_none_or(|entry| entry.key() == key), "an entry is stored under its key");
        let added = entry.is_some();
        let _turn = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let shard = self.shard(key);
        let old = shard.load();
        let start = start_of(&old, key);
        let same = old[start..].iter().take_while(|known| known.key() == key).position(equal);
        if same.is_none() && entry.is_none() {
            return;
        }
        debug_assert!(start == old.len() || old[start].key() >= key, "an entry goes to its place in the order");
        let (before, after) = (start + same.unwrap_or(0), start + same.map_or(0, |at| at + 1));
        let mut new = Vec::with_capacity(before + usize::from(entry.is_some()) + old.len() - after);
        new.extend_from_slice(&old[..before]);
        new.extend(entry);
        new.extend_from_slice(&old[after..]);
        let counted = old.len() + usize::from(added) - usize::from(same.is_some());
        debug_assert!(new.len() == counted, "one entry is added, replaced or removed");
        debug_assert!(new.is_sorted_by_key(T::key), "the entries of a shard are in the order of their keys");
        debug_assert!(new.len() == new.capacity(), "a shard has no free slots");
        shard.store(Arc::new(new.into_boxed_slice()));
    }

    fn shard(&self, key: T::Key) -> &ArcSwap<Box<[T]>> {
        #[allow(clippy::cast_possible_truncation, reason = "the mask keeps fewer bits than any usize has")]
        let number = self.seed.hash_one(key) as usize & (self.shards.len() - 1);
        debug_assert!(self.shards.len().is_power_of_two(), "the mask selects each shard");
        &self.shards[number]
    }
}

/// Returns the position of the first entry with this key, or where it would be.
fn start_of<T: Keyed>(entries: &[T], key: T::Key) -> usize {
    entries.partition_point(|entry| entry.key() < key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct Pair(u8, u16);

    impl Keyed for Pair {
        type Key = u8;

        fn key(&self) -> u8 {
            self.0
        }
    }

    fn all(table: &Packed<Pair>) -> Vec<Pair> {
        let mut all = Vec::new();
        table.for_each(|pair| all.push(pair.clone()));
        all.sort();
        all
    }

    #[test]
    fn replaces_an_equal_entry_and_keeps_others_with_the_same_key() {
        let table = Packed::new(4);
        table.put(Pair(1, 10), |known| known.1 == 10);
        table.put(Pair(1, 20), |known| known.1 == 20);
        table.put(Pair(1, 11), |known| known.1 == 10);
        assert_eq!(all(&table), [Pair(1, 11), Pair(1, 20)]);
        table.remove(2, |_| true);
        table.remove(1, |known| known.1 == 10);
        assert_eq!(all(&table).len(), 2);
        table.remove(1, |known| known.1 == 20);
        assert_eq!(all(&table), [Pair(1, 11)]);
    }

    #[test]
    fn equals_a_vector_after_any_sequence_of_writes() {
        let (table, mut model) = (Packed::new(4), Vec::new());
        let mut state = 7_u32;
        // Miri runs each instruction a thousand times more slowly.
        for _ in 0..if cfg!(miri) { 300 } else { 5000 } {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [key, value, action, _] = state.to_be_bytes();
            let pair = Pair(key, u16::from(value) % 3);
            model.retain(|known| *known != pair);
            if action % 3 == 0 {
                table.remove(key, |known| *known == pair);
            } else {
                table.put(pair.clone(), |known| *known == pair);
                model.push(pair);
            }
        }
        model.sort();
        assert!(model.len() > 100);
        assert_eq!(all(&table), model);
        for key in 0..=255 {
            let mut found = Vec::new();
            table.at(key, |pair| found.push(pair.clone()));
            found.sort();
            assert_eq!(found, model.iter().filter(|pair| pair.0 == key).cloned().collect::<Vec<_>>());
        }
    }
}
