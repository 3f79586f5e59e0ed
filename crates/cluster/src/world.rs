//! The one writer of an [`Index`]: takes the events of all watches one by one and keeps the index up to them.

use std::sync::Arc;

use crate::index::Index;
use crate::kinds::Writer;
use crate::mesh::{self, Mesh, Note};
use crate::object::{Event, Meta};
use crate::records::Change;
use crate::snapshot::{self, NoSnapshot};
use crate::watches::Watches;
use crate::{Kind, Kinds, Spec, Watch};

/// What is known of the objects, so that the next event can be understood.
pub struct World {
    watches: Watches,
    writer: Writer,
    /// Writes the services that clusters have in common.
    clusterset: Option<Writer>,
}

impl World {
    /// A world of which nothing is known yet, and the index that it will keep.
    #[must_use]
    pub fn new(spec: &Spec) -> (World, Arc<Index>) {
        let followed = Kinds::of(&spec.followed);
        let kinds = || spec.watches.iter().map(|watch| watch.kind).chain(spec.followed.iter().copied());
        let common = kinds().any(Kind::is_of_clusterset).then(|| Arc::new(Index::new(None, None, Kinds::NONE)));
        let mesh = kinds().any(Kind::is_of_mesh).then(|| Arc::new(Mesh::new()));
        let index = Arc::new(Index::new(common.clone(), mesh, followed));
        let mut world = World {
            watches: Watches::default(),
            writer: Writer::new(Arc::clone(&index), spec),
            clusterset: common.map(|common| Writer::new(common, spec)),
        };
        for watch in &spec.watches {
            world.watches.open(watch.clone());
        }
        world.note_unlisted();
        (world, index)
    }

    /// Takes what a watch saw, the one at this position of [`Spec::watches`] or with the number that [`World::open`] gave,
    /// and tells what it changed. An object of another kind than that of the watch changes nothing.
    pub fn apply(&mut self, watch: usize, event: &Event<'_>, now_seconds: u32) -> Change {
        if matches!(event, Event::Listing) && self.is_wide(watch) {
            self.watches.absorb(watch);
        }
        let Some(watched) = self.watches.get_mut(watch) else { return Change::Nothing };
        let kind = watched.watch.kind;
        let writer = match &mut self.clusterset {
            Some(common) if kind.is_of_clusterset() => common,
            _ => &mut self.writer,
        };
        let outcome = watched.records.reduce(event, writer);
        if outcome.change != Change::Nothing {
            writer.index.count_change();
        }
        if outcome.stamps {
            writer.index.stamp(now_seconds);
        }
        match (outcome.change, event) {
            (Change::Listed { .. }, _) => self.note_listed(watch),
            (Change::Added, Event::Applied(namespace)) if kind == Kind::Namespace => {
                self.note_unlisted_in(namespace.meta().name);
            }
            (Change::Removed, _) if kind == Kind::Namespace => self.note_unlisted(),
            _ => {}
        }
        outcome.change
    }

    /// Opens a watch of a [followed](Spec::followed) kind and gives its number; that of the same watch if it is open.
    ///
    /// One without a namespace takes the place of those in single ones: their objects become its own as its first list
    /// begins, and they are closed.
    pub fn open(&mut self, watch: &Watch) -> usize {
        self.watches.find(watch).unwrap_or_else(|| self.watches.open(watch.clone()))
    }

    /// Closes a watch: what it saw is gone.
    pub fn close(&mut self, watch: usize, now_seconds: u32) {
        self.apply(watch, &Event::Listing, now_seconds);
        self.apply(watch, &Event::Listed, now_seconds);
        let namespace = self.watches.close(watch).and_then(|watch| watch.namespace);
        namespace.iter().for_each(|name| self.note_unlisted_in(name));
    }

    /// Whether there is such a watch, still or already.
    #[must_use]
    pub fn is_open(&self, watch: usize) -> bool {
        self.watches.get(watch).is_some()
    }

