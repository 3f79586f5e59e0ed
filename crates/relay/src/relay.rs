//! The relay: all kinds, what the API server says about them, and the requests of subscribers.

use std::sync::Arc;

use bytes::Bytes;
use core::time::Duration;
use host::Instant;
use host::invariant::{Expected as _, holds};

use crate::collection::{Collection, News};
use crate::cursor::{Cursor, Next, Start};
use crate::earlier::Earlier;
use crate::encode::EventType;
use crate::history::Variant;
use crate::object::{ObjectError, Stored};
use crate::request::{Action, At, Request, Watch};
use crate::status::Refusal;
use crate::table::Kind;

/// Namespace whose UID tells clusters apart.
const CLUSTER_NAMESPACE: &str = "kube-system";

/// State of a relay.
pub struct Relay {
    collections: Vec<Collection>,
    /// UID of the namespace `kube-system`, once it is known.
    cluster: Option<String>,
    is_closing: bool,
}

/// State of a kind, for metrics and people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindState {
    /// Kind.
    pub kind: Kind,
    /// True if the objects have been listed.
    pub is_listed: bool,
    /// Number of objects.
    pub objects: usize,
    /// Resource version.
    pub version: u64,
    /// Size of the objects in the history, in bytes.
    pub history_bytes: usize,
    /// Time since the last proof that the state is the latest.
    pub age: Option<Duration>,
    /// Number that increases when the versions lose their meaning.
    pub epoch: u64,
}

impl Relay {
    /// Creates an empty relay for these kinds.
    #[must_use]
    pub fn new(kinds: &[Kind]) -> Relay {
        let is_once = |(at, kind): (usize, &Kind)| !kinds[..at].contains(kind);
        holds(kinds.iter().enumerate().all(is_once), "each kind has one collection");
        let collections = kinds.iter().map(|kind| Collection::new(*kind)).collect();
        Relay { collections, cluster: None, is_closing: false }
    }

    /// Records that a list from the API server begins. What it does not contain is removed at its end.
    pub fn begin_list(&mut self, kind: Kind) {
        self.with(kind, Collection::begin_list);
    }

    /// Adds an object to the list that has begun.
    ///
    /// # Errors
    /// An object that cannot be stored.
    pub fn add_to_list(&mut self, kind: Kind, object: &[u8]) -> Result<(), ObjectError> {
        self.with(kind, |of| of.add_to_list(object)).unwrap_or(Ok(()))
    }

    /// Records that the list is complete, at this version.
    pub fn end_list(&mut self, kind: Kind, version: u64, now: Instant) {
        self.with(kind, |of| of.end_list(version, now));
        self.check_cluster(kind);
    }

    /// Applies an event of the watch.
    ///
    /// # Errors
    /// An object that cannot be stored. The next list repairs the loss.
    pub fn apply(&mut self, kind: Kind, what: EventType, object: &[u8], now: Instant) -> Result<(), ObjectError> {
        self.with(kind, |of| of.apply(what, object, now)).unwrap_or(Ok(()))?;
        self.check_cluster(kind);
        Ok(())
    }

    /// Records a bookmark of the API server.
    pub fn note_bookmark(&mut self, kind: Kind, version: u64, now: Instant) {
        self.with(kind, |of| of.note_bookmark(version, now));
    }

    /// Records that the state was the API server's latest at this time.
    pub fn prove(&mut self, kind: Kind, at: Instant) {
        self.with(kind, |of| of.prove(at));
    }

    /// Begins a new epoch for all kinds if the namespaces are those of another cluster.
    fn check_cluster(&mut self, kind: Kind) {
        if kind != Kind::Namespace {
            return;
        }
        let namespace = self.collection(kind).and_then(|of| of.get("", CLUSTER_NAMESPACE));
        let uid = namespace.map(Stored::uid).filter(|uid| !uid.is_empty());
        let Some(uid) = uid.map(str::to_owned) else { return };
        if self.cluster.as_ref().is_some_and(|known| *known != uid) {
            for of in &mut self.collections {
                of.begin_epoch(of.kind != kind);
            }
        }
        self.cluster = Some(uid);
    }

    /// Returns true if the objects of a kind must be listed again, although its watch may still work.
    #[must_use]
    pub fn needs_list(&self, kind: Kind) -> bool {
        self.collection(kind).is_some_and(|of| !of.is_listed)
    }

