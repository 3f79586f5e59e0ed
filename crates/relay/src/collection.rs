//! Objects of one kind: what the API server's lists and watches said, the history of changes, and the bytes that
//! several subscribers share.

use core::time::Duration;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use host::Instant;
use host::invariant::{Expected as _, broken, holds};

use crate::earlier::{Earlier, Wanted};
use crate::encode::{EventType, Form, list, put_bookmark};
use crate::gzip;
use crate::history::{Change, Frame, History, Variant};
use crate::initial::{Events, Initial, SharedEvents};
use crate::object::{Key, ObjectError, Stored, by_key};
use crate::table::Kind;

/// Minimum time between two ticks without subscribers.
pub const GATHER: Duration = Duration::from_millis(20);
/// Additional time for each subscriber of the kind, to which a tick is a write of about this duration: the writes of a
/// tick must not last until the next one.
pub const GATHER_PER_SUBSCRIBER: Duration = Duration::from_micros(30);
/// Minimum time between two ticks under load or with many subscribers.
pub const GATHER_MAX: Duration = Duration::from_millis(50);
/// Number of changes in a tick from which the kind counts as under load.
const LOAD: usize = 20;
/// Time between two bookmarks.
pub const BOOKMARK_INTERVAL: Duration = Duration::from_secs(1);
/// Age of the last proof up to which the state counts as the API server's latest.
pub const FRESH: Duration = Duration::from_secs(10);
/// Time for which clients share an encoded list, if they accept one that is not the latest.
pub const LIST_SHARED: Duration = Duration::from_secs(1);
/// Time after which an encoded list is forgotten.
const LIST_KEPT: Duration = Duration::from_secs(10);
/// Maximum number of encoded lists of a kind.
pub const LISTS_KEPT_MAX: usize = 4;
/// Maximum number of encoded bookmarks of a kind: four forms, each with and without gzip.
const BOOKMARKS_MAX: usize = 8;

/// Encoded list, or the initial events of a watch.
struct EncodedList {
    variant: Variant,
    purpose: ListPurpose,
    version: u64,
    made: Instant,
    content: ListContent,
}

/// Response that a list is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListPurpose {
    List,
    /// Initial events, with the bookmark at their end or without.
    Events {
        marks_end: bool,
    },
}

#[derive(Clone)]
enum ListContent {
    Body(Bytes),
    Events(SharedEvents),
}

/// News for the subscribers of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Changes, which subscribers want at once.
    Changes,
    /// A bookmark, or the end of a watch whose history is forgotten: both may take some of a second.
    Bookmark,
}

/// All objects of a kind.
pub(crate) struct Collection {
    pub(crate) kind: Kind,
    objects: BTreeMap<Key, Arc<Stored>>,
    /// List that is being received.
    listing: Option<BTreeMap<Key, Arc<Stored>>>,
    /// Version up to which everything is known.
    pub(crate) version: u64,
    pub(crate) is_listed: bool,
    pub(crate) history: History,
    /// Changes that no tick contains yet.
    pending: Vec<Change>,
    /// Version before them, and the time of the first one.
    pending_from: u64,
    pending_since: Instant,
    last_tick: Option<(Instant, usize)>,
    /// Number of subscribers.
    pub(crate) subscribers: usize,
    /// Number that increases when history and versions lose their meaning.
    pub(crate) epoch: u64,
    /// Request for changes before the first list.
    pub(crate) wanted: Wanted,
    /// True if subscribers no longer wait for them, and do not know it yet.
    has_stopped_waiting: bool,
    /// Time of the last proof that the state is the API server's latest.
    proved: Option<Instant>,
    /// Number of bookmarks so far.
    pub(crate) pulse: u64,
    next_pulse: Instant,
    bookmark: Vec<(Form, bool, u64, Frame)>,
    lists: Vec<EncodedList>,
}

impl Collection {
    pub(crate) fn new(kind: Kind) -> Collection {
        Collection {
            kind,
            objects: BTreeMap::new(),
            listing: None,
            version: 0,
            is_listed: false,
            history: History::default(),
            pending: Vec::new(),
            pending_from: 0,
            pending_since: Instant::START,
            last_tick: None,
            subscribers: 0,
            epoch: 0,
            wanted: Wanted::default(),
            has_stopped_waiting: false,
            proved: None,
            pulse: 0,
            next_pulse: Instant::START,
            bookmark: Vec::new(),
            lists: Vec::new(),
        }
    }

    pub(crate) fn begin_list(&mut self) {
        self.listing = Some(BTreeMap::new());
    }

