//! What the endpoints read of the process.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use config::setup::{Inspection, NamePrivacy, Readiness};
use control::explain::Place;
use metrics::Registry;
use net::{Live, Probes};

use crate::clusters::Followed;
use crate::explain::{Bound, Outline};

/// What the endpoints read. The main thread publishes configurations here; the control thread reads.
pub(crate) struct View {
    pub(super) registry: Arc<Registry>,
    pub(super) live: Live,
    pub(super) workers: Probes,
    pub(super) clusters: Arc<Followed>,
    pub(super) started: Instant,
    loaded: ArcSwap<Loaded>,
    refused: Mutex<Option<(Instant, String)>>,
}

/// Warning about a line of the Corefile.
#[derive(Clone, Debug)]
pub(crate) struct Warning {
    pub(crate) place: Place,
    pub(crate) text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.text)
    }
}

/// Configuration that serves now.
#[derive(Default)]
pub(crate) struct Loaded {
    /// Number of configurations so far, this one included.
    pub(crate) generation: u64,
    /// SHA-512 of the configuration.
    pub(crate) hash: String,
    pub(crate) at: Option<Instant>,
    pub(crate) warnings: Vec<Warning>,
    /// Files of the Corefile, each with its name and its text without secrets.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) inspection: Inspection,
    pub(crate) outline: Outline,
    /// Addresses that the listeners are bound to.
    pub(crate) bound: Bound,
    /// How names that clients ask for are shown.
    pub(crate) names: NamePrivacy,
}

impl View {
    /// Creates the view of a process that has not published a configuration yet.
    pub(crate) fn new(registry: &Arc<Registry>, live: &Live, workers: Probes, clusters: Arc<Followed>) -> View {
        View {
            registry: Arc::clone(registry),
            live: Arc::clone(live),
            workers,
            clusters,
            started: Instant::now(),
            loaded: ArcSwap::default(),
            refused: Mutex::default(),
        }
    }

    /// Publishes the configuration that serves now.
    pub(crate) fn publish(&self, loaded: Loaded) {
        self.loaded.store(Arc::new(loaded));
        *self.refusal() = None;
    }

    /// Records that a newer configuration could not be loaded.
    pub(crate) fn refuse(&self, error: &str) {
        *self.refusal() = Some((Instant::now(), error.to_owned()));
    }

    /// Returns the configuration that serves now.
    pub(crate) fn loaded(&self) -> Arc<Loaded> {
        self.loaded.load_full()
    }

    /// Returns the age and the error of the last refused configuration, if it was the last one.
    pub(super) fn refused(&self) -> Option<(Duration, String)> {
        self.refusal().as_ref().map(|(at, error)| (at.elapsed(), error.clone()))
    }

    fn refusal(&self) -> MutexGuard<'_, Option<(Instant, String)>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
