//! The single writer of an [`Index`]: applies the events of all watches, one by one.

use std::sync::Arc;

use crate::index::Index;
use crate::kinds::IndexReducer;
use crate::mesh::{self, Mesh, Note};
use crate::object::{Event, Meta, Object};
use crate::records::Change;
use crate::snapshot::Record;
use crate::watches::Watches;
use crate::{Kind, Kinds, Spec, Watch};
use host::invariant::{Expected as _, holds};

/// Single writer of an [`Index`], with the state of each watch that it needs to interpret the next event.
pub struct Reducer {
    watches: Watches,
    cluster: IndexReducer,
    /// Reducer of the ClusterSet index (ServiceImports and imported EndpointSlices), if `spec` watches these
    /// kinds.
    clusterset: Option<IndexReducer>,
}

impl Reducer {
    /// Creates an empty reducer and the index that it writes.
    #[must_use]
    pub fn new(spec: &Spec) -> (Reducer, Arc<Index>) {
        let followed = Kinds::of(&spec.followed);
        let kinds = || spec.watches.iter().map(|watch| watch.kind).chain(spec.followed.iter().copied());
        let common = kinds().any(Kind::is_of_clusterset).then(|| Arc::new(Index::new(None, None, Kinds::NONE)));
        let mesh = kinds().any(Kind::is_of_mesh).then(|| Arc::new(Mesh::new()));
        let mut index = Index::new(common.clone(), mesh, followed);
        if spec.pod_names {
            index.keep_pod_names();
        }
        let index = Arc::new(index);
        let mut reducer = Reducer {
            watches: Watches::default(),
            cluster: IndexReducer::new(Arc::clone(&index), spec),
            clusterset: common.map(|common| IndexReducer::new(common, spec)),
        };
        for watch in &spec.watches {
            reducer.watches.open(watch.clone());
        }
        reducer.note_unlisted();
        (reducer, index)
    }

    /// Applies an event of a watch and returns what it changed.
    ///
    /// `watch` is the position in [`Spec::watches`] or the number that [`Reducer::open`] returned. `now_seconds` (Unix
    /// time) becomes the SOA serial if the event changes the zone. An event of an unknown watch, or with an object of
    /// another kind than the watch's, changes nothing.
    pub fn apply(&mut self, watch: usize, event: &Event<'_>, now_seconds: u32) -> Change {
        let change = self.replay(watch, event, now_seconds);
        if matches!(change, Change::Listed { .. }) {
            self.note_listed(watch);
            holds(self.is_listed(watch), "a watch is listed after its list");
        }
        change
    }

    /// Applies an event of an earlier process, like [`Reducer::apply`]. A list does not count: the API server may have
    /// changed since then.
    pub(crate) fn replay(&mut self, watch: usize, event: &Event<'_>, now_seconds: u32) -> Change {
        if matches!(event, Event::Listing) && self.is_wide(watch) {
            self.watches.absorb(watch);
        }
        let Some(watched) = self.watches.get_mut(watch) else { return Change::Nothing };
        let kind = watched.watch.kind;
        let reducer = match &mut self.clusterset {
            Some(common) if kind.is_of_clusterset() => common,
            _ => &mut self.cluster,
        };
        let outcome = watched.records.reduce(event, reducer);
        let is_list = matches!(outcome.change, Change::Listed { .. });
        holds(is_list == matches!(event, Event::Listed), "a list is complete at its end");
        holds(outcome.change != Change::Nothing || !outcome.stamps, "the serial advances if something has changed");
        let is_from_object = matches!(outcome.change, Change::Added | Change::Updated);
        holds(
            !is_from_object || matches!(event, Event::Applied(_)),
            "an object is added or updated by an event with it",
        );
        let is_removal = matches!(event, Event::Applied(_) | Event::Deleted { .. });
        holds(outcome.change != Change::Removed || is_removal, "an object is removed by an event about it");
        if outcome.change != Change::Nothing {
            reducer.index.count_change();
        }
        if outcome.stamps {
            reducer.index.stamp(now_seconds);
        }
        match (outcome.change, event) {
            (Change::Added, Event::Applied(namespace)) if kind == Kind::Namespace => {
                self.note_unlisted_in(namespace.meta().name);
            }
            (Change::Removed, _) if kind == Kind::Namespace => self.note_unlisted(),
            _ => {}
        }
        outcome.change
    }

