//! Comparison of the table with a plain list, and concurrent readers while a writer changes every entry.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;

/// Part of the usual work that is left for Miri, which runs each instruction a thousand times more slowly.
const PART: u32 = if cfg!(miri) { 100 } else { 1 };

/// Key with a value and the value's complement, so that a test notices a torn or mixed entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    key: u32,
    value: u32,
    negated: u32,
}

impl Pair {
    fn new(key: u32, value: u32) -> Pair {
        Pair { key, value, negated: !value }
    }
}

impl Entry for Pair {
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash_one(self.key)
    }
}

fn get(table: &Shards<Pair>, key: u32) -> Option<Pair> {
    table.read(table.hash(&key), |pair| pair.key == key, |pair| *pair)
}

fn contents(table: &Shards<Pair>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    table.for_each(|pair| pairs.push(*pair));
    pairs.sort_unstable();
    pairs
}

/// Returns a reproducible pseudorandom number generator (xorshift).
fn numbers(mut state: u64) -> impl FnMut(u32) -> u32 {
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        u32::try_from(state >> 33).unwrap() % below
    }
}

#[test]
fn agrees_with_a_list_for_any_number_of_shards() {
    for shards in [0, 1, 3, if cfg!(miri) { 4 } else { 64 }] {
        let table = Shards::new(shards);
        let mut list: Vec<Pair> = Vec::new();
        let mut number = numbers(0x9e37_79b9_7f4a_7c15);
        const STEPS: u32 = 3000 / PART;
        for step in 0..STEPS {
            let pair = Pair::new(number(200), step);
            let at = list.iter().position(|kept| kept.key == pair.key);
            let same = |kept: &Pair| kept.key == pair.key;
            // In the first half three of four steps insert, in the second half three of four steps remove.
            if (number(4) == 0) == (step < STEPS / 2) {
                let removed = table.remove(table.hash(&pair.key), same);
                assert_eq!(removed, at.map(|at| list.remove(at)));
            } else {
                let replaced = table.replace(pair, same);
                assert_eq!(replaced, at.map(|at| list.remove(at)));
                list.push(pair);
            }
            assert_eq!((table.len(), table.is_empty()), (list.len(), list.is_empty()));
        }
        list.sort_unstable();
        assert_eq!(contents(&table), list);
    }
}

#[test]
fn keeps_equal_entries() {
    let table = Shards::new(4);
    for value in [1, 2, 2] {
        table.insert(Pair::new(7, value));
    }
    let seen = |key: u32| {
        let mut values = Vec::new();
        table.read_all(table.hash(&key), |pair| values.extend((pair.key == key).then_some(pair.value)));
        values.sort_unstable();
        values
    };
    assert_eq!(seen(7), [1, 2, 2]);
    assert!(seen(8).is_empty());
    assert!(table.remove(table.hash(&7u32), |pair| pair.value == 2).is_some());
    assert_eq!(seen(7), [1, 2]);
    assert!(table.remove(table.hash(&7u32), |pair| pair.value == 3).is_none());
}

#[test]
fn frees_the_memory_of_an_emptied_table() {
    let table = Shards::new(1);
    (0..1000 / PART).for_each(|key| table.insert(Pair::new(key, 0)));
    (0..1000 / PART).for_each(|key| assert!(table.remove(table.hash(&key), |pair| pair.key == key).is_some()));
    assert_eq!(table.shards[0].load().capacity(), 0);
}

#[test]
fn survives_a_panic_in_a_writer() {
    let table = Shards::new(1);
    table.insert(Pair::new(1, 1));
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        table.replace(Pair::new(1, 2), |_| panic!("a comparison that fails"))
    }));
    assert!(panics.is_err());
    table.insert(Pair::new(2, 2));
    assert_eq!(contents(&table), [Pair::new(1, 1), Pair::new(2, 2)]);
}

#[test]
fn loses_no_insert_of_concurrent_writers() {
    const KEYS: u32 = 2000 / PART;
    let table = Shards::new(1);
    std::thread::scope(|threads| {
        for first in 0..2 {
            let table = &table;
            threads.spawn(move || (first..KEYS).step_by(2).for_each(|key| table.insert(Pair::new(key, 0))));
        }
    });
    assert_eq!(contents(&table), (0..KEYS).map(|key| Pair::new(key, 0)).collect::<Vec<_>>());
}

/// Odd keys are always present, and their values only grow. Even keys come and go. Readers run until the writer is
/// done.
#[test]
fn concurrent_readers_see_intact_and_never_older_entries() {
    const KEYS: u32 = if cfg!(miri) { 8 } else { 64 };
    const ROUNDS: u32 = if cfg!(miri) { 2 } else { 300 };
    let table = Shards::new(4);
    (1..KEYS).step_by(2).for_each(|key| table.insert(Pair::new(key, 0)));
    let (done, reads) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let mut newest = [0; KEYS as usize];
                while !done.load(Ordering::Acquire) || reads.load(Ordering::Relaxed) == 0 {
                    for key in 0..KEYS {
                        let pair = get(&table, key);
                        assert!(pair.is_some() || key % 2 == 0, "{key} was never removed");
                        let Some(pair) = pair else { continue };
                        assert_eq!((pair.key, pair.negated), (key, !pair.value));
                        assert!(pair.value >= newest[key as usize], "{key} went back in time");
                        newest[key as usize] = pair.value;
                    }
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 1..=ROUNDS {
            for key in 0..KEYS {
                if key % 2 == 0 && round % 2 == 0 {
                    table.remove(table.hash(&key), |pair| pair.key == key);
                } else {
                    table.replace(Pair::new(key, round), |pair| pair.key == key);
                }
            }
        }
        done.store(true, Ordering::Release);
    });
    let odd: Vec<Pair> = (1..KEYS).step_by(2).map(|key| Pair::new(key, ROUNDS)).collect();
    assert_eq!(contents(&table), odd);
}

#[test]
fn retain_removes_what_is_not_kept_and_reports_it() {
    const KEYS: u32 = 1000 / PART;
    let table = Shards::new(16);
    (0..KEYS).for_each(|key| table.insert(Pair::new(key, key)));
    let mut removed = Vec::new();
    table.retain(|pair| pair.key % 3 == 0, |pair| removed.push(pair.key));
    removed.sort_unstable();
    assert_eq!(removed, (0..KEYS).filter(|key| key % 3 != 0).collect::<Vec<_>>());
    assert_eq!(table.len(), KEYS.div_ceil(3) as usize);
    table.retain(|_| true, |_| unreachable!("all are kept"));
    table.retain(|_| false, |_| {});
    assert!(table.is_empty());
}
