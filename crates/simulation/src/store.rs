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

/// Storage, whose history may be compacted and restored.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) version: u64,
    /// Versions before this one are forgotten.
    pub(crate) compacted: u64,
    /// Number of times that the storage was restored from a backup.
    pub(crate) epoch: u64,
    pub(crate) current: [Objects; 3],
    changes: Vec<Stored>,
}

impl Store {
    pub(crate) fn new() -> Store {
        Store { version: FIRST, compacted: FIRST, epoch: 0, current: Default::default(), changes: Vec::new() }
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
        self.version += 1;
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
        for kind in Kind::ALL {
            let objects = self.at(kind, version).into_iter();
            self.current[kind as usize] = objects.map(|(_, object)| (object.key.clone(), object)).collect();
        }
    }
}
