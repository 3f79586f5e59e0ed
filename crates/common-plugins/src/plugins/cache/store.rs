//! Storage for one class of responses, bounded by number and by size in bytes.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

use engine::Instant;
use host::invariant::holds;
use rcu::Shards;

use super::entry::{Entry, Key};

/// Number of shards: at least as many as in CoreDNS, and enough to keep each as small as one of CoreDNS's default
/// capacity. An insertion copies its shard, so large shards would make large caches slow.
const SHARDS_MIN: usize = 256;
const SHARDS_MAX: usize = 1 << 16;
const PART: usize = 9984 / SHARDS_MIN;
/// Minimum number of entries per shard.
const SHARE_MIN: usize = 4;
/// Odd multiplier that mixes bits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
/// Average number of bytes per entry: large responses evict others instead of growing the process.
pub(super) const BYTES_EACH: usize = 1024;

const _: () = assert!(SHARDS_MIN.is_power_of_two() && SHARDS_MAX.is_power_of_two());

/// Cached responses.
pub(super) struct Store {
    table: Shards<Arc<Entry>>,
    share: usize,
    bytes: AtomicUsize,
    bytes_max: usize,
}

impl Store {
    /// Creates a store for `capacity` entries, rounded like in CoreDNS.
    pub(super) fn new(capacity: usize) -> Store {
        let shards = (capacity / PART).next_power_of_two().clamp(SHARDS_MIN, SHARDS_MAX);
        let share = (capacity / shards).max(SHARE_MIN);
        // Otherwise the table rounds the number up, and the bounds are those of another table.
        holds(shards.is_power_of_two(), "the number of shards is a power of two");
        holds(share >= SHARE_MIN, "a shard has room for entries whose hashes are close");
        Store { table: Shards::new(shards), share, bytes: AtomicUsize::new(0), bytes_max: share * shards * BYTES_EACH }
    }

    /// Reads the entry for a question.
    pub(super) fn read<R>(&self, key: &Key<'_>, read: impl FnOnce(&Entry) -> R) -> Option<R> {
        let hash = self.table.hash(key);
        self.table.read(hash, |entry| entry.key() == *key, |entry| read(entry))
    }

    /// Inserts an entry in place of the one for the same question. Returns the number of other entries that were
    /// evicted.
    pub(super) fn keep(&self, entry: Entry, now: Instant, stale: Duration, random: u64) -> usize {
        let entry = Arc::new(entry);
        holds(entry.is_of_use(now, stale), "an entry that is stored is valid");
        let hash = self.table.hash(&entry.key());
        // The bytes are counted before the entry is in the table. Another worker that evicts it at once would otherwise
        // subtract them first, and the count would wrap around.
        self.bytes.fetch_add(entry.size(), Ordering::Relaxed);
        let before = self.table.replace(Arc::clone(&entry), |kept| kept.key() == entry.key());
        if let Some(before) = before {
            entry.inherit(&before);
            self.subtract(&before);
        }
        let mut gone = 0;
        while self.is_over(hash)
            && let Some(evicted) = self.evict_beside(&entry, hash, now, stale, random)
        {
            gone += evicted;
        }
        gone
    }

    /// Removes an entry.
    pub(super) fn remove(&self, key: &Key<'_>) {
        let hash = self.table.hash(key);
        if let Some(entry) = self.table.remove(hash, |entry| entry.key() == *key) {
            self.subtract(&entry);
        }
    }

    /// Calls `visit` for every entry, in no particular order.
    pub(super) fn for_each(&self, mut visit: impl FnMut(&Entry)) {
        self.table.for_each(|entry| visit(entry));
    }

    /// Removes the entries for which `is_meant` returns true, and returns their number.
    pub(super) fn remove_if(&self, is_meant: impl Fn(&Entry) -> bool) -> usize {
        let mut removed = 0;
        let count = |entry: &Arc<Entry>| {
            removed += 1;
            self.subtract(entry);
        };
        self.table.retain(|entry| !is_meant(entry), count);
        removed
    }

    /// Returns the number of entries.
    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Subtracts the bytes of an entry that has left the table.
    fn subtract(&self, entry: &Entry) {
        let bytes = self.bytes.fetch_sub(entry.size(), Ordering::Relaxed);
        holds(entry.size() <= bytes, "the bytes of an entry in the table were counted");
    }