    pub(crate) fn add_to_list(&mut self, bytes: &[u8]) -> Result<(), ObjectError> {
        let object = Stored::new(self.kind, bytes)?;
        let known = self.objects.get(&object.key).filter(|known| known.full == object.full);
        let object = known.map_or_else(|| Arc::new(object), Arc::clone);
        if let Some(listing) = self.listing.as_mut().expected("a list that has begun") {
            listing.insert(object.key.clone(), object);
        }
        Ok(())
    }

    /// Completes the list. What the subscribers do not know becomes one tick.
    pub(crate) fn end_list(&mut self, version: u64, now: Instant) {
        let Some(listing) = self.listing.take().expected("a list that ends") else { return };
        if !self.is_listed || version < self.version {
            return self.replace(listing, version, now);
        }
        self.cut(now);
        holds(self.pending.is_empty(), "what the watch has said is in the history before a list is compared");
        let from = self.version;
        let (changes, is_plausible) = self.difference(&listing, from);
        // The same version with other objects is another history, as after a restore.
        if !is_plausible || version == from && !changes.is_empty() {
            return self.replace(listing, version, now);
        }
        (self.objects, self.version) = (listing, version);
        self.proved = Some(now);
        // Without a difference, too: an object may have come and gone in between, and a subscriber that follows the API
        // server or another relay may have it.
        if version > from {
            self.history.push(from, version, true, changes, now);
        }
    }

    /// Returns the changes from the known objects to a list. Deletions come first and have the version before all
    /// changes, because theirs are not known: a subscriber that stops in the middle continues from a version whose
    /// deletions it has. An object that was deleted and created again is deleted, too: a subscriber that stops between
    /// the two and continues elsewhere would keep it, if it was deleted once more between two lists there.
    fn difference(&self, listing: &BTreeMap<Key, Arc<Stored>>, from: u64) -> (Vec<Change>, bool) {
        let is_gone =
            |(key, known): &(&Key, &Arc<Stored>)| !listing.get(*key).is_some_and(|object| object.is_same(known));
        let gone = self.objects.iter().filter(is_gone).map(|(_, known)| Change {
            what: EventType::Deleted,
            version: from,
            object: Arc::new(known.with_version(from)),
            previous: Some(Arc::clone(known)),
        });
        let mut changes: Vec<Change> = gone.collect();
        let deleted = changes.len();
        for (key, object) in listing {
            let previous = self.objects.get(key).filter(|previous| object.is_same(previous));
            if previous.is_some_and(|previous| Arc::ptr_eq(previous, object)) {
                continue;
            }
            let what = if previous.is_some() { EventType::Modified } else { EventType::Added };
            let (object, previous) = (Arc::clone(object), previous.map(Arc::clone));
            changes.push(Change { what, version: object.version, object, previous });
        }
        host::sorting::sort_by_key(&mut changes[deleted..], |change| change.version);
        let is_plausible = changes[deleted..].first().is_none_or(|change| change.version > from);
        (changes, is_plausible)
    }

    /// Replaces everything. A subscriber that knew something else must list again.
    fn replace(&mut self, objects: BTreeMap<Key, Arc<Stored>>, version: u64, now: Instant) {
        if self.is_listed {
            self.epoch += 1;
            self.stop_waiting();
        }
        self.wanted.begin(now);
        holds(self.listing.is_none(), "objects are replaced at the end of their list");
        (self.objects, self.version, self.is_listed) = (objects, version, true);
        self.proved = Some(now);
        self.forget_history();
    }

    /// Makes the versions and the history so far meaningless. With `needs_list`, the objects too.
    pub(crate) fn begin_epoch(&mut self, needs_list: bool) {
        self.epoch += 1;
        self.stop_waiting();
        if needs_list {
            (self.is_listed, self.version) = (false, 0);
            self.objects.clear();
            self.proved = None;
        }
        self.forget_history();
    }

    fn forget_history(&mut self) {
        self.pending.clear();
        self.lists.clear();
        self.history.restart(self.version);
        holds(self.history.bytes() == 0 && self.is_settled(), "a new epoch has no history");
    }

    /// Returns a request for the changes before the first list, if subscribers wait for them.
    pub(crate) fn begin_earlier(&mut self, now: Instant) -> Option<Earlier> {
        let start = self.history.start();
        let from = if self.is_listed { self.wanted.take(start, now) } else { None }?;
        Some(Earlier::new(self.kind, from, start))
    }

