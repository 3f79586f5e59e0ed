use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Part of the usual work that is left for Miri, which runs each instruction a thousand times more slowly.
const PART: u32 = if cfg!(miri) { 50 } else { 1 };

type Model = BTreeMap<Vec<u8>, u32>;

fn contents(table: &Sorted<u32>) -> Vec<(Vec<u8>, u32)> {
    table.read().below(b"").map(|(key, value)| (key.to_vec(), *value)).collect()
}

/// Checks that pages and chapters are neither empty nor overfull, and that all keys are in order.
fn check(pages: &Pages<u32>, model: &Model) {
    assert_eq!(pages.len(), model.len());
    let is_right = |len: usize| (1..=PAGE_MAX).contains(&len);
    for (at, chapter) in pages.chapters.values.iter().enumerate() {
        assert!(is_right(chapter.values.len()));
        assert!(pages.chapters.key(at) <= chapter.key(0));
        assert!(chapter.values.iter().all(|page| is_right(page.values.len())));
        assert!((0..chapter.values.len()).all(|at| chapter.key(at) <= chapter.values[at].key(0)));
    }
    let listed: Vec<_> = pages.from(b"").map(|(key, value)| (key, *value)).collect();
    assert_eq!(listed, model.iter().map(|(key, value)| (key.as_slice(), *value)).collect::<Vec<_>>());
}

/// Returns a reproducible pseudorandom number generator (xorshift64).
fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

fn key(number: u64) -> Vec<u8> {
    format!("{}/{:x}", number % 7, number).into_bytes()
}

#[test]
fn agrees_with_a_btree_map() {
    // Few keys make most of them come and go. Many keys give the tree several chapters.
    let sizes = (1..12).map(|seed| (seed, 800, 40)).chain([(12, 100_000, 1000), (13, 20_000, 500)]);
    for (seed, keys, edits) in sizes.take(if cfg!(miri) { 1 } else { usize::MAX }) {
        let mut next = numbers(seed);
        let (table, mut model) = (Sorted::default(), Model::new());
        let rounds = if cfg!(miri) { 6 } else { 60 };
        for round in 0..rounds {
            let mut edit = table.edit();
            // The table grows in the first half of the rounds and shrinks in the rest.
            let removed_of_ten = if round < rounds / 2 { 2 } else { 8 };
            for _ in 0..edits {
                let key = key(next(keys));
                if next(10) < removed_of_ten {
                    assert_eq!(edit.remove(&key), model.remove(&key));
                } else {
                    assert_eq!(edit.insert(&key, round), model.insert(key, round));
                }
            }
            check(edit.pages(), &model);
            edit.publish();
            check(&table.read(), &model);
            let prefix = format!("{}/{:x}", next(7), next(16)).into_bytes();
            let below = table.read().below(&prefix).count();
            assert_eq!(below, model.keys().filter(|key| key.starts_with(&prefix)).count());
            let any = key(next(keys));
            assert_eq!(table.read().get(&any), model.get(&any));
            let from = table.read().from(&any).next().map(|(key, _)| key.to_vec());
            assert_eq!(from, model.range(any..).next().map(|(key, _)| key.clone()));
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "it needs thousands of keys, which take Miri minutes")]
fn fills_pages_completely_when_keys_are_inserted_in_order() {
    let table = Sorted::default();
    let mut edit = table.edit();
    for number in 0..6400u32 {
        edit.insert(format!("{number:05}").as_bytes(), number);
    }
    edit.publish();
    let chapters: Vec<usize> = table.read().chapters.values.iter().map(|chapter| chapter.values.len()).collect();
    assert_eq!(chapters, [64, 36]);
    assert_eq!(table.read().get(b"05000"), Some(&5000));
}

#[test]
fn discards_a_dropped_edit() {
    let table = Sorted::default();
    let mut edit = table.edit();
    edit.insert(b"a", 1);
    edit.publish();
    let mut edit = table.edit();
    edit.insert(b"b", 2);
    edit.remove(b"a");
    drop(edit);
    assert_eq!(contents(&table), [(b"a".to_vec(), 1)]);
    assert!(!table.read().is_empty());
}

/// Every published state has the same value everywhere. A reader that finds two values saw a mix of states.
#[test]
fn concurrent_readers_see_consistent_states() {
    const KEYS: u32 = if cfg!(miri) { 20 } else { 300 };
    let table = Sorted::default();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let mut newest = 0;
                while !done.load(Ordering::Acquire) {
                    let pages = table.read();
                    let first = pages.from(b"").next().map_or(newest, |(_, value)| *value);
                    assert!(pages.below(b"").all(|(_, value)| *value == first));
                    assert!(first >= newest);
                    newest = first;
                }
            });
        }
        for round in 1..=200 / PART {
            let mut edit = table.edit();
            for number in 0..KEYS {
                edit.insert(&key(number.into()), round);
            }
            edit.publish();
        }
        done.store(true, Ordering::Release);
    });
    assert_eq!(table.read().len(), KEYS as usize);
}