    /// Opens a watch of a [followed](Spec::followed) kind and returns its number. If the same watch is already open,
    /// returns its number.
    ///
    /// A watch without a namespace replaces the watches of the same kind in single namespaces: when its first list
    /// begins, it takes over their objects and they are closed.
    pub fn open(&mut self, watch: &Watch) -> usize {
        self.watches.find(watch).unwrap_or_else(|| self.watches.open(watch.clone()))
    }

    /// Closes a watch and removes its objects from the index.
    pub fn close(&mut self, watch: usize, now_seconds: u32) {
        holds(self.is_open(watch), "a watch that is closed is open");
        self.apply(watch, &Event::Listing, now_seconds);
        self.apply(watch, &Event::Listed, now_seconds);
        let is_swept = self.watches.get(watch).is_none_or(|watched| watched.records.is_empty());
        holds(is_swept, "a watch that is closed has no objects left");
        let namespace = self.watches.close(watch).and_then(|watch| watch.namespace);
        namespace.iter().for_each(|name| self.note_unlisted_in(name));
    }

    /// Returns true if the watch is open.
    #[must_use]
    pub fn is_open(&self, watch: usize) -> bool {
        self.watches.get(watch).is_some()
    }

    /// Returns the open watches with their numbers.
    #[must_use]
    pub fn watches(&self) -> Vec<(usize, Watch)> {
        self.watches.each().map(|(number, watched)| (number, watched.watch.clone())).collect()
    }

    /// Returns true if the initial list of the watch has completed.
    #[must_use]
    pub fn is_listed(&self, watch: usize) -> bool {
        self.watches.get(watch).is_some_and(|watched| watched.listed)
    }

    /// Returns the notes about mesh names collected since the last call, for the log.
    pub fn take_notes(&mut self) -> Vec<Note> {
        self.cluster.mesh.as_mut().map(mesh::MeshReducer::take_notes).unwrap_or_default()
    }

    /// Records that a watch continues from the position of an earlier process, so that its objects are current without
    /// a list.
    pub fn resumed(&mut self, watch: usize) {
        if self.is_open(watch) {
            self.note_listed(watch);
        }
    }

    /// Records that the source of a watch has another history now, because its storage was restored from a backup. It
    /// gives versions a second time, so an object of the next list may differ from a known one of the same version.
    pub fn forget_versions(&mut self, watch: usize) {
        if let Some(watched) = self.watches.get_mut(watch) {
            watched.records.forget_versions(None);
        }
    }

    /// Records that an object of a log was not current, whatever its version is.
    pub(crate) fn forget_version(&mut self, watch: usize, Meta { namespace, name, .. }: Meta<'_>) {
        let Some(kind) = self.watches.get(watch).map(|watched| watched.watch.kind) else { return };
        let key = self.reducer_of(kind).index.key(namespace.as_bytes(), name.as_bytes());
        if let Some(watched) = self.watches.get_mut(watch) {
            watched.records.forget_versions(Some(key));
        }
    }

