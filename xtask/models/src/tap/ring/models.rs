//! One worker that writes records, and one thread that reads them.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use loom::thread;

use super::*;

const PUSHED: u64 = 3;

/// Both words of a record are made from its number, so that mixed records are noticed.
fn words(number: u64) -> [u64; WORDS] {
    [number, !number]
}

/// Takes the records out of the ring, adds their numbers to `read`, and checks that each is whole.
fn read(rings: &[Arc<Ring>], read: &mut Vec<u64>) {
    drain(rings, |record| {
        assert_eq!(*record, words(record[0]), "a record is whole");
        read.push(record[0]);
    });
}

/// The reader is the second thread. loom 0.7 keeps the last access to each number alone, so the load with which a
/// worker begins would hide that of a reader before it, and this schedule would be the only one.
#[test]
fn each_record_is_read_once_and_whole_or_counted_as_lost() {
    // Of `std`, so that it counts over all schedules.
    static READ_BESIDE: AtomicUsize = AtomicUsize::new(0);
    loom::model(|| {
        let ring = Arc::new(Ring::new(usize::MAX));
        assert_eq!(ring.capacity(), 2);
        let rings = [Arc::clone(&ring)];
        let reader = thread::spawn(move || {
            let mut numbers = Vec::new();
            read(&rings, &mut numbers);
            (rings, numbers)
        });
        for number in 1..=PUSHED {
            ring.push(Reasons::FAILURE, 1, || words(number));
        }
        let (rings, mut numbers) = reader.join().unwrap();
        let is_beside = (1..PUSHED).contains(&(numbers.len() as u64)) || ring.lost() == 0;
        READ_BESIDE.fetch_add(usize::from(is_beside), Ordering::Relaxed);
        read(&rings, &mut numbers);
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        assert_eq!(numbers.len() as u64 + ring.lost(), PUSHED, "{numbers:?}");
    });
    assert!(READ_BESIDE.load(Ordering::Relaxed) > 10, "the threads run beside each other");
}