    fn is_over(&self, hash: u64) -> bool {
        let mut beside = 0;
        self.table.for_each_beside(hash, |_| beside += 1);
        beside > self.share || self.bytes.load(Ordering::Relaxed) > self.bytes_max
    }

    /// Evicts one entry of the same shard, preferably an expired one, otherwise a random one. Returns the number of
    /// evicted entries: none if another worker evicted it first. Returns `None` if there is no other.
    fn evict_beside(&self, entry: &Arc<Entry>, hash: u64, now: Instant, stale: Duration, random: u64) -> Option<usize> {
        let mut victim: Option<Arc<Entry>> = None;
        let (mut useless, mut seen) = (false, 0u64);
        self.table.for_each_beside(hash, |other| {
            if Arc::ptr_eq(other, entry) || useless {
                return;
            }
            useless = !other.is_of_use(now, stale);
            seen += 1;
            // Reservoir sampling: each entry seen so far is the victim with the same probability.
            if useless || draw(random, seen).is_multiple_of(seen) {
                victim = Some(Arc::clone(other));
            }
        });
        holds(victim.is_some() == (seen > 0), "a shard with other entries has one to evict");
        let victim = victim?;
        holds(!Arc::ptr_eq(&victim, entry), "an entry that was just stored does not evict itself");
        let gone = self.table.remove(self.table.hash(&victim.key()), |kept| Arc::ptr_eq(kept, &victim));
        // Another worker may have evicted the same victim, and has then subtracted its bytes and counted it.
        let Some(gone) = gone else { return Some(0) };
        self.subtract(&gone);
        Some(1)
    }
}