    /// The watches that are open, each with its number.
    #[must_use]
    pub fn watches(&self) -> Vec<(usize, Watch)> {
        self.watches.each().map(|(number, watched)| (number, watched.watch.clone())).collect()
    }

    /// Whether the list of a watch was complete once.
    #[must_use]
    pub fn is_listed(&self, watch: usize) -> bool {
        self.watches.get(watch).is_some_and(|watched| watched.listed)
    }

    /// What is to be told of the names of a mesh since this was asked last.
    pub fn take_notes(&mut self) -> Vec<Note> {
        self.writer.mesh.as_mut().map(mesh::Reducer::take_notes).unwrap_or_default()
    }

    /// Takes what [`snapshot::write`] wrote of an index with the same watches. It is known from here on, and
    /// [remembered](Index::is_remembered) until every watch has been listed.
    ///
    /// # Errors
    /// If it did not; then the world may know a part of it and must not be used.
    pub fn restore(&mut self, octets: &[u8], now_seconds: u32) -> Result<(), NoSnapshot> {
        snapshot::read(octets, |kind, object| {
            if let Some(watch) = self.watch_of(kind, object.meta()) {
                self.apply(watch, &Event::Applied(object), now_seconds);
            }
        })?;
        self.writer.index.remember();
        Ok(())
    }

    /// The watch that sees an object; it is opened if it is one of those that follow the namespaces.
    fn watch_of(&mut self, kind: Kind, meta: Meta<'_>) -> Option<usize> {
        let place = if kind == Kind::Namespace { meta.name } else { meta.namespace };
        let follows = self.writer.followed.contains(kind) && self.writer.index.namespace_exists(place.as_bytes());
        self.find_watch(kind, place)
            .or_else(|| follows.then(|| self.open(&Watch { kind, namespace: Some(place.into()) })))
    }

    pub(crate) fn find_watch(&self, kind: Kind, namespace: &str) -> Option<usize> {
        self.watches.find_seeing(kind, namespace)
    }

    /// Whether a watch sees all namespaces although its kind follows them.
    fn is_wide(&self, watch: usize) -> bool {
        let is_wide = |watch: &Watch| watch.namespace.is_none() && self.writer.followed.contains(watch.kind);
        self.watches.get(watch).is_some_and(|watched| is_wide(&watched.watch))
    }

    /// The list of a watch is complete.
    fn note_listed(&mut self, number: usize) {
        let is_wide = self.is_wide(number);
        let Some(watched) = self.watches.get_mut(number) else { return };
        watched.listed = true;
        let Watch { kind, namespace } = watched.watch.clone();
        if is_wide {
            self.writer.followed = self.writer.followed.without(kind);
            let mut names: Vec<Box<str>> = Vec::new();
            self.writer.index.for_each_namespace(|name| names.push(name.into()));
            names.iter().for_each(|name| self.note_unlisted_in(name));
        } else if let Some(name) = namespace {
            self.note_unlisted_in(&name);
        }
        self.note_unlisted();
    }

    /// Says of which kinds it is not known what of them is in a namespace.
    fn note_unlisted_in(&self, namespace: &str) {
        let is_listed = |kind: Kind| {
            let watch = Watch { kind, namespace: Some(namespace.into()) };
            self.watches.find(&watch).and_then(|number| self.watches.get(number)).is_some_and(|watched| watched.listed)
        };
        let unlisted = self.writer.followed.each().filter(|kind| !is_listed(*kind));
        self.writer.index.note_unlisted_in(namespace, unlisted.fold(Kinds::NONE, Kinds::with));
    }

    fn note_unlisted(&self) {
        let followed = self.writer.followed;
        let unlisted = self.watches.unlisted(|watch| watch.namespace.is_none() || !followed.contains(watch.kind));
        let in_namespaces =
            if unlisted.contains(Kind::Namespace) { followed } else { self.writer.index.unlisted_in_namespaces() };
        self.writer.index.note_unlisted(unlisted.or(in_namespaces));
    }
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;
