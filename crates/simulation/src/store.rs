//! Storage of the simulated API server: all changes with their versions, as etcd keeps them.

use std::sync::Arc;

use crate::objects::{self, Kind, Object, Objects};

/// Change with its version.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) version: u64,
    pub(crate) kind: Kind,
    pub(crate) object: Arc<Object>,
    pub(crate) is_deletion: bool,
    pub(crate) is_creation: bool,
}

/// Version before the first change. Those of a real cluster do not begin at one either.
const FIRST: u64 = 98;
/// Versions from one change to the next in the first history.
const STEP: u64 = 1 << 54;
/// Factor by which the step is smaller in each further history: more than the number of changes in a run.
const STEP_DIVISOR: u64 = 1 << 7;

/// Storage, whose history may be compacted and restored.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) version: u64,
    /// Versions before this one are forgotten.
    pub(crate) compacted: u64,
    /// Number of times that the storage was restored from a backup.
    pub(crate) epoch: u64,
    pub(crate) current: [Objects; 3],
    /// Versions from one change to the next. A backup is hours old, so that a server asks before the storage has the
    /// version again that it knew: one that asks later cannot tell the two histories apart, nor can it tell two objects
    /// apart that have the same version in them.
    step: u64,
    changes: Vec<Stored>,
}

impl Store {
    pub(crate) fn new() -> Store {
        Store {
            version: FIRST,
            compacted: FIRST,
            epoch: 0,
            current: Default::default(),
            step: STEP,
            changes: Vec::new(),
        }
    }

    /// Stores a change. A deletion of what does not exist changes nothing.
    pub(crate) fn apply(&mut self, change: objects::Change) {
        let objects::Change { kind, key, object } = change;
        let objects = &mut self.current[kind as usize];
        let (object, is_deletion, is_creation) = match object {
            None => match objects.remove(&key) {
                Some(known) => (known, true, false),
                None => return,
            },
            Some(object) => {
                let object = Arc::new(object);
                let known = objects.insert(key, Arc::clone(&object));
                (object, false, known.is_none())
            }
        };
        self.version += self.step;
        self.changes.push(Stored { version: self.version, kind, object, is_deletion, is_creation });
    }

    /// Returns the changes of a kind after a version, up to another one.
    pub(crate) fn between(&self, kind: Kind, after: u64, until: u64) -> impl Iterator<Item = &Stored> {
        let begin = self.changes.partition_point(|change| change.version <= after);
        let changes = self.changes[begin..].iter().take_while(move |change| change.version <= until);
        changes.filter(move |change| change.kind == kind)
    }

    /// Returns the objects of a kind at a version, each with the version of its last change.
    pub(crate) fn at(&self, kind: Kind, version: u64) -> Vec<(u64, Arc<Object>)> {
        let mut objects = std::collections::BTreeMap::new();
        for change in self.between(kind, 0, version) {
            match change.is_deletion {
                true => drop(objects.remove(&change.object.key)),
                false => drop(objects.insert(&change.object.key, (change.version, Arc::clone(&change.object)))),
            }
        }
        objects.into_values().collect()
    }

    /// Returns the version before the last `number` changes.
    pub(crate) fn ago(&self, number: usize) -> u64 {
        let last = self.changes.len().checked_sub(number + 1).and_then(|at| self.changes.get(at));
        last.map_or(FIRST, |change| change.version)
    }

    /// Forgets the history before a version.
    pub(crate) fn compact(&mut self, version: u64) {
        self.compacted = self.compacted.max(version.min(self.version));
    }

    /// Restores a backup of this version.
    pub(crate) fn restore(&mut self, version: u64) {
        let version = version.max(FIRST);
        self.changes.retain(|change| change.version <= version);
        (self.version, self.compacted) = (version, self.compacted.min(version));
        self.epoch += 1;
        self.step = (self.step / STEP_DIVISOR).max(1);
        for kind in Kind::ALL {
            let objects = self.at(kind, version).into_iter();
            self.current[kind as usize] = objects.map(|(_, object)| (object.key.clone(), object)).collect();
        }
    }
}
