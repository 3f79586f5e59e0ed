//! Health of a subscription's watches, for people who look at the server from outside.
//!
//! The thread of the watches writes, any thread may read. The locks are held for a few assignments only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cluster::{Index, Kind};
use host::Instant;
use host::invariant::{Expected as _, holds};

use crate::failure::ApiError;

/// Health of the watches of a subscription.
pub struct ViewHealth {
    watches: Mutex<Watches>,
    clock: fn() -> Instant,
}

#[derive(Default)]
struct Watches {
    /// Open watches by number. A kind has several if single namespaces are watched.
    open: BTreeMap<u64, Watch>,
    next: u64,
    snapshot: Option<Instant>,
}

struct Watch {
    kind: Kind,
    began: Instant,
    /// Last time that the API server sent something.
    heard: Option<Instant>,
    /// Last time at which the objects were known to be current.
    proof: Proof,
    /// First failure of this outage, and the last error.
    failing: Option<(Instant, String)>,
    /// Server that the watch uses, if there are relays.
    server: Option<UsedServer>,
}

/// Server that a watch uses.
#[derive(Clone)]
struct UsedServer {
    is_relay: bool,
    url: String,
    since: Instant,
}

/// Last time at which the objects of a watch were known to be current.
#[derive(Clone, Copy)]
enum Proof {
    /// Never: no list is complete.
    Missing,
    /// At this time: the end of a list, an event, a bookmark, or the begin of a consistent read.
    At(Instant),
    /// There is nothing to prove: the objects are assumed, because the API server does not know the kind or refuses it.
    Assumed,
}

/// Health of all watches of one kind.
#[derive(Clone, Debug)]
pub struct ResourceHealth {
    /// Kind.
    pub kind: Kind,
    /// Number of objects in the index.
    pub objects: u32,
    /// True once the first list is complete.
    pub listed: bool,
    /// Time since the watch began, for the one that began first.
    pub age: Duration,
    /// Time since the API server last sent something, for the watch that is silent longest; `None` if it never did for
    /// one of them.
    pub silent: Option<Duration>,
    /// Time since the API server last confirmed the objects, for the watch where that is longest; `None` if it never
    /// did for one of them, or if nothing is watched because the objects are assumed.
    pub view_age: Option<Duration>,
    /// Time since the first failure of this outage, and the last error, for the watch that has failed longest.
    pub failing: Option<(Duration, String)>,
    /// URL of the relay or API server that is used, and for how long, if there are relays. Of several watches, the one
    /// that changed last.
    pub server: Option<(String, Duration)>,
}

impl ViewHealth {
    /// Creates the health of a subscription without watches.
    pub(crate) fn new(clock: fn() -> Instant) -> ViewHealth {
        ViewHealth { watches: Mutex::default(), clock }
    }

    /// Returns the age of the view: the kind with the greatest time since it was confirmed, and that time. `None`
    /// before each kind has been listed, and without watches.
    #[must_use]
    pub fn oldest(&self) -> Option<(Kind, Duration)> {
        let (now, watches) = ((self.clock)(), self.lock());
        let watched = watches.open.values().filter(|watch| !matches!(watch.proof, Proof::Assumed));
        let ages = watched.map(|watch| Some((watch.kind, watch.view_age(now)?)));
        ages.reduce(|one, other| Some(if one?.1 < other?.1 { other? } else { one? })).flatten()
    }

    /// Returns the time since the objects of a resource were last confirmed, for the watch where that is longest.
    /// `None` if they never were, or if nothing is watched.
    pub(crate) fn age_of(&self, is_meant: impl Fn(Kind) -> bool) -> Option<Duration> {
        let (now, watches) = ((self.clock)(), self.lock());
        let watched = watches.open.values().filter(|watch| is_meant(watch.kind));
        watched.filter_map(|watch| watch.view_age(now)).max()
    }

    /// Returns the number of watches that use a relay, or the API server. `None` without relays.
    pub(crate) fn users(&self, of_relay: bool) -> Option<usize> {
        let watches = self.lock();
        let mut used = watches.open.values().filter_map(|watch| watch.server.as_ref()).peekable();
        used.peek()?;
        Some(used.filter(|server| server.is_relay == of_relay).count())
    }

    /// Returns the health by kind.
    #[must_use]
    pub fn resources(&self, index: &Index) -> Vec<ResourceHealth> {
        let (now, watches) = ((self.clock)(), self.lock());
        let mut resources: Vec<ResourceHealth> = Vec::new();
        for watch in watches.open.values() {
            match resources.iter_mut().find(|known| known.kind == watch.kind) {
                Some(known) => watch.add_to(known, now),
                None => resources.push(watch.health(index, now)),
            }
        }
        resources
    }

    /// Returns the time since the last snapshot was written.
    #[must_use]
    pub fn snapshot_age(&self) -> Option<Duration> {
        let now = (self.clock)();
        self.lock().snapshot.map(|written| now.since(written))
    }

    /// Records that a snapshot was written.
    pub(crate) fn has_snapshot(&self) {
        let now = (self.clock)();
        self.lock().snapshot = Some(now);
    }

    /// Adds a watch.
    pub(crate) fn watch(self: &Arc<Self>, kind: Kind) -> WatchHealth {
        let began = (self.clock)();
        let mut watches = self.lock();
        let number = watches.next;
        watches.next += 1;
        let watch = Watch { kind, began, heard: None, proof: Proof::Missing, failing: None, server: None };
        let former = watches.open.insert(number, watch);
        holds(former.is_none(), "the number of a watch is used once");
        WatchHealth { view: Arc::clone(self), number }
    }

