//! Interner for values that many objects share, such as namespace names and port lists.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::HashTable;
use host::invariant::holds;
use rcu::Seed;

/// Set of shared values. A value stays while anyone else holds it.
pub(crate) struct Interner<T: ?Sized> {
    values: HashTable<Arc<T>>,
    seed: Seed,
    purge_at: usize,
}

/// Number of values below which unused ones are not purged.
const PURGE_MIN: usize = 64;

impl<T: ?Sized + Hash + Eq> Interner<T> {
    pub(crate) fn new() -> Self {
        Interner { values: HashTable::new(), seed: Seed::default(), purge_at: PURGE_MIN }
    }

    /// Returns the shared copy of a value.
    pub(crate) fn get<V: Borrow<T> + Into<Arc<T>>>(&mut self, value: V) -> Arc<T> {
        let hash = self.seed.hash_one(value.borrow());
        if let Some(shared) = self.values.find(hash, |shared| **shared == *value.borrow()) {
            return Arc::clone(shared);
        }
        self.purge();
        let shared = value.into();
        debug_assert!(self.seed.hash_one(&*shared) == hash, "a value is found by its hash");
        self.values.insert_unique(hash, Arc::clone(&shared), |shared| self.seed.hash_one(&**shared));
        holds(self.values.len() <= self.purge_at, "values that nobody uses are removed before the table doubles");
        shared
    }

    /// Drops unused values each time the table has doubled, which keeps the cost amortised and the garbage bounded.
    fn purge(&mut self) {
        if self.values.len() >= self.purge_at {
            self.values.retain(|shared| Arc::strong_count(shared) > 1);
            self.purge_at = PURGE_MIN.max(self.values.len() * 2);
            holds(self.values.len() < self.purge_at, "a table grows between two purges");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_one_copy_of_equal_values() {
        let mut names = Interner::<str>::new();
        let (one, two) = (names.get("alpha"), names.get(String::from("alpha")));
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(&*names.get("beta"), "beta");
    }

    #[test]
    fn purges_unreferenced_values() {
        let mut names = Interner::<str>::new();
        let held = names.get("held");
        for number in 0..10_000 {
            names.get(number.to_string());
        }
        assert!(names.values.len() <= PURGE_MIN, "{}", names.values.len());
        assert!(Arc::ptr_eq(&held, &names.get("held")));
    }
}
