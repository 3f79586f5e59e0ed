//! Restores the state of a [log](crate::snapshot): applies its events to a reducer, and finds the positions of its
//! watches.

use std::collections::BTreeMap;

use crate::snapshot::{Entry, Progress, Record};
use crate::{Reducer, Watch};

/// Watch of an earlier process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resumable {
    /// The watch.
    pub watch: Watch,
    /// Position up to which everything is known. `None` if it has to be listed.
    pub position: Option<String>,
    /// Last position up to which everything was known, also if more is known since then. `None` if none is left.
    pub floor: Option<String>,
}

/// Applies a log to a reducer.
pub struct Restore<'r> {
    reducer: &'r mut Reducer,
    /// Numbers of the watches that the reducer had at the begin. All must have been listed.
    required: Vec<usize>,
    progress: BTreeMap<usize, Progress>,
}

impl<'r> Restore<'r> {
    /// Starts with an empty reducer.
    #[must_use]
    pub fn new(reducer: &'r mut Reducer) -> Restore<'r> {
        let required = reducer.watches().into_iter().map(|(number, _)| number).collect();
        Restore { reducer, required, progress: BTreeMap::new() }
    }

    /// Applies a record. One of a watch that the reducer does not have changes nothing, and neither does one that is
    /// not [preceded by a list](crate::snapshot#begin-of-a-watch).
    pub fn apply(&mut self, record: Record<'_>, now_seconds: u32) {
        let Record::Event { kind, namespace, entry } = record else { return };
        let watch = Watch { kind, namespace: namespace.map(Into::into) };
        let Some(number) = self.number_of(&watch, &entry) else { return };
        if matches!(entry, Entry::Closed) {
            self.progress.remove(&number);
            self.reducer.close(number, now_seconds);
            return;
        }
        self.progress.entry(number).or_default().advance(&entry);
        // A log has the objects that were not current when they came. Their versions may be those of a former history.
        if let Entry::Applied { object, .. } = &entry {
            self.reducer.forget_version(number, object.meta());
        }
        if let Some(event) = entry.into_event() {
            self.reducer.replay(number, &event, now_seconds);
        }
    }

    fn number_of(&mut self, watch: &Watch, entry: &Entry<'_>) -> Option<usize> {
        if matches!(entry, Entry::Listing) {
            return self.reducer.find_or_follow(watch);
        }
        self.reducer.find(watch).filter(|number| self.progress.contains_key(number))
    }

    /// Ends the restoration: the index counts as [remembered](crate::Index::is_remembered) from now on. Returns the
    /// watches that can be resumed.
    ///
    /// Returns `None` if the log ends before the first list of a watch. The reducer must be discarded then: of what it
    /// does not know, nobody can say that it does not exist.
    #[must_use]
    pub fn finish(mut self) -> Option<Vec<Resumable>> {
        let is_complete = |number: &usize| self.progress.get(number).is_some_and(|progress| progress.is_complete);
        if !self.required.iter().all(is_complete) {
            return None;
        }
        self.reducer.remember(self.progress.keys().copied().filter(is_complete));
        let open = self.reducer.watches().into_iter();
        let resumable = open.map(|(number, watch)| {
            let known = self.progress.remove(&number).filter(|progress| progress.is_complete);
            let (position, floor) = known.map_or((None, None), |progress| (progress.position, progress.floor));
            Resumable { watch, floor: position.clone().or(floor), position }
        });
        Some(resumable.collect())
    }
}
