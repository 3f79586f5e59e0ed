//! Building a plugin from its directive: what it may use of the process and of the plugins below, and what it may
//! request.
//!
//! The `build` function of a directive gets a [`Setup`] and returns a [`Part`]: the plugin, its hooks and its zones.
//! During the build it can
//!
//! - read files ([`Setup::files`]) and register metrics ([`Setup::registry`]),
//! - use interfaces that other code offers, found by type ([`Capabilities`]): those of the process, and those of the
//!   directives further down in the same server block, which are built first,
//! - request work from the host process ([`HostRequests`]): HTTP pages, background jobs, watched files, commands, TLS
//!   for a listener,
//! - take over state from the previous generation ([`ReloadState`]), so that a reload keeps caches and connections.
//!
//! The new generation replaces the running one only if the build of every directive succeeds.

mod capabilities;
mod control;
mod file_watch;
mod files;
mod inspection;
mod jobs;
mod memory;
mod own_queries;
mod pages;
mod readiness;
mod reload_state;
mod requests;
mod shadow;

pub use capabilities::{Capabilities, LocalAnswers, LocalZones, StepWrapper};
pub use control::{ControlAddress, ControlListener, ControlRequests, NamePrivacy};
pub use file_watch::{CheckFiles, FileCheck, FileWatch};
pub use files::{FileStamp, Files, LISTED_MAX};
pub use inspection::{
    CacheScope, CachedEntry, CachesAbove, InspectCache, InspectCertificate, InspectCluster, InspectFiles, InspectLoop,
    InspectUpstreams, InspectZone, InspectedPod, InspectedUpstream, Inspection, LoopState, UpstreamHealth,
};
pub use jobs::{GracefulJob, Job, SHUTDOWN_GRACE, Shutdown, ShutdownTrigger};
pub(crate) use memory::MemoryGrowth;
pub use memory::{MemoryGuard, MemoryUse};
pub use own_queries::{OwnQueries, QueryJob};
pub use pages::{MakePage, Page, PageContent};
pub use readiness::Readiness;
pub use reload_state::{Kept, ReloadState};
pub use requests::{Command, HostRequests, LifecycleEvent, ListenerTls, SetupWarning, StartupGate};
pub use shadow::{InspectShadow, InspectedShadow, ShadowAnswer, ShadowCounts, ShadowExample, ShadowGroup};

use core::any::Any;
use core::error::Error;
use core::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;

use wire::Name;

use corefile::Code;
use engine::{ExchangeObservers, Hooks, Labels, Plugin, Refuses, Zones};
use metrics::Registry;

use crate::codes;

// Concepts that the running engine needs too.
pub use crate::block::{BindTarget, BlockInfo, BlockSettings, EncryptionPolicy, ReachableZones, SiteInfo};
pub use engine::BlockFilter;
pub use engine::{
    CallLimits, EncryptionLimits, HttpsSettings, Listening, ProxyHeader, ProxyPolicy, QuicLimits, Timeouts,
};

/// Result of building a directive: a plugin, and where it acts.
pub struct Part {
    /// Plugin.
    pub plugin: Box<dyn Plugin>,
    /// Hooks that the plugin implements.
    pub hooks: Hooks,
    /// Zones in which it acts; `None` for all zones of its block.
    pub zones: Option<Zones>,
    /// Zones in which a name that it denies continues with the next step (`fallthrough`).
    pub fallthrough: Zones,
    /// Queries that are refused if the plugin is the last of its chain and no plugin answers them.
    pub refuses: Refuses,
}

impl Part {
    /// Returns a part that acts in all zones of its block, without `fallthrough`.
    #[must_use]
    pub fn new(plugin: impl Plugin + 'static, hooks: Hooks) -> Part {
        Part { plugin: Box::new(plugin), hooks, zones: None, fallthrough: Zones::default(), refuses: Refuses::Nothing }
    }
}

/// Reason why a directive could not be built, although its syntax is correct: for example, a file is missing.
#[derive(Clone, Debug)]
pub struct SetupError {
    /// Problem, in one line.
    pub message: String,
    /// Remedy.
    pub help: Option<String>,
    /// Cause, if it is an error.
    source: Option<Arc<dyn Error + Send + Sync>>,
    /// The directive whose absence is the cause. If that one failed itself, this error is not reported.
    pub(crate) missing: Option<&'static str>,
}

impl SetupError {
    /// Returns an error without a remedy.
    pub fn new(message: impl Into<String>) -> SetupError {
        SetupError { message: message.into(), help: None, source: None, missing: None }
    }