    /// Puts earlier changes before the history, and lets the subscribers that wait continue. If the changes are not all
    /// there, another request may follow.
    pub(crate) fn end_earlier(&mut self, earlier: Earlier, now: Instant) {
        let is_next = self.wanted.is_open() && self.history.start() == earlier.to;
        if is_next && !earlier.is_complete() && self.wanted.try_again() {
            return;
        }
        if is_next && earlier.is_complete() {
            self.history.extend_back(earlier.from, earlier.changes, now);
        }
        self.stop_waiting();
    }

    /// Lets the subscribers that wait for earlier changes continue, with them or without.
    fn stop_waiting(&mut self) {
        self.has_stopped_waiting |= self.wanted.close();
    }

    /// Applies an event of the watch. Events up to the known version are ignored.
    pub(crate) fn apply(&mut self, what: EventType, bytes: &[u8], now: Instant) -> Result<(), ObjectError> {
        let object = Arc::new(Stored::new(self.kind, bytes)?);
        self.proved = Some(now);
        if object.version <= self.version {
            return Ok(());
        }
        let (before, version) = (self.version, object.version);
        self.version = version;
        let (what, previous) = match what {
            EventType::Deleted => match self.objects.remove(&object.key) {
                None => return Ok(()),
                previous => (EventType::Deleted, previous),
            },
            EventType::Added | EventType::Modified => {
                let previous = self.objects.insert(object.key.clone(), Arc::clone(&object));
                (if previous.is_some() { EventType::Modified } else { EventType::Added }, previous)
            }
        };
        if self.pending.is_empty() {
            (self.pending_from, self.pending_since) = (before, now);
        }
        holds(self.pending.last().is_none_or(|last| last.version < version), "versions of changes increase");
        self.pending.push(Change { what, version, object, previous });
        holds(self.pending_from < version, "the pending changes begin after a known version");
        holds(self.version == version, "a collection is as new as its last change");
        Ok(())
    }

    /// Records that there is nothing more up to a version.
    pub(crate) fn note_bookmark(&mut self, version: u64, now: Instant) {
        self.version = self.version.max(version);
        self.proved = Some(now);
    }

    pub(crate) fn prove(&mut self, at: Instant) {
        self.proved = self.proved.max(Some(at));
    }

    /// Returns the time since the last proof, or `None` without one.
    pub(crate) fn age(&self, now: Instant) -> Option<Duration> {
        self.proved.map(|proved| now.since(proved))
    }

    pub(crate) fn is_fresh(&self, now: Instant) -> bool {
        self.age(now).is_some_and(|age| age <= FRESH)
    }

    /// Returns the number of objects.
    pub(crate) fn count(&self) -> usize {
        self.objects.len()
    }

    /// Returns the time of the next tick: at once when idle.
    fn tick_due(&self) -> Option<Instant> {
        if self.pending.is_empty() {
            return None;
        }
        let earliest = self.last_tick.map_or(self.pending_since, |(at, changes)| at + self.gather(changes));
        Some(self.pending_since.max(earliest))
    }

    /// Returns the minimum time after a tick with this number of changes.
    fn gather(&self, changes: usize) -> Duration {
        if changes >= LOAD {
            return GATHER_MAX;
        }
        let subscribers = u32::try_from(self.subscribers).unwrap_or(u32::MAX);
        GATHER.saturating_add(GATHER_PER_SUBSCRIBER.saturating_mul(subscribers)).min(GATHER_MAX)
    }

    /// Returns when [`Collection::advance`] has something to do.
    pub(crate) fn due(&self) -> Instant {
        if self.has_stopped_waiting {
            return Instant::START;
        }
        self.tick_due().map_or(self.next_pulse, |due| due.min(self.next_pulse))
    }

    /// Does what is due. Returns what subscribers have to read.
    pub(crate) fn advance(&mut self, now: Instant) -> Option<News> {
        let mut news = None;
        if self.next_pulse <= now {
            self.next_pulse = now + BOOKMARK_INTERVAL;
            holds(now < self.next_pulse, "a pulse is followed by a pause");
            if self.is_listed && self.is_fresh(now) {
                self.pulse += 1;
                news = Some(News::Bookmark);
            }
            if self.history.expire(now) {
                news = Some(News::Bookmark);
            }
            self.lists.retain(|list| now.since(list.made) <= LIST_KEPT);
            if self.wanted.is_overdue(now) {
                self.stop_waiting();
            }
        }
        if core::mem::take(&mut self.has_stopped_waiting) {
            news = Some(News::Changes);
        }
        if self.tick_due().is_some_and(|due| due <= now) {
            self.cut(now);
            news = Some(News::Changes);
        }
        news
    }