/// Returns one of several independent numbers made of one random number. These are the upper bits of a product: its
/// lower bits depend on few bits, so the number for 4 would be even whenever that for 2 is.
fn draw(random: u64, number: u64) -> u64 {
    (random ^ number.wrapping_mul(SPREAD)).wrapping_mul(SPREAD) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Query, Response};
    use wire::{Owner, Section};

    fn entry(number: u32, bytes: usize, ttl: u32) -> Entry {
        let mut query = Query::default();
        query.set_name(wire::Name::from_text(&format!("n{number}.test.")).unwrap().as_ref());
        let mut response = Response::default();
        response.begin(&query);
        response.message.set_limit(usize::from(u16::MAX));
        let pushed =
            response.message.push(Section::Answer, Owner::Question, (wire::Type::TXT, wire::Class::IN, 9), |rdata| {
                rdata.bytes(&vec![0; bytes]);
            });
        assert!(pushed.is_some(), "the record fits");
        Entry::new(&query, &response, ttl, Instant::START)
    }

    #[test]
    fn bounds_the_number_and_the_size_of_entries() {
        let store = Store::new(0);
        for number in 0..5000 {
            store.keep(entry(number, 10, 60), Instant::START, Duration::ZERO, u64::from(number) * 77);
        }
        assert!(store.len() <= SHARDS_MIN * SHARE_MIN && store.len() > SHARDS_MIN * SHARE_MIN * 9 / 10);
        let store = Store::new(0);
        for number in 0..5000 {
            store.keep(entry(number, 40_000, 60), Instant::START, Duration::ZERO, u64::from(number) * 77);
        }
        let bytes = store.bytes.load(Ordering::Relaxed);
        assert!(bytes >= store.len() * 40_000 && bytes <= store.bytes_max + 41_000 * SHARDS_MIN, "{bytes}");
    }

    #[test]
    fn keeps_the_shards_of_large_caches_small() {
        for (capacity, shards, share) in [(0, 256, 4), (9984, 256, 39), (10_000, 256, 39), (1_000_000, 32_768, 30)] {
            let store = Store::new(capacity);
            assert_eq!((store.share, store.bytes_max), (share, share * shards * BYTES_EACH), "{capacity}");
        }
    }

    #[test]
    fn evicts_expired_entries_first() {
        let store = Store::new(0);
        let later = Instant::START + Duration::from_secs(100);
        for number in 0..512 {
            store.keep(entry(number, 10, if number % 2 == 0 { 1 } else { 1000 }), Instant::START, Duration::ZERO, 1);
        }
        // About 62 for each shard with its share of 4, so that every shard is full with any seed of the table.
        for number in 10_000..26_000 {
            store.keep(entry(number, 10, 1000), later, Duration::ZERO, u64::from(number));
        }
        let mut alive = 0;
        store.table.for_each(|entry| alive += usize::from(entry.left(later).is_some()));
        assert_eq!(store.len(), alive);
    }

    /// Returns the names of the entries in the shard of this hash.
    fn names_beside(store: &Store, hash: u64) -> Vec<Box<[u8]>> {
        let mut names = Vec::new();
        store.table.for_each_beside(hash, |entry| names.push(entry.name().into()));
        names
    }

    #[test]
    fn evicts_each_valid_entry_as_often_as_the_others() {
        const OTHERS: usize = 12;
        const ROUNDS: usize = 12_000;
        let store = Store::new(9984);
        let keep = |number| store.keep(entry(number, 10, 60), Instant::START, Duration::ZERO, 0);
        let newest = Arc::new(entry(0, 10, 60));
        let hash = store.table.hash(&newest.key());
        store.table.insert(Arc::clone(&newest));
        // There is room for all of them, so that none is evicted here.
        let beside: Vec<u32> = (1..)
            .filter(|number| {
                let before = names_beside(&store, hash).len();
                keep(*number);
                names_beside(&store, hash).len() > before
            })
            .take(OTHERS)
            .collect();
        let mut evictions = [0; OTHERS];
        let mut state = 1_u64;
        for _ in 0..ROUNDS {
            // SplitMix64.
            state = state.wrapping_add(SPREAD);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let random = mixed ^ (mixed >> 31);
            assert_eq!(store.evict_beside(&newest, hash, Instant::START, Duration::ZERO, random), Some(1));
            let left = names_beside(&store, hash);
            let is_gone = |number: &&u32| !left.iter().any(|name| **name == *entry(**number, 10, 60).name());
            let gone = beside.iter().position(|number| is_gone(&number)).unwrap();
            evictions[gone] += 1;
            keep(beside[gone]);
        }
        assert!(evictions.iter().all(|count| (800..1200).contains(count)), "{evictions:?}");
    }

    /// Returns the number of bytes of the entries in the table.
    fn bytes_of_entries(store: &Store) -> usize {
        let mut bytes = 0;
        store.for_each(|entry| bytes += entry.size());
        bytes
    }

    #[test]
    fn counts_the_bytes_of_the_entries_that_it_has() {
        let store = Store::new(0);
        let counted = || store.bytes.load(Ordering::Relaxed);
        let numbers = 0..3000;
        // Many more than there is room for, and the entries that are left once more with another length.
        for (number, length) in
            numbers.clone().map(|number| (number, 10)).chain(numbers.clone().map(|number| (number, 20)))
        {
            store.keep(entry(number, length, 60), Instant::START, Duration::ZERO, u64::from(number) * 77);
        }
        assert!(store.len() > 500);
        assert_eq!(counted(), bytes_of_entries(&store));
        let before = store.len();
        let removed = store.remove_if(|entry| entry.name().ends_with(b"7\x04test\0"));
        assert!(removed > 50 && removed == before - store.len(), "{removed}");
        assert_eq!(counted(), bytes_of_entries(&store));
        numbers.for_each(|number| store.remove(&entry(number, 10, 60).key()));
        assert_eq!((store.len(), counted()), (0, 0));
    }

    #[test]
    fn evicts_only_beside_a_shard_that_has_its_share() {
        let store = Store::new(0);
        for number in 0..2000 {
            let entry = entry(number, 10, 60);
            let beside = names_beside(&store, store.table.hash(&entry.key())).len();
            let evicted = store.keep(entry, Instant::START, Duration::ZERO, u64::from(number) * 77);
            assert_eq!(evicted, usize::from(beside == SHARE_MIN), "{beside} entries beside the new one");
        }
    }

    #[test]
    fn has_room_for_exactly_its_bytes() {
        let store = Store::new(0);
        store.bytes.store(store.bytes_max, Ordering::Relaxed);
        assert!(!store.is_over(0));
        store.bytes.store(store.bytes_max + 1, Ordering::Relaxed);
        assert!(store.is_over(0));
    }

    #[test]
    fn keeps_a_new_entry_that_has_no_others_to_evict() {
        let store = Store::new(0);
        store.bytes.store(store.bytes_max, Ordering::Relaxed);
        assert_eq!(store.keep(entry(1, 10, 60), Instant::START, Duration::ZERO, 1), 0);
        assert_eq!(store.len(), 1);
    }
}
