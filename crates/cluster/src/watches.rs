//! The open watches of a reducer: those in its [`Spec`](crate::Spec) and those opened for single namespaces.

use std::collections::BTreeMap;

use crate::kinds::{ImportState, NamespaceState, NodeState, PodState, ServiceState, SliceState, mesh};
use crate::object::{Event, Object};
use crate::records::{Records, Reduce};
use crate::snapshot::{Entry, Record};
use crate::{Kind, Kinds, Watch};
use host::invariant::{Expected as _, holds};

/// Open watches by number. A number is never reused, so a late event cannot reach another watch.
#[derive(Default)]
pub(crate) struct Watches {
    open: BTreeMap<usize, Watched>,
    /// Numbers of the open watches.
    by_watch: BTreeMap<Watch, usize>,
    next: usize,
}

/// A watch and the records of its objects.
pub(crate) struct Watched {
    pub(crate) watch: Watch,
    pub(crate) records: Box<dyn Reduce>,
    /// True once the initial list has completed.
    pub(crate) listed: bool,
    /// True if a snapshot has a complete list.
    pub(crate) remembered: bool,
}

impl Watched {
    /// Returns the record of an event for a log. Of an object in the version that is known (`is_current`), it has the
    /// names only.
    pub(crate) fn record<'a>(
        &'a self,
        event: &'a Event<'a>,
        is_current: bool,
        position: Option<&'a str>,
    ) -> Option<Record<'a, &'a Object<'a>>> {
        Some(Record::of(&self.watch, Entry::of(event, is_current, position)?))
    }
}

impl Watches {
    pub(crate) fn open(&mut self, watch: Watch) -> usize {
        let (number, records) = (self.next, records(watch.kind));
        // Of two equal watches, the first one is found.
        self.by_watch.entry(watch.clone()).or_insert(number);
        let former = self.open.insert(number, Watched { watch, records, listed: false, remembered: false });
        holds(former.is_none(), "the number of a watch is used once");
        self.next += 1;
        number
    }

    pub(crate) fn close(&mut self, number: usize) -> Option<Watch> {
        self.remove(number).map(|watched| watched.watch)
    }

    fn remove(&mut self, number: usize) -> Option<Watched> {
        let watched = self.open.remove(&number)?;
        if self.find(&watched.watch) == Some(number) {
            self.by_watch.remove(&watched.watch);
        }
        Some(watched)
    }

    pub(crate) fn get(&self, number: usize) -> Option<&Watched> {
        self.open.get(&number)
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Watched> {
        self.open.get_mut(&number)
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = (usize, &Watched)> {
        self.open.iter().map(|(number, watched)| (*number, watched))
    }

    /// Returns the number of this watch, if it is open.
    pub(crate) fn find(&self, watch: &Watch) -> Option<usize> {
        self.by_watch.get(watch).copied()
    }

    /// Returns the number of the watch of this kind that covers a namespace.
    #[cfg(any(test, feature = "scenario"))]
    pub(crate) fn find_seeing(&self, kind: Kind, namespace: &str) -> Option<usize> {
        let sees = |watch: &Watch| watch.namespace.as_deref().is_none_or(|watched| watched == namespace);
        self.numbers(|watched| watched.watch.kind == kind && sees(&watched.watch)).next()
    }

    /// Returns the kinds with a watch that satisfies `is_meant` and has not been listed.
    pub(crate) fn unlisted(&self, is_meant: impl Fn(&Watch) -> bool) -> Kinds {
        let unlisted = self.open.values().filter(|watched| !watched.listed && is_meant(&watched.watch));
        unlisted.map(|watched| watched.watch.kind).collect()
    }

    /// Closes the watches of the same kind in single namespaces. The watch `into` takes over their records.
    pub(crate) fn absorb(&mut self, into: usize) {
        let Some(mut wide) = self.open.remove(&into).expected("the watch that replaces others") else { return };
        let kind = wide.watch.kind;
        holds(wide.watch.namespace.is_none(), "a watch that replaces others is one of all namespaces");
        let single = |watched: &Watched| watched.watch.kind == kind && watched.watch.namespace.is_some();
        for number in self.numbers(single).collect::<Vec<_>>() {
            if let Some(watched) = self.remove(number).expected("a watch that was just found") {
                wide.records.absorb(watched.records);
            }
        }
        let former = self.open.insert(into, wide);
        holds(former.is_none(), "a watch has a number of its own");
    }

    fn numbers(&self, is_meant: impl Fn(&Watched) -> bool) -> impl Iterator<Item = usize> {
        self.each().filter(move |(_, watched)| is_meant(watched)).map(|(number, _)| number)
    }
}

fn records(kind: Kind) -> Box<dyn Reduce> {
    match kind {
        Kind::Namespace => Box::new(Records::<NamespaceState>::new()),
        Kind::Service => Box::new(Records::<ServiceState>::new()),
        Kind::EndpointSlice | Kind::ImportedSlice => Box::new(Records::<SliceState>::new()),
        Kind::Pod => Box::new(Records::<PodState>::new()),
        Kind::ServiceImport => Box::new(Records::<ImportState>::new()),
        Kind::Node => Box::new(Records::<NodeState>::new()),
        Kind::ServiceEntry => Box::new(Records::<mesh::EntryState>::new()),
        Kind::WorkloadEntry => Box::new(Records::<mesh::WorkloadState>::new()),
        Kind::WorkloadPod => Box::new(Records::<mesh::PodState>::new()),
    }
}
