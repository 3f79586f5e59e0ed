//! Position of one subscriber. There is no queue: a subscriber reads the shared history at its own pace.

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use host::Instant;
use host::invariant::holds;

use crate::collection::Collection;
use crate::gzip::{HEADER, Trailer};
use crate::history::{Frame, Variant};
use crate::initial::Initial;
use crate::status::Refusal;
use crate::table::Kind;

/// Time by which a subscriber may be behind while most others are not.
pub const BEHIND_MAX: Duration = Duration::from_secs(5);
/// Time for a subscriber to read the initial events.
pub const INITIAL_MAX: Duration = Duration::from_secs(60);

/// Next step of sending a body to a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Bytes of the body.
    Data(Bytes),
    /// Nothing until the kind has news, or the watch ends.
    Wait,
    /// The end of the body.
    End,
}

/// Position of a subscriber in the history of a kind.
pub struct Cursor {
    pub(crate) kind: Kind,
    pub(crate) variant: Variant,
    pub(crate) epoch: u64,
    /// Number of the next tick.
    pub(crate) tick: u64,
    /// Version up to which the subscriber has everything.
    pub(crate) after: u64,
    pub(crate) pulse: u64,
    pub(crate) bookmarks: bool,
    pub(crate) joined: Instant,
    pub(crate) ends: Instant,
    pub(crate) initial: Option<Initial>,
    pub(crate) has_initial: bool,
    /// True while the changes after the version may still be found before the history.
    waits: bool,
    pub(crate) refusal: Option<Refusal>,
    state: State,
    trailer: Trailer,
    /// Bytes that are due: a frame, and what gzip needs around it.
    out: VecDeque<Bytes>,
    /// Time at which the body was complete.
    ended: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Open,
    /// The last frame has been made.
    Ending,
    /// The body is complete.
    Ended,
}

/// Position in the history at which a watch begins, with its first frame.
pub(crate) struct Start {
    pub(crate) tick: u64,
    pub(crate) after: u64,
    pub(crate) initial: Option<Initial>,
    pub(crate) waits: bool,
    pub(crate) refusal: Option<Refusal>,
}

impl Cursor {
    pub(crate) fn new(
        of: &Collection,
        variant: Variant,
        start: Start,
        bookmarks: bool,
        now: Instant,
        duration: Duration,
    ) -> Cursor {
        Cursor {
            kind: of.kind,
            variant,
            epoch: of.epoch,
            tick: start.tick,
            after: start.after,
            pulse: of.pulse,
            bookmarks,
            joined: now,
            ends: now + duration,
            has_initial: start.initial.is_none(),
            initial: start.initial,
            waits: start.waits,
            refusal: start.refusal,
            state: State::New,
            trailer: Trailer::default(),
            out: VecDeque::new(),
            ended: now,
        }
    }

    /// Returns the kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the time at which the watch ends.
    #[must_use]
    pub const fn ends(&self) -> Instant {
        self.ends
    }