    /// Returns true if all kinds have been listed. Nothing is served before.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.is_closing && self.collections.iter().all(|of| of.is_listed)
    }

    /// Returns the kinds that this relay follows.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        self.collections.iter().map(|of| of.kind).collect()
    }

    /// Returns the known version of a kind.
    #[must_use]
    pub fn version(&self, kind: Kind) -> u64 {
        self.collection(kind).map_or(0, |of| of.version)
    }

    /// Returns the state of all kinds.
    #[must_use]
    pub fn states(&self, now: Instant) -> Vec<KindState> {
        let state = |of: &Collection| KindState {
            kind: of.kind,
            is_listed: of.is_listed,
            objects: of.count(),
            version: of.version,
            history_bytes: of.history.bytes(),
            age: of.age(now),
            epoch: of.epoch,
        };
        self.collections.iter().map(state).collect()
    }

    /// Records the number of subscribers of a kind. The more there are, the more changes a tick gathers.
    pub fn note_subscribers(&mut self, kind: Kind, subscribers: usize) {
        self.with(kind, |of| of.subscribers = subscribers);
    }

    /// Returns when [`Relay::advance`] has something to do.
    #[must_use]
    pub fn due(&self) -> Option<Instant> {
        self.collections.iter().map(Collection::due).min()
    }

    /// Does what is due. Returns the kinds whose subscribers have something to read.
    pub fn advance(&mut self, now: Instant) -> Vec<(Kind, News)> {
        self.collections.iter_mut().filter_map(|of| Some((of.kind, of.advance(now)?))).collect()
    }

    /// Begins the end: all watches get a last bookmark and end, and nothing else is served.
    pub fn close(&mut self, now: Instant) {
        self.collections.iter_mut().for_each(|of| of.cut(now));
        self.is_closing = true;
    }

    /// Returns the body of a list, compressed if the request says so.
    ///
    /// # Errors
    /// The reason why the request is refused. After [`Refusal::Ahead`], it can be tried again a moment later.
    pub fn list(&mut self, request: &Request, now: Instant) -> Result<Bytes, Refusal> {
        let Action::List(at) = request.action else { return Err(Refusal::NotFound) };
        let of = self.served(request)?;
        let accepts_older = match at {
            At::Latest if !of.is_fresh(now) => return Err(Refusal::NotFresh),
            At::Exact(version) if version < of.version => return Err(Refusal::Expired(version, of.version)),
            At::Latest | At::Exact(_) => None,
            At::Any => Some(0),
            At::NotOlderThan(version) => Some(version),
        };
        Ok(of.list(&variant(request), accepts_older, now))
    }

    /// Begins a watch. A version that the history does not reach ends it with its first event, as the API server does.
    ///
    /// # Errors
    /// The errors of [`Relay::list`].
    pub fn watch(&mut self, request: &Request, now: Instant) -> Result<Cursor, Refusal> {
        let Action::Watch(watch) = request.action else { return Err(Refusal::NotFound) };
        self.note_wanted(request, &watch);
        let of = self.served(request)?;
        let variant = variant(request);
        let start = start(of, &watch, &variant, request.version_min(), now);
        Ok(Cursor::new(of, variant, start, watch.bookmarks, now, watch.duration))
    }

    /// Notes a version that may precede the history, also before there is one: the subscriber will come back.
    fn note_wanted(&mut self, request: &Request, watch: &Watch) {
        let of = self.collections.iter_mut().find(|of| of.kind == request.kind);
        if let (Some(of), At::NotOlderThan(version), false) = (of, watch.at, watch.sends_objects)
            && (!of.is_listed || version < of.history.start())
            && request.filter.is_everything()
        {
            of.wanted.note(version);
        }
    }

    /// Returns true if changes before the first list of a kind may still be needed. [`Relay::begin_earlier`] says when.
    #[must_use]
    pub fn may_need_earlier(&self, kind: Kind) -> bool {
        self.collection(kind).is_some_and(|of| of.wanted.is_open())
    }

    /// Returns a request for the changes before the first list, if subscribers wait for them. The caller reads them
    /// with a watch of the API server and passes the result to [`Relay::end_earlier`], complete or not.
    pub fn begin_earlier(&mut self, kind: Kind, now: Instant) -> Option<Earlier> {
        self.with(kind, |of| of.begin_earlier(now)).flatten()
    }

    /// Takes the result of [`Relay::begin_earlier`].
    pub fn end_earlier(&mut self, earlier: Earlier, now: Instant) {
        self.with(earlier.kind, |of| of.end_earlier(earlier, now));
    }

    fn served(&mut self, request: &Request) -> Result<&mut Collection, Refusal> {
        if self.collection(request.kind).is_none() {
            return Err(Refusal::NotFound);
        }
        if !self.is_ready() {
            return Err(Refusal::NotReady);
        }
        let of = self.collections.iter_mut().find(|of| of.kind == request.kind).ok_or(Refusal::NotFound)?;
        let version_min = request.version_min();
        if version_min > of.version {
            return Err(Refusal::Ahead(version_min, of.version));
        }
        Ok(of)
    }

    /// Returns what a subscriber gets next.
    pub fn next(&mut self, cursor: &mut Cursor, now: Instant) -> Next {
        let is_closing = self.is_closing;
        self.with(cursor.kind, |of| cursor.next(of, is_closing, now)).unwrap_or(Next::End)
    }

    /// Returns true if a subscriber has not read for too long. If only few are behind, they are too slow; otherwise the
    /// relay is.
    #[must_use]
    pub fn is_behind(&self, cursor: &Cursor, now: Instant) -> bool {
        self.collection(cursor.kind).is_some_and(|of| cursor.is_behind(of, now))
    }

    fn collection(&self, kind: Kind) -> Option<&Collection> {
        self.collections.iter().find(|of| of.kind == kind)
    }

    fn with<R>(&mut self, kind: Kind, act: impl FnOnce(&mut Collection) -> R) -> Option<R> {
        self.collections.iter_mut().find(|of| of.kind == kind).expected("the collection of a kind").map(act)
    }
}

fn variant(request: &Request) -> Variant {
    Variant { form: request.form, gzip: request.gzip, filter: Arc::new(request.filter.clone()) }
}

fn start(of: &mut Collection, watch: &Watch, variant: &Variant, min: u64, now: Instant) -> Start {
    if watch.sends_objects {
        let (version, initial) = of.initial(variant, watch.marks_end, min, now);
        let tick = of.history.find(version, &variant.filter).unwrap_or_else(|| of.history.end());
        return Start { tick, after: version, initial: Some(initial), waits: false, refusal: None };
    }
    let after = if let At::NotOlderThan(version) = watch.at { version } else { of.version };
    let found = of.history.find(after, &variant.filter);
    let waits = after < of.history.start() && variant.filter.is_everything() && of.wanted.is_open();
    if waits {
        of.wanted.wait(now);
    }
    let refusal = (found.is_none() && !waits).then(|| Refusal::Expired(after, of.history.start()));
    Start { tick: found.unwrap_or_else(|| of.history.end()), after, initial: None, waits, refusal }
}
