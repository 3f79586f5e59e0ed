//! Workers that store, evict and remove entries of one shard.

use std::sync::Arc;

use loom::thread;

use super::*;

fn keep(store: &Store, key: u8, size: usize) -> usize {
    store.keep(Entry { key, size }, Instant::default(), Duration::ZERO, 0)
}

/// Checks that the counted bytes are those of the entries.
fn check(store: &Store) {
    let (mut bytes, mut keys) = (0, Vec::new());
    store.for_each(|entry| {
        bytes += entry.size();
        keys.push(entry.key);
    });
    keys.sort_unstable();
    assert_eq!(store.bytes.load(Ordering::Relaxed), bytes);
    assert!(keys.is_sorted_by(|one, next| one < next), "one entry for each question: {keys:?}");
}

#[test]
fn the_bytes_of_evicted_and_removed_entries_are_subtracted_once() {
    loom::model(|| {
        let store = Arc::new(Store::new(0));
        let mut gone = keep(&store, 1, 10);
        let workers = [2, 3].map(|key| {
            let store = Arc::clone(&store);
            thread::spawn(move || keep(&store, key, 100))
        });
        gone += store.remove_if(|entry| entry.key == 1);
        gone += workers.into_iter().map(|worker| worker.join().unwrap()).sum::<usize>();
        check(&store);
        assert!(store.len() <= 1, "a shard has one place");
        assert_eq!(gone + store.len(), 3, "each entry that is gone is counted once");
    });
}

#[test]
fn workers_that_store_the_same_question_replace_each_other() {
    loom::model(|| {
        let store = Arc::new(Store::new(0));
        let workers = [10, 100].map(|size| {
            let store = Arc::clone(&store);
            thread::spawn(move || keep(&store, 1, size))
        });
        let removed = store.remove_if(|_| true);
        let evicted: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        check(&store);
        assert_eq!(evicted, 0);
        assert!(removed <= 1 && store.len() <= 1);
    });
}
