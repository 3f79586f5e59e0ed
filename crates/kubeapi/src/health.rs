//! Health of a subscription's watches, for people who look at the server from outside.
//!
//! The thread of the watches writes, any thread may read. The locks are held for a few assignments only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cluster::{Index, Kind};

use crate::failure::ApiError;

/// Health of the watches of a subscription.
#[derive(Default)]
pub struct ViewHealth(Mutex<Watches>);

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
    /// First failure of this outage, and the last error.
    failing: Option<(Instant, String)>,
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
    /// Time since the first failure of this outage, and the last error, for the watch that has failed longest.
    pub failing: Option<(Duration, String)>,
}

impl ViewHealth {
    /// Returns the health by kind.
    #[must_use]
    pub fn resources(&self, index: &Index) -> Vec<ResourceHealth> {
        let watches = self.lock();
        let mut resources: Vec<ResourceHealth> = Vec::new();
        for watch in watches.open.values() {
            match resources.iter_mut().find(|known| known.kind == watch.kind) {
                Some(known) => watch.add_to(known),
                None => resources.push(watch.health(index)),
            }
        }
        resources
    }

    /// Returns the time since the last snapshot was written.
    #[must_use]
    pub fn snapshot_age(&self) -> Option<Duration> {
        self.lock().snapshot.map(|written| written.elapsed())
    }

    /// Records that a snapshot was written.
    pub(crate) fn has_snapshot(&self) {
        self.lock().snapshot = Some(Instant::now());
    }

    /// Adds a watch.
    pub(crate) fn watch(self: &Arc<Self>, kind: Kind) -> WatchHealth {
        let mut watches = self.lock();
        let number = watches.next;
        watches.next += 1;
        watches.open.insert(number, Watch { kind, began: Instant::now(), heard: None, failing: None });
        WatchHealth { view: Arc::clone(self), number }
    }

    fn lock(&self) -> MutexGuard<'_, Watches> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    fn silent(&self) -> Option<Duration> {
        self.heard.map(|heard| heard.elapsed())
    }

    fn failing(&self) -> Option<(Duration, String)> {
        self.failing.as_ref().map(|(since, error)| (since.elapsed(), error.clone()))
    }

    fn health(&self, index: &Index) -> ResourceHealth {
        ResourceHealth {
            kind: self.kind,
            objects: index.count(self.kind),
            listed: index.unlisted().all(|kind| kind != self.kind),
            age: self.began.elapsed(),
            silent: self.silent(),
            failing: self.failing(),
        }
    }

    /// Adds a further watch of the same kind.
    fn add_to(&self, known: &mut ResourceHealth) {
        known.age = known.age.max(self.began.elapsed());
        known.silent = known.silent.zip(self.silent()).map(|(one, other)| one.max(other));
        let length = |failing: &Option<(Duration, String)>| failing.as_ref().map(|(since, _)| *since);
        let failing = self.failing();
        if length(&failing) > length(&known.failing) {
            known.failing = failing;
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
        self.change(|watch| watch.heard = Some(Instant::now()));
    }

    /// Records a failure.
    pub(crate) fn failed(&self, error: &ApiError) {
        self.change(|watch| {
            let since = watch.failing.take().map_or_else(Instant::now, |(since, _)| since);
            watch.failing = Some((since, error.to_string()));
        });
    }

    /// Records that lists and watches work again.
    pub(crate) fn recovered(&self) {
        self.change(|watch| watch.failing = None);
    }

    fn change(&self, change: impl FnOnce(&mut Watch)) {
        if let Some(watch) = self.view.lock().open.get_mut(&self.number) {
            change(watch);
        }
    }
}

impl Drop for WatchHealth {
    fn drop(&mut self) {
        self.view.lock().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{Reducer, Spec};

    #[test]
    fn shows_the_worst_of_several_watches_of_a_kind() {
        let (_, index) = Reducer::new(&Spec::new(&[Kind::Service], &[]));
        let view = Arc::<ViewHealth>::default();
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
