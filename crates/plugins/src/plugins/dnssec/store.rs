//! Cache of signatures: the same record set is signed once and not for each response.

use core::time::Duration;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use rcu::{Seed, Shards};

use crate::shared::signing::{Key, Set, ValidityPeriod};

/// Number of shards of the table.
const SHARDS: usize = 256;
/// Minimum number of entries per shard.
const SHARE_MIN: usize = 4;
/// Time before the signing at which signatures become valid: clocks of validators may be late.
const BACKDATED: Duration = Duration::from_secs(3 * 3600);
/// Time after the signing until which signatures are valid.
const GOOD_FOR: Duration = Duration::from_secs(8 * 86_400);
/// Time before its expiry at which a signature is replaced: resolvers that cache the answer must still be able to
/// validate it.
const RENEWED_BEFORE: Duration = Duration::from_secs(2 * 86_400);

/// SHA-256 digest that identifies a record set.
type Fingerprint = [u8; SHA256_OUTPUT_LEN];

/// Data of RRSIG records, one for each key.
pub(super) type Signatures = Box<[Box<[u8]>]>;

/// Signatures of one record set.
pub(super) struct Entry {
    fingerprint: Fingerprint,
    /// Time of signing in seconds since 1970.
    made: u64,
    pub(super) signatures: Signatures,
}

impl rcu::Entry for Entry {
    fn hash(&self, seed: &Seed) -> u64 {
        use core::hash::BuildHasher;
        seed.hash_one(self.fingerprint)
    }
}

impl Entry {
    /// Returns true if the signatures can still be used. A clock that was set back invalidates them too.
    fn is_of_use(&self, now: u64) -> bool {
        let first = self.made.saturating_sub(BACKDATED.as_secs());
        let last = self.made + (GOOD_FOR - RENEWED_BEFORE).as_secs();
        (first..last).contains(&now)
    }
}

/// Signatures by record set.
pub(super) struct Store {
    table: Shards<Arc<Entry>>,
    share: usize,
}

/// Result of signing a record set.
pub(super) enum SignResult {
    /// The signatures were in the cache.
    Hit(Arc<Entry>),
    /// The signatures have been made now.
    Miss(Arc<Entry>),
    /// Signing failed.
    Nothing,
}

impl Store {
    /// Creates a cache for the signatures of `capacity` record sets.
    pub(super) fn new(capacity: usize) -> Store {
        Store { table: Shards::new(SHARDS), share: (capacity / SHARDS).max(SHARE_MIN) }
    }

    /// Returns the number of record sets.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Returns the signatures of these keys over a record set. `now` is in seconds since 1970.
    pub(super) fn sign<'k>(&self, set: &Set, keys: impl Iterator<Item = &'k Key>, now: u64, random: u64) -> SignResult {
        let fingerprint = fingerprint(set);
        let hash = self.table.hash(&fingerprint);
        let known = self.table.read(hash, |entry| entry.fingerprint == fingerprint, Arc::clone);
        if let Some(entry) = known.filter(|entry| entry.is_of_use(now)) {
            return SignResult::Hit(entry);
        }
        let period = period(now);
        let signatures: Option<Signatures> = keys.map(|key| key.sign(set, period).map(Vec::into_boxed_slice)).collect();
        let Some(signatures) = signatures else { return SignResult::Nothing };
        let entry = Arc::new(Entry { fingerprint, made: now, signatures });
        self.table.replace(Arc::clone(&entry), |kept| kept.fingerprint == fingerprint);
        self.evict_beside(hash, &fingerprint, random);
        SignResult::Miss(entry)
    }

    /// Evicts random entries from the shard of an entry while it is over its share.
    fn evict_beside(&self, hash: u64, keep: &Fingerprint, random: u64) {
        let mut beside = Vec::new();
        self.table.for_each_beside(hash, |entry| beside.push(Arc::clone(entry)));
        beside.retain(|entry| entry.fingerprint != *keep);
        while beside.len() >= self.share {
            let at = usize::try_from(random % beside.len() as u64).unwrap_or_default();
            let victim = beside.swap_remove(at);
            self.table.remove(self.table.hash(&victim.fingerprint), |kept| Arc::ptr_eq(kept, &victim));
        }
    }
}

fn fingerprint(set: &Set) -> Fingerprint {
    let mut fingerprint = [0; SHA256_OUTPUT_LEN];
    fingerprint.copy_from_slice(digest(&SHA256, &set.bytes).as_ref());
    fingerprint
}

/// Returns the validity period of signatures made at `now`, as 32-bit numbers that wrap (RFC 4034 §3.1.5).
fn period(now: u64) -> ValidityPeriod {
    #[allow(clippy::cast_possible_truncation, reason = "RRSIG records have the time modulo 2^32")]
    let wrap = |seconds: u64| seconds as u32;
    ValidityPeriod {
        inception: wrap(now.saturating_sub(BACKDATED.as_secs())),
        expiration: wrap(now + GOOD_FOR.as_secs()),
    }
}