    /// Returns an error with the text of its cause.
    pub fn from_error(cause: impl Error + Send + Sync + 'static) -> SetupError {
        let message = cause.to_string();
        SetupError { source: Some(Arc::new(cause)), ..SetupError::new(message) }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn with_help(self, help: impl Into<String>) -> SetupError {
        SetupError { help: Some(help.into()), ..self }
    }

    /// Names the directive below whose absence is the cause.
    #[must_use]
    pub fn missing(self, directive: &'static str) -> SetupError {
        SetupError { missing: Some(directive), ..self }
    }
}

impl Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for SetupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Warning of a directive that is being built.
pub(crate) struct Warned {
    /// Index of its line among the directive's lines.
    pub(crate) line: usize,
    pub(crate) code: Code,
    pub(crate) text: String,
    pub(crate) is_followed: bool,
}

/// Context in which a directive is built.
///
/// Directives are built from the bottom of the chain to the top, so a directive finds what those below it offer.
pub struct Setup<'a> {
    /// Server block of the directive.
    pub block: &'a BlockInfo,
    /// Metrics of the process.
    pub registry: &'a Arc<Registry>,
    /// File system.
    pub files: &'a dyn Files,
    /// Interfaces that the process offers.
    pub process: &'a Capabilities,
    /// Words of all server blocks of the Corefile, for a plugin that must know what the directives above it will use.
    pub words: &'a [String],
    /// Interfaces that the directives further down the chain offer.
    pub below: &'a mut Capabilities,
    /// Requests to the host process.
    pub requests: &'a mut HostRequests,
    /// State that survives a reload.
    pub reload_state: &'a mut ReloadState,
    /// The server block and its directive that is being built, by their numbers.
    pub(crate) place: (usize, usize),
    /// The line of the current directive that is being built, by its index among the directive's lines.
    pub(crate) line: usize,
    /// Warnings of the current directive, each with the index of its line.
    pub(crate) warned: Vec<Warned>,
    /// Files that the current directive follows, each with the index of its line.
    pub(crate) followed: Vec<(usize, Arc<dyn InspectFiles>)>,
    /// Errors of the current directive, each with the index of its line.
    pub(crate) failed: Vec<(usize, SetupError)>,
}

impl Setup<'_> {
    /// Returns the zones that a directive names, or those of its block if it names no zones.
    #[must_use]
    pub fn zones_or_keys(&self, named: &[Name]) -> Zones {
        let zones = if named.is_empty() { &self.block.zones } else { named };
        zones.iter().cloned().collect()
    }

    /// Returns the metadata labels of this server block.
    #[must_use]
    pub fn labels(&mut self) -> Arc<Labels> {
        self.common()
    }

    /// Returns the observers of this server block's exchanges with upstreams.
    #[must_use]
    pub fn observers(&mut self) -> Arc<ExchangeObservers> {
        self.common()
    }

    /// Returns an object that the directives of this server block share. The first call creates it.
    fn common<T: Any + Default>(&mut self) -> Arc<T> {
        let known = self.below.find();
        known.unwrap_or_else(|| {
            let thing = Arc::<T>::default();
            self.below.provide(Arc::clone(&thing));
            thing
        })
    }

    /// Returns an object that survives a reload if `key` is the same, and if everything is unchanged that the answers
    /// from below depend on: directives, files and reachable blocks. `make` creates it otherwise.
    #[must_use]
    pub fn keep<T: Any + Send + Sync>(
        &mut self,
        key: String,
        make: impl FnOnce() -> T + Send + Sync + 'static,
    ) -> Arc<Kept<T>> {
        self.reload_state.keep(key, self.place, make)
    }

    /// Records a warning about a problem that does not prevent the directive from working.
    pub fn warn(&mut self, message: impl Display) {
        self.warn_as(codes::SETUP_WARNED, message);
    }

    /// Records a warning with a code of its own.
    pub fn warn_as(&mut self, code: Code, message: impl Display) {
        let (line, text) = (self.line, message.to_string());
        self.warned.push(Warned { line, code, text, is_followed: false });
    }

    /// Records a warning about files that the directive follows, for the log only. The status has the problems of
    /// [`Setup::follow_files`] instead, which end when the files are repaired.
    pub fn warn_of_followed(&mut self, code: Code, message: impl Display) {
        let (line, text) = (self.line, message.to_string());
        self.warned.push(Warned { line, code, text, is_followed: true });
    }

    /// Offers the present problems of files that the directive follows.
    pub fn follow_files(&mut self, files: Arc<dyn InspectFiles>) {
        self.followed.push((self.line, files));
    }

    /// Builds the lines of a directive one by one. A line that fails does not keep the others from being built, so
    /// that a check can report every error; the configuration as a whole fails.
    pub fn for_each_line<C>(&mut self, lines: Vec<C>, mut build: impl FnMut(C, &mut Self) -> Result<(), SetupError>) {
        for (index, line) in lines.into_iter().enumerate() {
            self.line = index;
            if let Err(error) = build(line, self) {
                self.failed.push((index, error));
            }
        }
        self.line = 0;
    }

    /// Resolves a file name of the Corefile against `root`.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.block.root.join(name)
    }
}
