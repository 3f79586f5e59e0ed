//! Objects that the API server has delivered: the expected view of the server under test.

use std::collections::BTreeSet;
use std::sync::Arc;

use specification::cluster::Cluster;

use crate::objects::{self, Key, Kind, Object, Objects};

/// Effect of bytes that were delivered.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// Object of a list, or in its current state.
    Applied(Arc<Object>),
    Deleted(Key),
    /// Everything up to this version was delivered.
    Position(u64),
    /// End of a list of this version, with its objects.
    Listed(u64, u64, BTreeSet<Key>),
}

/// Delivered objects of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mirror {
    pub(crate) objects: Objects,
    pub(crate) is_listed: bool,
    /// True from the begin of a list to its end: objects that were deleted may still be there.
    pub(crate) is_listing: bool,
    pub(crate) version: u64,
    pub(crate) epoch: u64,
}

impl Mirror {
    /// Applies what was delivered.
    ///
    /// # Errors
    /// The server asked for what is older than what it knows.
    pub(crate) fn apply(&mut self, effect: Effect) -> Result<(), String> {
        match effect {
            Effect::Applied(object) => drop(self.objects.insert(object.key.clone(), object)),
            Effect::Deleted(key) => drop(self.objects.remove(&key)),
            Effect::Position(version) if version < self.version => {
                return Err(format!("an event of {version} after one of {}", self.version));
            }
            Effect::Position(version) => self.version = version,
            Effect::Listed(version, epoch, keys) => {
                if self.is_listed && version < self.version && epoch == self.epoch {
                    return Err(format!("a list of {version} after a view of {}", self.version));
                }
                self.objects.retain(|key, _| keys.contains(key));
                (self.is_listed, self.is_listing) = (true, false);
                (self.version, self.epoch) = (version, epoch);
            }
        }
        Ok(())
    }
}

/// Delivered objects of all kinds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mirrors(pub(crate) [Mirror; 3]);

impl Mirrors {
    /// Returns the cluster that was delivered.
    pub(crate) fn cluster(&self) -> Cluster {
        objects::cluster(self.objects())
    }

    /// Returns the objects that were delivered.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &Object> + Clone {
        self.0.iter().flat_map(|mirror| mirror.objects.values().map(|object| &**object))
    }

    /// Returns true if each kind has been listed.
    pub(crate) fn is_listed(&self) -> bool {
        self.0.iter().all(|mirror| mirror.is_listed)
    }

    /// Returns true while a list is on its way.
    pub(crate) fn is_listing(&self) -> bool {
        self.0.iter().any(|mirror| mirror.is_listing)
    }

    pub(crate) fn of(&mut self, kind: Kind) -> &mut Mirror {
        &mut self.0[kind as usize]
    }
}
