//! The one writer of an [`Index`]: takes the events of all watches one by one and keeps the index up to them.

use std::sync::Arc;

use crate::index::Index;
use crate::kinds::{ImportKept, NamespaceKept, PodKept, ServiceKept, SliceKept, Writer};
use crate::object::{Event, Meta};
use crate::records::{Records, Reduce};
use crate::snapshot::{self, NoSnapshot};
use crate::{Kind, Kinds, Spec, Watch};

/// What an event changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing: the object is known in this version, is not known to be deleted, or is not for answers.
    Nothing,
    /// An object came.
    Added,
    /// A known object has another version, whether or not answers change.
    Updated,
    /// An object went.
    Removed,
    /// A list is complete.
    Listed {
        /// How many objects were known and are not in it.
        swept: u32,
    },
}

/// What is known of the objects, so that the next event can be understood.
pub struct World {
    watches: Vec<Watched>,
    writer: Writer,
    /// Writes the services that clusters have in common.
    clusterset: Option<Writer>,
}

struct Watched {
    kind: Kind,
    namespace: Option<Box<str>>,
    records: Box<dyn Reduce>,
    listed: bool,
}

impl World {
    /// A world of which nothing is known yet, and the index that it will keep.
    #[must_use]
    pub fn new(spec: &Spec) -> (World, Arc<Index>) {
        let has_clusterset = spec.watches.iter().any(|watch| watch.kind.is_of_clusterset());
        let common = has_clusterset.then(|| Arc::new(Index::new(None)));
        let index = Arc::new(Index::new(common.clone()));
        let watched = |watch: &Watch| Watched {
            kind: watch.kind,
            namespace: watch.namespace.clone(),
            records: records(watch.kind),
            listed: false,
        };
        let world = World {
            watches: spec.watches.iter().map(watched).collect(),
            writer: Writer::new(Arc::clone(&index), spec),
            clusterset: common.map(|common| Writer::new(common, spec)),
        };
        world.note_unlisted();
        (world, index)
    }

    /// Takes what a watch saw, the one at this position of [`Spec::watches`], and tells what it changed. An object of
    /// another kind than that of the watch changes nothing.
    pub fn apply(&mut self, watch: usize, event: &Event<'_>, now_seconds: u32) -> Change {
        let Some(watched) = self.watches.get_mut(watch) else { return Change::Nothing };
        let writer = match &mut self.clusterset {
            Some(common) if watched.kind.is_of_clusterset() => common,
            _ => &mut self.writer,
        };
        let outcome = watched.records.reduce(event, writer);
        if outcome.change != Change::Nothing {
            writer.index.count_change();
        }
        if outcome.stamps {
            writer.index.stamp(now_seconds);
        }
        if matches!(outcome.change, Change::Listed { .. }) {
            watched.listed = true;
            self.note_unlisted();
        }
        outcome.change
    }

    /// Takes what [`snapshot::write`] wrote of an index with the same watches. It is known from here on, and
    /// [remembered](Index::is_remembered) until every watch has been listed.
    ///
    /// # Errors
    /// If it did not; then the world may know a part of it and must not be used.
    pub fn restore(&mut self, octets: &[u8], now_seconds: u32) -> Result<(), NoSnapshot> {
        let watches = &self.watches;
        let places: Vec<(Kind, Option<Box<str>>)> =
            watches.iter().map(|watched| (watched.kind, watched.namespace.clone())).collect();
        let sees = |kind: Kind, meta: Meta<'_>| {
            let place = if kind == Kind::Namespace { meta.name } else { meta.namespace };
            let is_there = |namespace: &Option<Box<str>>| namespace.as_deref().is_none_or(|known| known == place);
            places.iter().position(|(known, namespace)| *known == kind && is_there(namespace))
        };
        snapshot::read(octets, |kind, object| {
            if let Some(watch) = sees(kind, object.meta()) {
                self.apply(watch, &Event::Applied(object), now_seconds);
            }
        })?;
        self.writer.index.remember();
        Ok(())
    }

    fn note_unlisted(&self) {
        let unlisted = self.watches.iter().filter(|watched| !watched.listed);
        let kinds: Vec<Kind> = unlisted.map(|watched| watched.kind).collect();
        self.writer.index.set_unlisted(Kinds::of(&kinds));
    }
}

fn records(kind: Kind) -> Box<dyn Reduce> {
    match kind {
        Kind::Namespace => Box::new(Records::<NamespaceKept>::new()),
        Kind::Service => Box::new(Records::<ServiceKept>::new()),
        Kind::EndpointSlice | Kind::ImportedSlice => Box::new(Records::<SliceKept>::new()),
        Kind::Pod => Box::new(Records::<PodKept>::new()),
        Kind::ServiceImport => Box::new(Records::<ImportKept>::new()),
    }
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;
