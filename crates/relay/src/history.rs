//! History of one kind: ticks with the changes of a few milliseconds each, and what is encoded of them for all
//! subscribers.

use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use host::Instant;
use host::invariant::holds;

use crate::encode::{EventType, Form, put_event};
use crate::gzip::{Effort, Segment};
use crate::object::Stored;
use crate::selector::Filter;
use crate::table::Kind;

/// Maximum size of the objects in a history, in bytes. At 500 changes per second of slices with 2.7 KB, this is half a
/// minute; a subscriber that is away for longer lists again.
pub const HISTORY_BYTES_MAX: usize = 64 << 20;
/// Maximum age of a change in a history. API servers keep five minutes.
pub const HISTORY_AGE_MAX: Duration = Duration::from_secs(600);
/// Maximum number of forms and selections whose encoded bytes a tick keeps.
const FRAMES_MAX: usize = 16;
/// Number of the first tick of all, which leaves room for earlier ones.
const FIRST_TICK: u64 = 1 << 32;
/// Number of changes in a tick of earlier changes. A subscriber needs the second part of one tick for itself alone,
/// which is encoded again.
const EARLIER_TICK: usize = 50;

/// Change of an object.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) what: EventType,
    pub(crate) version: u64,
    pub(crate) object: Arc<Stored>,
    /// Object before the change.
    pub(crate) previous: Option<Arc<Stored>>,
}

impl Change {
    pub(crate) fn size(&self) -> usize {
        self.object.size() + self.previous.as_ref().map_or(0, |previous| previous.size())
    }

    /// Returns what a selection sees of the change.
    fn seen_by(&self, filter: &Filter) -> Option<(EventType, Arc<Stored>)> {
        if filter.is_everything() {
            return Some((self.what, Arc::clone(&self.object)));
        }
        let was = self.previous.as_ref().is_some_and(|previous| filter.selects(previous));
        let is = self.what != EventType::Deleted && filter.selects(&self.object);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some((EventType::Added, Arc::clone(&self.object))),
            (true, true) => Some((EventType::Modified, Arc::clone(&self.object))),
            // The object as it was when it was selected, as the API server sends it.
            (true, false) if self.what == EventType::Deleted => Some((EventType::Deleted, Arc::clone(&self.object))),
            (true, false) => {
                let previous = self.previous.as_ref()?;
                Some((EventType::Deleted, Arc::new(previous.with_version(self.version))))
            }
        }
    }
}

/// Encoded bytes, plain or as a segment of gzip.
#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Plain(Bytes),
    Compressed(Segment),
}

impl Frame {
    pub(crate) fn new(data: Vec<u8>, gzip: bool) -> Frame {
        if gzip { Frame::Compressed(Segment::new(&data, Effort::of(data.len()))) } else { Frame::Plain(data.into()) }
    }

    /// Encodes a part of a list.
    pub(crate) fn of_list(data: &[u8], gzip: bool) -> Frame {
        if gzip {
            Frame::Compressed(Segment::new(data, Effort::Less))
        } else {
            Frame::Plain(Bytes::copy_from_slice(data))
        }
    }
}

/// Form, compression and selection of encoded events. Subscribers with equal variants share the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variant {
    pub(crate) form: Form,
    pub(crate) gzip: bool,
    pub(crate) filter: Arc<Filter>,
}

/// Changes that subscribers get together.
pub(crate) struct Tick {
    /// Version before the changes, and after them.
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// True if the changes are the difference of two lists: their order and versions are not those of the history, so
    /// that a subscriber gets all of them or none.
    pub(crate) is_whole: bool,
    pub(crate) at: Instant,
    changes: Vec<Change>,
    frames: Vec<(Variant, Option<Frame>)>,
}

impl Tick {
    /// Returns the bytes for subscribers that have everything up to `after`, or `None` if there are none.
    pub(crate) fn frame(&mut self, kind: Kind, variant: &Variant, after: u64) -> Option<Frame> {
        if after > self.from {
            return self.encode(kind, variant, after);
        }
        if let Some((_, frame)) = self.frames.iter().find(|(known, _)| known == variant) {
            return frame.clone();
        }
        let frame = self.encode(kind, variant, 0);
        if self.frames.len() < FRAMES_MAX {
            self.frames.push((variant.clone(), frame.clone()));
        }
        holds(self.frames.len() <= FRAMES_MAX, "the encoded forms of a tick are bounded");
        frame
    }

    fn encode(&self, kind: Kind, variant: &Variant, after: u64) -> Option<Frame> {
        let mut out = Vec::new();
        for change in self.changes.iter().filter(|change| change.version > after) {
            if let Some((what, object)) = change.seen_by(&variant.filter) {
                put_event(&mut out, kind, variant.form, what, &object);
            }
        }
        (!out.is_empty()).then(|| Frame::new(out, variant.gzip))
    }

