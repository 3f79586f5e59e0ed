//! What the endpoints read of the process.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use config::Directives;
use config::setup::{InspectFiles, Inspection, NamePrivacy, Readiness};
use control::explain::Place;
use metrics::Registry;
use net::{Live, Probes};

use crate::explain::{Bound, Outline};
use process::clusters::Followed;

/// What the endpoints read. The main thread publishes configurations here; the control thread reads.
pub struct View {
    pub(super) registry: Arc<Registry>,
    pub(super) live: Live,
    pub(super) workers: Probes,
    pub(super) clusters: Arc<Followed>,
    /// Directives of this program.
    pub(super) directives: Directives,
    pub(super) started: Instant,
    /// Servers before this one; `None` without a keeper.
    pub(super) earlier: Option<EarlierExits>,
    loaded: ArcSwap<Loaded>,
    refused: Mutex<Option<(Instant, String)>>,
}

/// Exits of the servers before this one, as counted by the keeper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierExits {
    /// Number of restarts since the keeper started.
    pub total: u32,
    /// Number of restarts in the hour before this start.
    pub in_last_hour: u32,
    /// End of the last server, such as `was killed by signal 9 (SIGKILL)`.
    pub reason: String,
}

/// Warning about a line of the Corefile.
#[derive(Clone, Debug)]
pub struct Warning {
    /// Line.
    pub place: Place,
    /// Warning for people.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.place, self.text)
    }
}

/// Files that a directive follows, and its line.
pub type FollowedFiles = (Place, Arc<dyn InspectFiles>);

/// Configuration that serves now.
#[derive(Default)]
pub struct Loaded {
    /// Number of configurations so far, this one included.
    pub generation: u64,
    /// SHA-512 of the configuration.
    pub hash: String,
    /// Time at which it began to serve.
    pub at: Option<Instant>,
    /// Warnings about the Corefile, without those about files that are followed.
    pub warnings: Vec<Warning>,
    /// Files that are followed, each with its line.
    pub followed: Vec<FollowedFiles>,
    /// Files of the Corefile, each with its name and its text without secrets.
    pub files: Vec<(String, String)>,
    /// Plugins that are not ready yet.
    pub readiness: Arc<Readiness>,
    /// What the plugins show.
    pub inspection: Inspection,
    /// Places of the server blocks.
    pub outline: Outline,
    /// Addresses that the listeners are bound to.
    pub bound: Bound,
    /// How names that clients ask for are shown.
    pub names: NamePrivacy,
}

impl Loaded {
    /// Returns the warnings that hold now.
    pub(crate) fn current_warnings(&self) -> Vec<Warning> {
        let of_files = self
            .followed
            .iter()
            .flat_map(|(place, files)| files.problems().into_iter().map(|text| Warning { place: place.clone(), text }));
        self.warnings.iter().cloned().chain(of_files).collect()
    }
}

impl View {
    /// Creates the view of a process that has not published a configuration yet.
    pub fn new(
        registry: &Arc<Registry>,
        live: &Live,
        workers: Probes,
        clusters: Arc<Followed>,
        directives: Directives,
        earlier: Option<EarlierExits>,
    ) -> View {
        View {
            registry: Arc::clone(registry),
            live: Arc::clone(live),
            workers,
            clusters,
            directives,
            earlier,
            started: Instant::now(),
            loaded: ArcSwap::default(),
            refused: Mutex::default(),
        }
    }

    /// Publishes the configuration that serves now.
    pub fn publish(&self, loaded: Loaded) {
        self.loaded.store(Arc::new(loaded));
        *self.refusal() = None;
    }

    /// Records that a newer configuration could not be loaded.
    pub fn refuse(&self, error: &str) {
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
