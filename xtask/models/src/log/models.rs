//! Threads that report events, the writer, and a thread that ends the process.

use std::sync::Arc;

use loom::thread;

use super::*;

/// Event with this text.
fn batch(text: &str) -> EventBuffer {
    let mut batch = EventBuffer::new(1);
    batch.push(Duration::ZERO, Level::Info, Source::Server, |out| out.extend_from_slice(text.as_bytes()));
    batch
}

/// Takes events like the writer until `expected` of them were written or dropped. Returns the texts and the number
/// that was dropped.
fn write(queue: &LogQueue, expected: u64) -> (Vec<Vec<u8>>, u64) {
    let (mut written, mut dropped) = (Vec::new(), 0);
    let mut events = EventBuffer::new(1);
    while written.len() as u64 + dropped < expected {
        dropped += queue.take(&mut events, None).dropped;
        written.append(&mut events.events);
    }
    (written, dropped)
}

#[test]
fn each_event_is_written_or_counted_and_the_writer_never_sleeps_beside_one() {
    loom::model(|| {
        let queue = Arc::new(LogQueue::new(1));
        let workers = ["one", "two"].map(|text| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || queue.push(&batch(text)))
        });
        let (mut written, dropped) = write(&queue, 2);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        written.sort_unstable();
        written.dedup();
        assert_eq!(written.len() as u64 + dropped, 2);
        assert_eq!(queue.dropped.load(Ordering::Relaxed), dropped);
    });
}

#[test]
fn a_flush_returns_after_the_last_event_is_written() {
    loom::model(|| {
        let queue = Arc::new(LogQueue::new(2));
        // Of loom, so that the writer can be interrupted before it has written what it took.
        let written = Arc::new(loom::sync::atomic::AtomicUsize::new(0));
        let (shared, count) = (Arc::clone(&queue), Arc::clone(&written));
        let writer = thread::spawn(move || {
            let mut events = EventBuffer::new(2);
            loop {
                shared.take(&mut events, None);
                count.fetch_add(events.events.len(), Ordering::Relaxed);
                if events.events.iter().any(|event| event == b"end") {
                    return;
                }
                events.clear();
            }
        });
        queue.push(&batch("one"));
        queue.flush(Duration::from_secs(1));
        assert_eq!(written.load(Ordering::Relaxed), 1, "the event is written before the flush returns");
        queue.push(&batch("end"));
        writer.join().unwrap();
    });
}
