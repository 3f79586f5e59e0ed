//! Writer thread of the log.

use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::log::{Event, EventBuffer, Level, Source};
use host::mask::masked_urls;
use net::{LOG_QUEUE_MAX, LogQueue};

use super::render::Renderer;
use super::repeats::Repeats;

/// Size in bytes from which the buffer is written: the capacity of a pipe.
const CHUNK: usize = 64 << 10;
/// End of the scheme of a URL.
const SCHEME_END: &[u8] = b"://";
/// Pause after each write. It limits the wake-ups by workers, and collects the lines of a busy server into one write.
const PAUSE: Duration = Duration::from_millis(5);

/// Writer of events to a file descriptor, which may block indefinitely.
pub(super) struct Writer<W> {
    renderer: Renderer,
    out: W,
    chunk: Vec<u8>,
    /// Events in the chunk.
    lines: u64,
    repeats: Repeats,
    start: Instant,
    /// Events lost since the last line that reported a loss.
    lost: u64,
}

impl<W: Write> Writer<W> {
    pub(super) fn new(renderer: Renderer, out: W) -> Writer<W> {
        let (chunk, repeats) = (Vec::with_capacity(CHUNK * 2), Repeats::default());
        Writer { renderer, out, chunk, lines: 0, repeats, start: Instant::now(), lost: 0 }
    }

    /// Writes events from the queue until the process ends.
    pub(super) fn run(mut self, queue: &LogQueue) {
        let mut events = EventBuffer::new(LOG_QUEUE_MAX);
        loop {
            let taken = queue.take(&mut events, self.repeats.wait());
            self.lost += taken.dropped;
            queue.count_dropped(self.write(&events, taken.ending));
            events.clear();
            std::thread::sleep(PAUSE);
        }
    }

    /// Writes events and the repetitions that are due. Returns the number of events that could not be written.
    fn write(&mut self, events: &EventBuffer, ending: bool) -> u64 {
        let (now, mut failed) = (self.start.elapsed(), 0);
        for event in events.events().filter(super::levels::admits) {
            if self.repeats.admit(&event, now) {
                failed += self.add(&event, 0);
            }
        }
        for (kept, count) in self.repeats.due(now, ending) {
            failed += self.add(&kept.event(), count);
        }
        failed += self.flush();
        self.lost += failed;
        if self.lost > 0 && failed == 0 {
            self.report_lost();
        }
        failed
    }

    fn add(&mut self, event: &Event<'_>, repeated: u64) -> u64 {
        let start = self.chunk.len();
        let masked = has_url(event.message).then(|| masked_urls(&String::from_utf8_lossy(event.message)));
        let event = match &masked {
            Some(message) => &Event { message: message.as_bytes(), ..*event },
            None => event,
        };
        self.renderer.line(&mut self.chunk, event, repeated);
        super::tail::add(event, &self.chunk[start..]);
        self.lines += 1;
        if self.chunk.len() >= CHUNK { self.flush() } else { 0 }
    }

    /// Writes how many lines were lost, after writing works again.
    fn report_lost(&mut self) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = format!("{} log lines were dropped: the reader of the log was too slow", self.lost);
        self.add(
            &Event { time, level: Level::Warning, source: Source::Server, message: text.as_bytes(), fields: &[] },
            0,
        );
        if self.flush() == 0 {
            self.lost = 0;
        }
    }

    /// Writes the chunk. Returns the number of lines that may be lost.
    fn flush(&mut self) -> u64 {
        let written = write_all(&mut self.out, &self.chunk);
        let lines = core::mem::take(&mut self.lines);
        self.chunk.clear();
        if written.is_ok() { 0 } else { lines }
    }
}

/// Returns true if a message contains a URL, which may have a secret in it.
fn has_url(message: &[u8]) -> bool {
    message.windows(SCHEME_END.len()).any(|window| window == SCHEME_END)
}

/// Writes all bytes. Waits and retries if standard output is a non-blocking descriptor that is full.
fn write_all(out: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match out.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Format;

    /// Test output that fails, would block once, or takes a few bytes at a time.
    #[derive(Default)]
    struct Out {
        text: Vec<u8>,
        broken: bool,
        blocks: bool,
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.broken {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if core::mem::take(&mut self.blocks) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let taken = bytes.len().min(7);
            self.text.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn events(texts: &[&str]) -> EventBuffer {
        let mut events = EventBuffer::new(4096);
        for text in texts {
            events.push(Duration::ZERO, Level::Error, Source::Server, |out| out.extend_from_slice(text.as_bytes()));
        }
        events
    }

    fn writer(out: Out) -> Writer<Out> {
        Writer::new(Renderer { format: Format::Text, timestamps: false }, out)
    }

    fn text(writer: &Writer<Out>) -> String {
        String::from_utf8_lossy(&writer.out.text).into_owned()
    }

    #[test]
    fn reports_lost_lines_when_writing_works_again() {
        let mut writer = writer(Out { broken: true, ..Out::default() });
        assert_eq!(writer.write(&events(&["one", "two"]), false), 2);
        writer.lost += 5;
        assert_eq!(writer.write(&events(&["three"]), false), 1);
        writer.out.broken = false;
        assert_eq!(writer.write(&events(&["four"]), false), 0);
        let lost = "[WARNING] 8 log lines were dropped: the reader of the log was too slow";
        assert_eq!(text(&writer), format!("[ERROR] four\n{lost}\n"));
        assert_eq!(writer.write(&events(&["five"]), false), 0);
        assert!(text(&writer).ends_with(&format!("{lost}\n[ERROR] five\n")));
    }

    #[test]
    fn secrets_in_urls_are_not_written() {
        let mut writer = writer(Out::default());
        let texts = ["http://user:S@h/api?apikey=S: connection refused", "listening on dns://:53", "a\u{fc} 1"];
        assert_eq!(writer.write(&events(&texts), false), 0);
        let expected = "[ERROR] http://[removed]@h/api?[removed]: connection refused\n[ERROR] listening on dns://:53\n[ERROR] a\u{fc} 1\n";
        assert_eq!(text(&writer), expected);
    }

    #[test]
    fn waits_for_a_full_non_blocking_descriptor() {
        let mut writer = writer(Out { blocks: true, ..Out::default() });
        assert_eq!(writer.write(&events(&["a longer text", "a longer text", "b"]), true), 0);
        let repeated = "[ERROR] a longer text (repeated 1 times in the last second)";
        assert_eq!(text(&writer), format!("[ERROR] a longer text\n[ERROR] b\n{repeated}\n"));
    }
}
