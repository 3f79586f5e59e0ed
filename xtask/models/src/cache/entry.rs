//! In place of the entries of the cache.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use crate::host::Instant;
use crate::rcu::{self, Seed};

pub struct Entry {
    pub key: u8,
    pub size: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key<'a>(pub &'a u8);

impl Entry {
    pub fn key(&self) -> Key<'_> {
        Key(&self.key)
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn is_of_use(&self, _: Instant, _: Duration) -> bool {
        true
    }

    pub fn inherit(&self, before: &Entry) {
        assert_eq!(self.key, before.key);
    }
}

impl rcu::Entry for Entry {
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash_one(self.key())
    }
}