    fn lock(&self) -> MutexGuard<'_, Watches> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    fn silent(&self, now: Instant) -> Option<Duration> {
        self.heard.map(|heard| now.since(heard))
    }

    fn view_age(&self, now: Instant) -> Option<Duration> {
        match self.proof {
            Proof::At(time) => Some(now.since(time)),
            Proof::Missing | Proof::Assumed => None,
        }
    }

    fn failing(&self, now: Instant) -> Option<(Duration, String)> {
        self.failing.as_ref().map(|(since, error)| (now.since(*since), error.clone()))
    }

    fn health(&self, index: &Index, now: Instant) -> ResourceHealth {
        ResourceHealth {
            kind: self.kind,
            objects: index.count(self.kind),
            listed: index.unlisted().all(|kind| kind != self.kind),
            age: now.since(self.began),
            silent: self.silent(now),
            view_age: self.view_age(now),
            failing: self.failing(now),
            server: self.server(now),
        }
    }

    fn server(&self, now: Instant) -> Option<(String, Duration)> {
        self.server.as_ref().map(|server| (server.url.clone(), now.since(server.since)))
    }

    /// Adds a further watch of the same kind.
    fn add_to(&self, known: &mut ResourceHealth, now: Instant) {
        known.age = known.age.max(now.since(self.began));
        known.silent = known.silent.zip(self.silent(now)).map(|(one, other)| one.max(other));
        known.view_age = known.view_age.zip(self.view_age(now)).map(|(one, other)| one.max(other));
        let length = |failing: &Option<(Duration, String)>| failing.as_ref().map(|(since, _)| *since);
        let failing = self.failing(now);
        if length(&failing) > length(&known.failing) {
            known.failing = failing;
        }
        if let (Some(server), Some(other)) = (self.server(now), &mut known.server)
            && server.1 < other.1
        {
            *other = server;
        }
    }
}

/// Health of one watch. Dropping it removes the watch.
pub(crate) struct WatchHealth {
    view: Arc<ViewHealth>,
    number: u64,
}

impl WatchHealth {
    /// Records that the API server sent something.
    pub(crate) fn heard(&self) {
        self.change(|watch, now| {
            holds(watch.heard.is_none_or(|last| last <= now), "time does not go backwards");
            watch.heard = Some(now);
        });
    }

    /// Records that the objects are current: a list is complete, or a watch has sent something.
    pub(crate) fn proved(&self) {
        self.change(|watch, now| watch.proof = Proof::At(now));
    }

    /// Records that the objects were current at a time, unless they are known to have been at a later one.
    pub(crate) fn proved_at(&self, time: Instant) {
        self.change(|watch, _| match watch.proof {
            Proof::At(known) => watch.proof = Proof::At(known.max(time)),
            Proof::Missing | Proof::Assumed => {}
        });
    }

    /// Records that the objects are assumed, so that nothing can confirm them.
    pub(crate) fn assumed(&self) {
        self.change(|watch, _| watch.proof = Proof::Assumed);
    }

    /// Returns the time since the objects were last confirmed; `None` if they never were.
    pub(crate) fn view_age(&self) -> Option<Duration> {
        let now = self.now();
        self.view.lock().open.get(&self.number)?.view_age(now)
    }

    /// Returns the time of the clock of the ages.
    pub(crate) fn now(&self) -> Instant {
        (self.view.clock)()
    }

    /// Records a failure.
    pub(crate) fn failed(&self, error: &ApiError) {
        self.change(|watch, now| {
            let since = watch.failing.take().map_or(now, |(since, _)| since);
            watch.failing = Some((since, error.to_string()));
        });
    }

    /// Records that the watch uses a relay or the API server.
    pub(crate) fn uses(&self, url: &str, is_relay: bool) {
        self.change(|watch, now| match &watch.server {
            Some(server) if server.url == url => {}
            _ => watch.server = Some(UsedServer { is_relay, url: url.to_owned(), since: now }),
        });
    }

    /// Records that lists and watches work again.
    pub(crate) fn recovered(&self) {
        self.change(|watch, _| watch.failing = None);
    }

    fn change(&self, change: impl FnOnce(&mut Watch, Instant)) {
        let now = self.now();
        if let Some(watch) = self.view.lock().open.get_mut(&self.number).expected("the health of an open watch") {
            change(watch, now);
        }
    }
}

impl Drop for WatchHealth {
    fn drop(&mut self) {
        let removed = self.view.lock().open.remove(&self.number);
        holds(removed.is_some(), "the health of a watch ends with it");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{Reducer, Spec};

    #[test]
    fn shows_the_worst_of_several_watches_of_a_kind() {
        let (_, index) = Reducer::new(&Spec::new(&[Kind::Service], &[]));
        let view = Arc::new(ViewHealth::new(|| Instant::START));
        let [one, other] = [(); 2].map(|()| view.watch(Kind::Service));
        one.heard();
        let services = |view: &ViewHealth| view.resources(&index).pop().expect("Services are watched");
        assert!(services(&view).silent.is_none() && services(&view).failing.is_none());
        other.heard();
        other.failed(&ApiError::Cut);
        other.failed(&ApiError::Gone);
        let health = services(&view);
        assert_eq!((view.resources(&index).len(), health.listed, health.silent.is_some()), (1, false, true));
        assert_eq!(health.failing.map(|(_, error)| error), Some(ApiError::Gone.to_string()));
        other.recovered();
        assert!(services(&view).failing.is_none());
        drop((one, other));
        assert!(view.resources(&index).is_empty());
    }
}
