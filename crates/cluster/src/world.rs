//! The one writer of an [`Index`]: takes the events of all watches one by one and keeps the index up to them.

use std::sync::Arc;

use crate::index::Index;
use crate::kinds::{NamespaceKept, PodKept, ServiceKept, SliceKept, Writer};
use crate::object::Event;
use crate::records::{Records, Reduce};
use crate::{Kind, Spec};

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
}

struct Watched {
    records: Box<dyn Reduce>,
    listed: bool,
}

impl World {
    /// A world of which nothing is known yet, and the index that it will keep.
    #[must_use]
    pub fn new(spec: &Spec) -> (World, Arc<Index>) {
        let index = Arc::new(Index::new());
        let watches =
            spec.watches.iter().map(|watch| Watched { records: records(watch.kind), listed: false }).collect();
        let writer = Writer::new(Arc::clone(&index), spec.endpoint_pod_names);
        let world = World { watches, writer };
        world.note_if_synced();
        (world, index)
    }

    /// Takes what a watch saw, the one at this position of [`Spec::watches`], and tells what it changed. An object of
    /// another kind than that of the watch changes nothing.
    pub fn apply(&mut self, watch: usize, event: &Event<'_>, now_seconds: u32) -> Change {
        let Some(watched) = self.watches.get_mut(watch) else { return Change::Nothing };
        let outcome = watched.records.reduce(event, &mut self.writer);
        if outcome.stamps {
            self.writer.index.stamp(now_seconds);
        }
        if matches!(outcome.change, Change::Listed { .. }) {
            watched.listed = true;
            self.note_if_synced();
        }
        outcome.change
    }

    fn note_if_synced(&self) {
        if self.watches.iter().all(|watched| watched.listed) {
            self.writer.index.set_synced();
        }
    }
}

fn records(kind: Kind) -> Box<dyn Reduce> {
    match kind {
        Kind::Namespace => Box::new(Records::<NamespaceKept>::new()),
        Kind::Service => Box::new(Records::<ServiceKept>::new()),
        Kind::EndpointSlice => Box::new(Records::<SliceKept>::new()),
        Kind::Pod => Box::new(Records::<PodKept>::new()),
    }
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;