    /// Returns the version up to which the subscriber has been given everything.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.after
    }

    /// Returns true if the subscriber has begun to read what follows the initial events.
    #[must_use]
    pub const fn has_initial(&self) -> bool {
        self.has_initial
    }

    /// Returns the next bytes.
    pub(crate) fn next(&mut self, of: &mut Collection, is_closing: bool, now: Instant) -> Next {
        if self.out.is_empty() && self.state != State::Ended {
            self.fill(of, is_closing, now);
        }
        holds(self.out.len() <= 3, "a subscriber has no queue: a frame, and what gzip needs around it");
        match self.out.pop_front() {
            Some(bytes) => Next::Data(bytes),
            None if self.state == State::Ended => Next::End,
            None => Next::Wait,
        }
    }

    /// Puts what comes next into `out`: at most the header of gzip, a frame, and the end of gzip.
    fn fill(&mut self, of: &mut Collection, is_closing: bool, now: Instant) {
        holds(self.out.is_empty() && self.state != State::Ended, "a subscriber that has read everything gets more");
        if self.state == State::New {
            self.state = State::Open;
            // The client sees at once that the response has begun.
            self.out.extend(self.variant.gzip.then(|| Bytes::from_static(HEADER)));
        }
        if let Some(frame) = self.frame(of, is_closing, now) {
            let bytes = self.written(frame);
            self.out.push_back(bytes);
        }
        if self.state == State::Ending {
            (self.state, self.ended) = (State::Ended, now);
            holds(self.has_initial && self.initial.is_none(), "a response ends after its initial events");
            self.out.extend(self.variant.gzip.then(|| self.trailer.end()));
        }
    }

    fn written(&mut self, frame: Frame) -> Bytes {
        match frame {
            Frame::Plain(bytes) => bytes,
            Frame::Compressed(segment) => {
                self.trailer.add(&segment);
                segment.bytes
            }
        }
    }

    fn frame(&mut self, of: &mut Collection, is_closing: bool, now: Instant) -> Option<Frame> {
        if let Some(part) = self.initial.as_mut().and_then(Initial::next) {
            return Some(part);
        }
        self.initial = None;
        self.has_initial = true;
        holds(self.epoch <= of.epoch && self.pulse <= of.pulse, "a collection does not go back");
        if let Some(refusal) = self.refusal.take() {
            return Some(self.refuse(&refusal));
        }
        if self.epoch != of.epoch {
            return Some(self.refuse(&Refusal::NewEpoch));
        }
        if self.waits && of.wanted.is_open() {
            self.end_if_due(is_closing, now);
            return None;
        }
        if core::mem::take(&mut self.waits) && !self.find(of) {
            return Some(self.refuse(&Refusal::Expired(self.after, of.history.start())));
        }
        if let Some(frame) = self.changes(of) {
            return Some(frame);
        }
        let is_due = self.pulse < of.pulse || is_closing;
        if self.bookmarks && is_due && of.is_settled() && self.state != State::Ending && self.after <= of.version {
            holds(self.tick == of.history.end(), "a bookmark follows all changes");
            self.pulse = of.pulse;
            self.after = of.version;
            if is_closing {
                self.state = State::Ending;
            }
            return Some(of.bookmark(self.variant.form, self.variant.gzip));
        }
        self.end_if_due(is_closing, now);
        None
    }

    /// Begins the end of the response if its time is over or the relay is closing.
    fn end_if_due(&mut self, is_closing: bool, now: Instant) {
        if is_closing || now >= self.ends {
            self.state = State::Ending;
        }
    }

    /// Goes to the version of the subscriber in a history that reaches further back than before. Returns false if it
    /// does not reach that far.
    fn find(&mut self, of: &Collection) -> bool {
        let found = of.history.find(self.after, &self.variant.filter);
        self.tick = found.unwrap_or(self.tick);
        found.is_some()
    }

    /// Returns the next changes that the subscriber selects.
    fn changes(&mut self, of: &mut Collection) -> Option<Frame> {
        let kind = of.kind;
        holds(self.tick <= of.history.end(), "a subscriber is in the history or at its end");
        while self.tick < of.history.end() {
            let start = of.history.start();
            let is_gone = of.history.has_forgotten(self.tick);
            let tick = of.history.tick(self.tick).filter(|_| !is_gone);
            let Some(tick) = tick.filter(|tick| !(tick.is_whole && self.after > tick.from)) else {
                return Some(self.refuse(&Refusal::Expired(self.after, start)));
            };
            let frame = tick.frame(kind, &self.variant, self.after);
            self.after = self.after.max(tick.to);
            self.tick += 1;
            if frame.is_some() {
                return frame;
            }
        }
        None
    }

    /// Returns the last event.
    fn refuse(&mut self, refusal: &Refusal) -> Frame {
        let mut out = Vec::new();
        refusal.event(self.variant.form.encoding(), &mut out);
        self.state = State::Ending;
        Frame::new(out, self.variant.gzip)
    }

    /// Returns true if the subscriber has not read for too long, although there was something to read.
    pub(crate) fn is_behind(&self, of: &Collection, now: Instant) -> bool {
        if self.state == State::Ended {
            return now.since(self.ended) > BEHIND_MAX;
        }
        // A subscriber that waits for earlier changes has nothing to read.
        if !self.has_initial || self.waits {
            return now.since(self.joined) > INITIAL_MAX;
        }
        of.history.time_of(self.tick).is_some_and(|at| now.since(at) > BEHIND_MAX)
            || of.history.has_forgotten(self.tick)
    }
}