    fn size(&self) -> usize {
        self.changes.iter().map(Change::size).sum()
    }
}

/// Ticks, the oldest first.
pub(crate) struct History {
    ticks: VecDeque<Tick>,
    /// Number of the first tick.
    first: u64,
    /// Version from which a subscriber can continue.
    start: u64,
    /// Version from which changes have the object before them, which selections need.
    selectable: u64,
    bytes: usize,
}

impl Default for History {
    fn default() -> History {
        History { ticks: VecDeque::new(), first: FIRST_TICK, start: 0, selectable: 0, bytes: 0 }
    }
}

impl History {
    /// Forgets everything. A subscriber can continue from `start`.
    pub(crate) fn restart(&mut self, start: u64) {
        self.first = self.end();
        self.ticks.clear();
        (self.start, self.selectable, self.bytes) = (start, start, 0);
    }

    /// Puts changes before all others, so that a subscriber can continue from the version `from`. Returns false if
    /// there are too many.
    pub(crate) fn extend_back(&mut self, from: u64, mut changes: Vec<Change>, at: Instant) -> bool {
        let bytes: usize = changes.iter().map(Change::size).sum();
        if self.bytes + bytes > HISTORY_BYTES_MAX {
            return false;
        }
        holds(changes.is_sorted_by(|left, right| left.version < right.version), "earlier changes are in order");
        holds(changes.first().is_none_or(|change| change.version > from), "earlier changes begin after their version");
        holds(changes.last().is_none_or(|change| change.version <= self.start), "earlier changes come before others");
        while !changes.is_empty() {
            let changes = changes.split_off((changes.len() - 1) / EARLIER_TICK * EARLIER_TICK);
            let (before, to) = (changes[0].version - 1, changes[changes.len() - 1].version);
            self.ticks.push_front(Tick { from: before, to, is_whole: false, at, changes, frames: Vec::new() });
            self.first -= 1;
        }
        (self.start, self.bytes) = (from, self.bytes + bytes);
        true
    }

    /// Returns the number of the next tick.
    pub(crate) fn end(&self) -> u64 {
        self.first + self.ticks.len() as u64
    }

    /// Returns the version from which a subscriber can continue.
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// Returns the size of the objects in bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn push(&mut self, from: u64, to: u64, is_whole: bool, changes: Vec<Change>, at: Instant) {
        holds(from <= to && (is_whole || !changes.is_empty()), "a tick leads from one version to a later one");
        holds(self.ticks.back().is_none_or(|last| last.to <= from), "a tick begins where the last one ended, or later");
        holds(self.start <= from, "a subscriber can continue before each tick");
        holds(is_whole || from < to, "changes of a watch lead to a later version");
        let tick = Tick { from, to, is_whole, at, changes, frames: Vec::new() };
        self.bytes += tick.size();
        self.ticks.push_back(tick);
        self.expire(at);
    }

    /// Forgets what exceeds the bounds. Returns true if something was forgotten.
    pub(crate) fn expire(&mut self, now: Instant) -> bool {
        let before = self.first;
        while let Some(tick) = self.ticks.front() {
            if self.bytes <= HISTORY_BYTES_MAX && now.since(tick.at) <= HISTORY_AGE_MAX {
                break;
            }
            holds(self.start <= tick.to, "the start of a history does not go back");
            holds(tick.size() <= self.bytes, "the bytes of a tick in the history were counted");
            (self.start, self.bytes) = (tick.to, self.bytes - tick.size());
            self.ticks.pop_front();
            self.first += 1;
        }
        holds(self.bytes == 0 || !self.ticks.is_empty(), "only ticks take room");
        holds(self.bytes <= HISTORY_BYTES_MAX, "the size of a history is bounded");
        self.first > before
    }

    /// Returns the number of the first tick with something after a version, or `None` if the history does not reach
    /// back so far for this selection.
    pub(crate) fn find(&self, version: u64, filter: &Filter) -> Option<u64> {
        if version < self.start || version < self.selectable && !filter.is_everything() {
            return None;
        }
        let at = self.ticks.partition_point(|tick| tick.to <= version);
        let is_within_a_whole = self.ticks.get(at).is_some_and(|tick| tick.is_whole && version > tick.from);
        (!is_within_a_whole).then(|| self.first + at as u64)
    }

    /// Returns a tick by its number, or `None` if it has been forgotten or does not exist yet.
    pub(crate) fn tick(&mut self, number: u64) -> Option<&mut Tick> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.ticks.get_mut(at)
    }

    /// Returns the time of a tick.
    pub(crate) fn time_of(&self, number: u64) -> Option<Instant> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.ticks.get(at).map(|tick| tick.at)
    }

    /// Returns true if this tick has been forgotten.
    pub(crate) const fn has_forgotten(&self, number: u64) -> bool {
        number < self.first
    }
}