    /// Returns the record of an event for a [log](crate::snapshot). It is written before the event is applied, so that
    /// no later process knows less than what was answered. `position` is the one after the event, or `None` within a
    /// list. Returns `None` if the event changes nothing.
    #[must_use]
    pub fn record<'a>(
        &'a self,
        watch: usize,
        event: &'a Event<'a>,
        position: Option<&'a str>,
    ) -> Option<Record<'a, &'a Object<'a>>> {
        let watched = self.watches.get(watch)?;
        let is_current = match event {
            Event::Applied(object) => watched.records.is_current(object.meta(), self.reducer_of(watched.watch.kind)),
            _ => false,
        };
        watched.record(event, is_current, position)
    }

    /// Returns the record of an event, like [`Reducer::record`], for a new log: it has the object also if that is
    /// known.
    #[must_use]
    pub fn whole_record<'a>(
        &'a self,
        watch: usize,
        event: &'a Event<'a>,
        position: Option<&'a str>,
    ) -> Option<Record<'a, &'a Object<'a>>> {
        self.watches.get(watch)?.record(event, false, position)
    }

    /// Marks the data as that of an earlier process, which had a complete list of these watches.
    pub(crate) fn remember(&mut self, complete: impl Iterator<Item = usize>) {
        for number in complete {
            if let Some(watched) = self.watches.get_mut(number) {
                watched.remembered = true;
            }
        }
        self.note_unlisted_in_each();
        self.cluster.index.remember();
    }

    /// Returns the number of a watch, if it is open.
    pub(crate) fn find(&self, watch: &Watch) -> Option<usize> {
        self.watches.find(watch)
    }

    /// Returns the number of a watch. Opens it if its kind follows the namespaces.
    pub(crate) fn find_or_follow(&mut self, watch: &Watch) -> Option<usize> {
        let follows = self.cluster.followed.contains(watch.kind);
        self.find(watch).or_else(|| follows.then(|| self.open(watch)))
    }

    fn reducer_of(&self, kind: Kind) -> &IndexReducer {
        match &self.clusterset {
            Some(common) if kind.is_of_clusterset() => common,
            _ => &self.cluster,
        }
    }

    #[cfg(any(test, feature = "scenario"))]
    pub(crate) fn find_watch(&self, kind: Kind, namespace: &str) -> Option<usize> {
        self.watches.find_seeing(kind, namespace)
    }

    /// Returns true if a watch of a followed kind covers all namespaces.
    fn is_wide(&self, watch: usize) -> bool {
        let is_wide = |watch: &Watch| watch.namespace.is_none() && self.cluster.followed.contains(watch.kind);
        self.watches.get(watch).is_some_and(|watched| is_wide(&watched.watch))
    }

    /// Records that the initial list of a watch has completed.
    fn note_listed(&mut self, number: usize) {
        let is_wide = self.is_wide(number);
        let Some(watched) = self.watches.get_mut(number).expected("the watch that was listed") else { return };
        watched.listed = true;
        let Watch { kind, namespace } = watched.watch.clone();
        if is_wide {
            self.cluster.followed = self.cluster.followed.without(kind);
            self.note_unlisted_in_each();
        } else if let Some(name) = namespace {
            self.note_unlisted_in(&name);
        }
        self.note_unlisted();
    }

    fn note_unlisted_in_each(&self) {
        let mut names: Vec<Box<str>> = Vec::new();
        self.cluster.index.for_each_namespace(|name| names.push(name.into()));
        names.iter().for_each(|name| self.note_unlisted_in(name));
    }

    /// Recomputes the kinds that have not been listed yet in a namespace, and those that are unknown.
    fn note_unlisted_in(&self, namespace: &str) {
        let find = |kind: Kind, namespace: Option<&str>| {
            let watch = Watch { kind, namespace: namespace.map(Into::into) };
            self.find(&watch).and_then(|number| self.watches.get(number))
        };
        let is_listed = |kind: &Kind| find(*kind, Some(namespace)).is_some_and(|watched| watched.listed);
        let is_remembered = |kind: &Kind| {
            let watches = [find(*kind, Some(namespace)), find(*kind, None)];
            watches.into_iter().flatten().any(|watched| watched.remembered)
        };
        let unlisted: Kinds = self.cluster.followed.each().filter(|kind| !is_listed(kind)).collect();
        let unknown = unlisted.each().filter(|kind| !is_remembered(kind)).collect();
        self.cluster.index.note_unlisted_in(namespace, unlisted, unknown);
    }

    fn note_unlisted(&self) {
        let followed = self.cluster.followed;
        let unlisted = self.watches.unlisted(|watch| watch.namespace.is_none() || !followed.contains(watch.kind));
        let in_namespaces =
            if unlisted.contains(Kind::Namespace) { followed } else { self.cluster.index.unlisted_in_namespaces() };
        self.cluster.index.note_unlisted(unlisted.or(in_namespaces));
    }
}

#[cfg(test)]
#[path = "reducer_tests.rs"]
mod tests;
