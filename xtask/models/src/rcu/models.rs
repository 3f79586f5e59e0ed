//! Writers of one shard beside each other and beside a reader.

use std::sync::Arc;

use loom::thread;

use super::packed::{Keyed, Packed};
use super::sorted::Sorted;
use super::*;

/// Key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair(u8, u8);

impl Entry for Pair {
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash_one(self.0)
    }
}

impl Keyed for Pair {
    type Key = u8;

    fn key(&self) -> u8 {
        self.0
    }
}

/// Table with one shard, which contains these pairs.
fn shards(pairs: &[Pair]) -> Arc<Shards<Pair>> {
    let table = Shards::new(1);
    pairs.iter().for_each(|pair| table.insert(*pair));
    Arc::new(table)
}

fn contents(table: &Shards<Pair>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    table.for_each(|pair| pairs.push(*pair));
    pairs.sort_unstable();
    pairs
}

#[test]
fn no_insertion_is_lost_or_seen_twice() {
    loom::model(|| {
        let table = shards(&[]);
        let writers = [Pair(1, 1), Pair(2, 2)].map(|pair| {
            let table = Arc::clone(&table);
            thread::spawn(move || table.insert(pair))
        });
        let (first, second) = (contents(&table), contents(&table));
        assert!(first.iter().all(|pair| second.contains(pair)), "{first:?} {second:?}");
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(contents(&table), [Pair(1, 1), Pair(2, 2)]);
    });
}

#[test]
fn a_replacement_and_a_removal_happen_one_after_the_other() {
    loom::model(|| {
        let table = shards(&[Pair(1, 1)]);
        let shared = Arc::clone(&table);
        let replacing = thread::spawn(move || shared.replace(Pair(1, 2), |pair| pair.0 == 1));
        let removed = table.remove(table.hash(&1_u8), |pair| pair.0 == 1);
        let replaced = replacing.join().unwrap();
        match (replaced, removed) {
            (Some(Pair(1, 1)), Some(Pair(1, 2))) => assert_eq!(contents(&table), []),
            (None, Some(Pair(1, 1))) => assert_eq!(contents(&table), [Pair(1, 2)]),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn an_entry_is_removed_once() {
    loom::model(|| {
        let table = shards(&[Pair(1, 1), Pair(2, 2)]);
        let (one, two) = (Arc::clone(&table), Arc::clone(&table));
        let removing = thread::spawn(move || usize::from(one.remove(one.hash(&1_u8), |pair| pair.0 == 1).is_some()));
        let retaining = thread::spawn(move || {
            let mut removed = 0;
            two.retain(|pair| pair.0 != 1, |_| removed += 1);
            removed
        });
        table.insert(Pair(3, 3));
        assert_eq!(removing.join().unwrap() + retaining.join().unwrap(), 1);
        assert_eq!(contents(&table), [Pair(2, 2), Pair(3, 3)]);
    });
}

#[test]
fn no_change_of_a_packed_table_is_lost() {
    loom::model(|| {
        let table = Arc::new(Packed::new(1));
        table.put(Pair(2, 2), |_| false);
        let (one, two) = (Arc::clone(&table), Arc::clone(&table));
        let putting = thread::spawn(move || one.put(Pair(1, 1), |_| false));
        let removing = thread::spawn(move || two.remove(2, |_| true));
        let mut seen = Vec::new();
        table.for_each(|pair| seen.push(*pair));
        assert!(seen.is_sorted() && seen.len() <= 2, "{seen:?}");
        putting.join().unwrap();
        removing.join().unwrap();
        let mut left = Vec::new();
        table.for_each(|pair| left.push(*pair));
        assert_eq!(left, [Pair(1, 1)]);
    });
}

#[test]
fn a_reader_of_a_sorted_table_sees_all_of_an_edit_or_nothing() {
    loom::model(|| {
        let table = Arc::new(Sorted::default());
        let writers = [b"a", b"b"].map(|key| {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let mut edit = table.edit();
                edit.insert(key, 1);
                edit.insert(&[key[0], b'2'], 1);
                edit.publish();
            })
        });
        let pages = table.read();
        for key in [b"a", b"b"] {
            assert_eq!(pages.get(key).is_some(), pages.get(&[key[0], b'2']).is_some());
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(table.read().len(), 4);
    });
}