    /// Makes a tick of the pending changes.
    pub(crate) fn cut(&mut self, now: Instant) {
        if self.pending.is_empty() {
            return;
        }
        let changes = core::mem::take(&mut self.pending);
        holds(changes.is_sorted_by_key(|change| change.version), "the changes of a tick are in order");
        holds(self.last_tick.is_none_or(|(last, _)| last <= now), "time does not go backwards");
        self.last_tick = Some((now, changes.len()));
        let to = changes.last().map_or(self.version, |change| change.version);
        self.history.push(self.pending_from, to, false, changes, now);
    }

    /// Returns true if every change is in a tick, so that a bookmark may follow the last one.
    pub(crate) fn is_settled(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns a bookmark for the known version.
    pub(crate) fn bookmark(&mut self, form: Form, gzip: bool) -> Frame {
        let version = self.version;
        self.bookmark.retain(|(.., of, _)| *of == version);
        let known = self.bookmark.iter().find(|(of, compressed, ..)| *of == form && *compressed == gzip);
        if let Some((.., frame)) = known {
            return frame.clone();
        }
        let mut out = Vec::new();
        put_bookmark(&mut out, self.kind, form, version, false);
        let frame = Frame::new(out, gzip);
        self.bookmark.push((form, gzip, version, frame.clone()));
        holds(self.bookmark.len() <= BOOKMARKS_MAX, "each form of a bookmark is encoded once");
        frame
    }

    /// Returns the body of a list. With `accepts_older`, it may be a second old.
    pub(crate) fn list(&mut self, variant: &Variant, accepts_older: Option<u64>, now: Instant) -> Bytes {
        let (_, content) = self.encoded(variant, ListPurpose::List, accepts_older, now);
        let body = if let ListContent::Body(body) = content { Some(body) } else { None };
        body.expected("the body of a list").unwrap_or_default()
    }

    /// Returns the initial events of a watch, and their version. They may be a second old, but not older than
    /// `version_min`.
    pub(crate) fn initial(&mut self, variant: &Variant, marks_end: bool, min: u64, now: Instant) -> (u64, Initial) {
        let (version, content) = self.encoded(variant, ListPurpose::Events { marks_end }, Some(min), now);
        let events = match content {
            ListContent::Events(events) => events,
            ListContent::Body(_) => {
                broken("the initial events of a watch are events");
                SharedEvents::default()
            }
        };
        (version, Initial::new(events))
    }

    fn encoded(
        &mut self,
        variant: &Variant,
        purpose: ListPurpose,
        accepts_older: Option<u64>,
        now: Instant,
    ) -> (u64, ListContent) {
        let is_good = |list: &&EncodedList| {
            let is_recent = accepts_older.is_some_and(|min| list.version >= min && now.since(list.made) <= LIST_SHARED);
            // A watch continues from the version of its initial events.
            let continues = purpose == ListPurpose::List || self.history.find(list.version, &variant.filter).is_some();
            let is_same = list.purpose == purpose && list.variant == *variant;
            is_same && continues && (is_recent || list.version == self.version)
        };
        if let Some(list) = self.lists.iter().find(is_good) {
            holds(list.version <= self.version, "a list that was encoded is not newer than its collection");
            return (list.version, list.content.clone());
        }
        let content = self.encode(variant, purpose);
        let version = self.version;
        if variant.filter.is_of_one() {
            return (version, content);
        }
        self.lists.retain(|list| list.purpose != purpose || list.variant != *variant);
        if self.lists.len() >= LISTS_KEPT_MAX {
            self.lists.remove(0);
        }
        let list = EncodedList { variant: variant.clone(), purpose, version, made: now, content: content.clone() };
        self.lists.push(list);
        holds(self.lists.len() <= LISTS_KEPT_MAX, "the number of encoded lists is bounded");
        (version, content)
    }

    fn encode(&self, variant: &Variant, purpose: ListPurpose) -> ListContent {
        let selected = self.objects.values().filter(|object| variant.filter.selects(object));
        match purpose {
            ListPurpose::List => {
                let body = list(self.kind, variant.form, self.version, selected.map(|object| &**object));
                ListContent::Body(if variant.gzip { gzip::member(&body) } else { body.into() })
            }
            ListPurpose::Events { marks_end } => {
                let objects: Vec<Arc<Stored>> = selected.cloned().collect();
                holds(
                    objects.is_sorted_by(|left, right| by_key(left, right).is_lt()),
                    "objects are in the order of keys",
                );
                let end = marks_end.then_some(self.version);
                ListContent::Events(Events::new(self.kind, variant, objects, end))
            }
        }
    }

    /// Returns an object.
    pub(crate) fn get(&self, namespace: &str, name: &str) -> Option<&Stored> {
        self.objects.get(&(namespace.into(), name.into())).map(|object| &**object)
    }
}
