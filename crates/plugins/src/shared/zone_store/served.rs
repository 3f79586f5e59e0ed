//! Zones that a generation serves, for the next one. A mistake in the name of a file must not take down a zone that is
//! served: unlike at a start, the configuration before is there to keep.

use std::sync::{Arc, Mutex, PoisonError};

use config::setup::ReloadState;
use wire::NameRef;

use super::{Directory, Held};

const KEY: &str = "served zones";

/// Zones that the directives of one generation serve, each with the name of its directive.
#[derive(Default)]
pub(crate) struct ServedZones(Mutex<Vec<(&'static str, Directory)>>);

impl ServedZones {
    /// Returns the zones from before a reload; empty at a start.
    pub(crate) fn before(reload_state: &mut ReloadState) -> Arc<ServedZones> {
        reload_state.successive(KEY.to_owned()).0.unwrap_or_default()
    }

    /// Adds the zones of a directive to those of this generation.
    pub(super) fn add(directive: &'static str, zones: &Directory, reload_state: &mut ReloadState) {
        let now = reload_state.successive::<ServedZones>(KEY.to_owned()).1;
        now.0.lock().unwrap_or_else(PoisonError::into_inner).push((directive, Arc::clone(zones)));
    }

    /// Returns true if a zone was served, whatever its source was.
    pub(crate) fn contain(&self, origin: NameRef<'_>) -> bool {
        self.any(|_, held| held.origin.as_ref() == origin)
    }

    /// Returns true if a zone was served for which a condition holds.
    pub(crate) fn any(&self, is_wanted: impl Fn(&'static str, &Held) -> bool) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|(directive, zones)| {
            zones.load().iter().any(|(_, held)| held.zone().is_some() && is_wanted(directive, held))
        })
    }
}
