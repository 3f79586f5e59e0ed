//! Log queue: holds log events for the single thread that writes them.
//!
//! Threads that report an event copy it into the queue and continue. Only the writer touches a file descriptor, so a
//! log reader that stalls costs log lines but no answers. The queue has a size limit in bytes. Events that do not fit
//! are dropped and counted.

use std::fmt::Arguments;
use std::io::Write as _;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use engine::log::{EventBuffer, Level, Source};
use host::invariant::holds;
use metrics::{Kind, Metric, Registry};

/// Size limit of the queue in bytes: about eight thousand lines, or 40 ms at 200,000 logged queries per second. The
/// writer has a buffer of the same size. The system allocates the memory only when it is used.
pub const LOG_QUEUE_MAX: usize = 1 << 20;
/// Maximum size in bytes of an event reported outside a batch. A longer one is dropped.
const EVENT_MAX: usize = 64 << 10;

static DROPPED: Metric = Metric {
    name: "portolan_log_lines_dropped_total",
    help: "Log lines that were dropped because the reader of the log was too slow or gone.",
    kind: Kind::Counter,
    labels: &[],
};

/// Metrics of the log, for the documentation.
pub static LOG_METRICS: [&Metric; 1] = [&DROPPED];

/// Returns the queue of the process.
pub fn log_queue() -> &'static LogQueue {
    static QUEUE: LazyLock<LogQueue> = LazyLock::new(|| LogQueue::new(LOG_QUEUE_MAX));
    &QUEUE
}

/// Bounded queue of log events.
pub struct LogQueue {
    state: Mutex<State>,
    /// Wakes the writer.
    filled: Condvar,
    /// Wakes threads that wait for the writer.
    written: Condvar,
    /// Events dropped since the start.
    dropped: AtomicU64,
    /// Least severe level that [`LogQueue::report`] takes.
    level: AtomicU8,
}

struct State {
    waiting: EventBuffer,
    /// Events dropped since the last report to the writer.
    dropped: u64,
    /// True while the writer waits for `filled`.
    writer_waits: bool,
    /// True from the time the writer takes events until it asks for more.
    is_writing: bool,
    ending: bool,
}

/// State that the writer receives with the events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Events dropped since the writer last took some.
    pub dropped: u64,
    /// True if the process is about to end, so the writer must flush everything.
    pub ending: bool,
}

impl LogQueue {
    /// Creates a queue of at most this many bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> LogQueue {
        let waiting = EventBuffer::new(bytes_max);
        LogQueue {
            state: Mutex::new(State { waiting, dropped: 0, writer_waits: false, is_writing: false, ending: false }),
            filled: Condvar::new(),
            written: Condvar::new(),
            dropped: AtomicU64::new(0),
            level: AtomicU8::new(Level::Info as u8),
        }
    }

    /// Registers the metric of dropped lines.
    pub fn publish(&'static self, registry: &Registry) {
        #[allow(clippy::cast_precision_loss, reason = "Prometheus values are floats")]
        registry.gauge(&DROPPED, &[], || Some(self.dropped.load(Ordering::Relaxed) as f64));
    }

    /// Copies a batch of events into the queue, or drops and counts them if there is no room.
    pub fn push(&self, batch: &EventBuffer) {
        let mut state = self.lock();
        state.waiting.append(batch);
        let dropped = state.waiting.take_dropped();
        state.dropped += dropped;
        let wake = core::mem::take(&mut state.writer_waits);
        drop(state);
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
        if wake {
            self.filled.notify_one();
        }
    }

    /// Sets the least severe level of events that [`LogQueue::report`] takes.
    pub fn set_level(&self, level: Level) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    /// Returns true if [`LogQueue::report`] takes events of this level.
    pub fn takes(&self, level: Level) -> bool {
        level as u8 <= self.level.load(Ordering::Relaxed)
    }

    /// Reports one event, unless its level is less severe than the one that is set.
    pub fn report(&self, level: Level, source: Source<'_>, message: Arguments<'_>) {
        if !self.takes(level) {
            return;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let text = message.to_string();
        let mut event = EventBuffer::new((text.len() + 512).min(EVENT_MAX));
        event.push(time, level, source, |out| drop(out.write_all(text.as_bytes())));
        self.push(&event);
    }

    /// Counts events that the writer could not write.
    pub fn count_dropped(&self, events: u64) {
        self.dropped.fetch_add(events, Ordering::Relaxed);
    }

    /// Waits until there are events, at most `limit`, and swaps them with `events`, which must be empty.
    pub fn take(&self, events: &mut EventBuffer, limit: Option<Duration>) -> Taken {
        holds(events.is_empty(), "the writer has written the events that it took");
        let end = limit.map(|limit| Instant::now() + limit);
        let mut state = self.lock();
        state.is_writing = false;
        self.written.notify_all();
        while state.waiting.is_empty() && state.dropped == 0 && !state.ending {
            state.writer_waits = true;
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() => break,
                Some(left) => self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.filled.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        state.writer_waits = false;
        holds(!state.is_writing, "one thread writes the log");
        state.is_writing = true;
        core::mem::swap(&mut state.waiting, events);
        Taken { dropped: core::mem::take(&mut state.dropped), ending: core::mem::take(&mut state.ending) }
    }

    /// Waits until the writer has written everything, at most `limit`.
    pub fn flush(&self, limit: Duration) {
        let end = Instant::now() + limit;
        let mut state = self.lock();
        state.ending = true;
        self.filled.notify_one();
        while state.ending || state.is_writing || !state.waiting.is_empty() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.written.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Appending an event cannot panic half-way, so a poisoned queue is still consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(events: &EventBuffer) -> Vec<String> {
        events.events().map(|event| event.text().into_owned()).collect()
    }

    #[test]
    fn drops_events_beyond_the_limit_and_reports_the_number() {
        let queue = LogQueue::new(1000);
        for number in 0..100 {
            queue.report(Level::Info, Source::Server, format_args!("line {number}"));
        }
        let mut events = EventBuffer::new(1000);
        let taken = queue.take(&mut events, None);
        let kept = texts(&events).len() as u64;
        assert!(kept > 10, "{kept}");
        assert_eq!(taken, Taken { dropped: 100 - kept, ending: false });
        assert_eq!(queue.dropped.load(Ordering::Relaxed), 100 - kept);
        events.clear();
        queue.report(Level::Info, Source::Server, format_args!("again"));
        assert_eq!(queue.take(&mut events, None), Taken::default());
        assert_eq!(texts(&events), ["again"]);
    }

    #[test]
    fn flush_waits_for_the_writer_at_most_the_given_time() {
        let queue = LogQueue::new(1000);
        queue.report(Level::Info, Source::Server, format_args!("text"));
        queue.flush(Duration::from_millis(1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut events = EventBuffer::new(1000);
                assert!(queue.take(&mut events, None).ending);
                assert_eq!(texts(&events), ["text"]);
                events.clear();
                queue.take(&mut events, None);
            });
            queue.flush(Duration::from_secs(20));
            assert!(queue.lock().waiting.is_empty());
            queue.report(Level::Info, Source::Server, format_args!("ends the writer"));
        });
    }
}
