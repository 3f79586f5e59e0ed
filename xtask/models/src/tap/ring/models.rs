//! One worker that writes records, and one thread that reads them.

use std::sync::Arc;

use loom::thread;

use super::*;

const PUSHED: u64 = 3;

/// Both words of a record are made from its number, so that mixed records are noticed.
fn words(number: u64) -> [u64; WORDS] {
    [number, !number]
}

#[test]
fn each_record_is_read_once_and_whole_or_counted_as_lost() {
    loom::model(|| {
        let ring = Arc::new(Ring::new(usize::MAX));
        assert_eq!(ring.capacity(), 2);
        let rings = [Arc::clone(&ring)];
        let worker = thread::spawn(move || {
            for number in 1..=PUSHED {
                ring.push(Reasons::FAILURE, 1, || words(number));
            }
        });
        let mut read = Vec::new();
        let mut take = |record: &[u64; WORDS]| {
            assert_eq!(*record, words(record[0]), "a record is whole");
            read.push(record[0]);
        };
        drain(&rings, &mut take);
        worker.join().unwrap();
        drain(&rings, &mut take);
        assert!(read.is_sorted_by(|one, next| one < next), "{read:?}");
        assert_eq!(read.len() as u64 + rings[0].lost(), PUSHED, "{read:?}");
    });
}
