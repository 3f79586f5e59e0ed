//! Streams of lines to clients, each with a queue that is bounded in bytes.
//!
//! A client that reads too slowly finds its queue full. The lines that do not fit are left out and counted, and the
//! stream says so at that place.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use config::setup::Inspection;
use control::tail::{Ended, LeftOut, Line, SHOWN_PER_SECOND_MAX, Sampled};
use engine::tap::{Filter, Ring};
use hyper::body::{Body, Bytes, Frame};

use super::Closer;
use super::identity::Selection;
use super::sampling::distance;

/// Maximum size of the lines that wait for a client, in bytes: about a thousand lines.
const QUEUE_MAX: usize = 256 << 10;
/// Approximate size of a part of the response in bytes.
const FRAME: usize = 16 << 10;
/// Period in which the rate of a stream is measured.
const PERIOD: Duration = Duration::from_millis(500);

/// Lines that wait for a client.
#[derive(Clone)]
pub(crate) struct Queue(Rc<RefCell<Waiting>>);

#[derive(Default)]
struct Waiting {
    lines: VecDeque<String>,
    bytes: usize,
    /// Number of lines that did not fit since the last one that did.
    left_out: u64,
    is_ended: bool,
    reader: Option<Waker>,
}

impl Waiting {
    fn put(&mut self, line: &Line) {
        let mut text = serde_json::to_string(line).unwrap_or_default();
        text.push('\n');
        self.bytes += text.len();
        self.lines.push_back(text);
    }

    fn take(&mut self) -> Option<String> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }

    /// Puts the notice about missing lines at the end of the queue, if lines are missing.
    fn admit(&mut self) {
        let lines = std::mem::take(&mut self.left_out);
        if lines > 0 {
            self.put(&Line::LeftOut(LeftOut { lines }));
        }
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl Queue {
    pub(super) fn new() -> Queue {
        Queue(Rc::default())
    }

    /// Adds a line, or leaves it out.
    pub(super) fn push(&self, line: &Line) {
        let mut waiting = self.0.borrow_mut();
        if waiting.bytes >= QUEUE_MAX {
            waiting.left_out += 1;
            return;
        }
        waiting.admit();
        waiting.put(line);
        waiting.wake();
    }

    /// Counts lines that were left out before they came here.
    fn leave_out(&self, lines: u64) {
        let mut waiting = self.0.borrow_mut();
        waiting.left_out += lines;
        if lines > 0 {
            waiting.wake();
        }
    }

    /// Ends the stream after the lines that wait.
    pub(super) fn end(&self) {
        let mut waiting = self.0.borrow_mut();
        waiting.is_ended = true;
        waiting.wake();
    }
}

/// Body of a response: lines until the stream ends or the client leaves.
pub(crate) struct Lines {
    queue: Queue,
    _closer: Option<Closer>,
}

impl Lines {
    pub(super) fn new(queue: Queue, closer: Option<Closer>) -> Lines {
        Lines { queue, _closer: closer }
    }
}

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut waiting = self.queue.0.borrow_mut();
        let mut part = String::new();
        while part.len() < FRAME
            && let Some(line) = waiting.take()
        {
            part += &line;
        }
        if waiting.lines.is_empty() && waiting.left_out > 0 {
            waiting.admit();
            part += &waiting.take().unwrap_or_default();
        }
        if !part.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(Bytes::from(part)))));
        }
        if waiting.is_ended {
            return Poll::Ready(None);
        }
        waiting.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

/// Open stream.
pub(super) struct Tail {
    at: usize,
    queue: Queue,
    filter: Filter,
    pods: Option<Selection>,
    /// Numbers of selected and lost queries of all rings at the beginning of the period.
    selected: u64,
    lost: u64,
    since: Instant,
    every: u32,
    started: Instant,
    until: Instant,
    is_remote: bool,
}

impl Tail {
    pub(super) fn new(
        at: usize,
        queue: &Queue,
        filter: Filter,
        pods: Option<Selection>,
        rings: &[Arc<Ring>],
        until: Instant,
    ) -> Tail {
        let started = Instant::now();
        let (selected, lost) = totals(rings, at);
        Tail {
            at,
            queue: queue.clone(),
            filter,
            pods,
            selected,
            lost,
            since: started,
            every: 1,
            started,
            until,
            is_remote: false,
        }
    }

    /// Marks the stream as that of a client over TCP.
    pub(super) fn remote(self) -> Tail {
        Tail { is_remote: true, ..self }
    }

    /// Returns true for the stream of a client over TCP.
    pub(super) const fn is_remote(&self) -> bool {
        self.is_remote
    }

    /// Place of its filter.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    pub(super) fn push(&self, line: &Line) {
        self.queue.push(line);
    }

    /// Says that the client asked for a sample, if it did.
    pub(super) fn announce_sample(&self) {
        let one_of = u64::from(self.filter.every());
        if one_of > 1 {
            self.push(&Line::Sampled(Sampled { one_of, per_second: None }));
        }
    }

    /// Counts lines that the workers left out, shows a smaller sample if too many queries match, and ends the stream
    /// when its time is over.
    pub(super) fn adjust(&mut self, rings: &[Arc<Ring>], now: Instant) {
        let (selected, lost) = totals(rings, self.at);
        self.queue.leave_out(lost - self.lost);
        self.lost = lost;
        if now >= self.until {
            self.push(&Line::Ended(Ended { after_seconds: (now - self.started).as_secs() }));
            self.queue.end();
        }
        let elapsed = now - self.since;
        if elapsed < PERIOD {
            return;
        }
        let matched = selected - self.selected;
        (self.selected, self.since) = (selected, now);
        let wanted = u64::from(self.filter.every());
        let every = distance(matched / wanted, elapsed, u64::from(SHOWN_PER_SECOND_MAX));
        let every = if every > 1 { every * self.filter.every() } else { 1 };
        if every != self.every {
            self.every = every;
            rings.iter().for_each(|ring| ring.set_tail_every(self.at, every));
            let one_of = u64::from(every.max(self.filter.every()));
            #[allow(clippy::cast_precision_loss, reason = "three digits are shown")]
            let per_second = Some(matched as f64 / elapsed.as_secs_f64());
            self.push(&Line::Sampled(Sampled { one_of, per_second }));
        }
    }

    /// Returns the filter with the present addresses of the selected pods; `None` if it selects no pods.
    pub(super) fn refreshed(&self, inspection: &Inspection) -> Option<Filter> {
        let mut filter = self.filter.clone();
        filter.set_addresses(self.pods.as_ref()?.addresses(inspection).ok()?);
        Some(filter)
    }
}

/// Returns the numbers of queries that a filter selected, and of those that did not fit into a ring.
fn totals(rings: &[Arc<Ring>], at: usize) -> (u64, u64) {
    rings.iter().fold((0, 0), |(selected, lost), ring| (selected + ring.selected(at), lost + ring.tail_lost(at)))
}
