use core::time::Duration;

use super::{EventBuffer, Level, Source};

fn lines(buffer: &EventBuffer) -> Vec<String> {
    buffer.events().map(|event| event.to_string()).collect()
}

fn push(buffer: &mut EventBuffer, source: Source<'_>, text: &str) {
    buffer.push(Duration::from_millis(5), Level::Info, source, |out| out.extend_from_slice(text.as_bytes()));
}

#[test]
fn writes_events_like_coredns() {
    let mut buffer = EventBuffer::new(1024);
    for (level, source) in [
        (Level::Error, Source::Plugin("errors")),
        (Level::Warning, Source::Server),
        (Level::Info, Source::Queries),
        (Level::Debug, Source::Plugin("")),
        (Level::Info, Source::Banner),
    ] {
        buffer.push(Duration::from_nanos(7), level, source, |out| out.extend_from_slice(b"text"));
    }
    let expected = ["[ERROR] plugin/errors: text", "[WARNING] text", "[INFO] text", "[DEBUG] plugin/: text", "text"];
    assert_eq!(lines(&buffer), expected);
    assert!(buffer.events().all(|event| event.time == Duration::from_nanos(7)));
}

#[test]
fn drops_and_counts_events_beyond_the_bound() {
    let mut buffer = EventBuffer::new(100);
    push(&mut buffer, Source::Server, "kept");
    push(&mut buffer, Source::Server, &"long".repeat(100));
    push(&mut buffer, Source::Server, "kept too");
    assert_eq!((lines(&buffer).len(), buffer.dropped), (2, 1));
    for _ in 0..10 {
        push(&mut buffer, Source::Server, "some text");
    }
    assert!(buffer.bytes.len() <= 100 && buffer.bytes.capacity() <= 200);
    assert_eq!(lines(&buffer).len() as u64 + buffer.dropped, 13);
    buffer.clear();
    assert!(buffer.is_empty());
}

#[test]
fn appends_all_events_or_counts_them_as_dropped() {
    let mut queue = EventBuffer::new(100);
    let mut batch = EventBuffer::new(60);
    push(&mut batch, Source::Server, "one");
    push(&mut batch, Source::Server, "two");
    push(&mut batch, Source::Server, &"long".repeat(10));
    assert_eq!(batch.dropped, 1);
    for expected in [(2, 1), (4, 2), (4, 5)] {
        queue.append(&batch);
        assert_eq!((lines(&queue).len(), queue.dropped), expected);
    }
}
