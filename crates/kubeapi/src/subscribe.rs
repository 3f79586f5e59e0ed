//! Subscriptions: starts the tasks of a request, stops them when the last holder is dropped, and shares them among
//! equal requests.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};

use cluster::{Index, Reducer, Request, Source};
use host::boxed;
use metrics::Registry;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::age::AgeLimit;
use crate::announce::announce;
use crate::follow::Follower;
use crate::health::ViewHealth;
use crate::meter::Meter;
use crate::servers::{self, Servers};
use crate::snapshot::{self, Journal, Restored};
use crate::target::Target;
use crate::watch::{Shared, Sink, Watcher};
use crate::{SetupError, Timing, credentials, on_disk};

/// Part of a cluster that is kept up to date. Its tasks end when the last holder drops it.
pub struct Subscription {
    /// Index from which queries are answered.
    pub index: Arc<Index>,
    /// Request in canonical form.
    pub request: Request,
    /// Health of the watches. Manifests have none.
    pub health: Arc<ViewHealth>,
    /// URL of the API server, or the paths of the manifests.
    pub source: String,
    /// Dropping it closes the channel, which ends the tasks.
    _held: oneshot::Sender<()>,
}

/// Checks a request as far as files allow: a kubeconfig with the files that it names, or manifests. In-cluster
/// configuration is not checked. Returns the mistakes in manifests, each with file and line.
///
/// # Errors
/// A problem that does not go away without a change of configuration.
pub fn check(request: &Request) -> Result<Vec<String>, SetupError> {
    request.relays.iter().try_for_each(servers::check)?;
    match &request.source {
        Source::Manifests(paths) => Ok(on_disk::Manifests::new(paths, request)?.mistakes()),
        Source::InCluster => Ok(Vec::new()),
        Source::Kubeconfig { .. } | Source::Endpoint { .. } => credentials::config(&request.source).map(|_| Vec::new()),
    }
}

/// Creates subscriptions on one thread.
///
/// Equal requests share a subscription while it has a holder. Two stanzas with the same settings thus share their
/// watches, and a reload keeps them if it subscribes before the old configuration is dropped.
pub struct Subscriber {
    meter: Rc<Meter>,
    timing: Rc<Timing>,
    manifest_log: Rc<on_disk::ReportLog>,
    given: RefCell<Vec<Weak<Subscription>>>,
}

impl Subscriber {
    /// Creates a subscriber with the default timing that counts in `registry`.
    #[must_use]
    pub fn new(registry: &Arc<Registry>) -> Subscriber {
        Subscriber::with_timing(registry, Timing::default())
    }

    /// Creates a subscriber with custom timing.
    #[must_use]
    pub fn with_timing(registry: &Arc<Registry>, timing: Timing) -> Subscriber {
        let meter = Rc::new(Meter::new(registry));
        Subscriber { meter, timing: Rc::new(timing), manifest_log: Rc::default(), given: RefCell::default() }
    }

    /// Starts the tasks of a request and returns immediately. The index fills as the source responds.
    ///
    /// # Errors
    /// A problem that does not go away without a change of configuration. An unreachable server is not an
    /// error, because the watches retry.
    ///
    /// # Panics
    /// Outside a [`LocalSet`](tokio::task::LocalSet).
    pub fn subscribe(&self, request: &Request) -> Result<Arc<Subscription>, SetupError> {
        let request = request.canonical();
        self.given.borrow_mut().retain(|given| given.strong_count() > 0);
        let same = |given: &Weak<Subscription>| given.upgrade().filter(|given| given.request == request);
        if let Some(given) = self.given.borrow().iter().find_map(same) {
            return Ok(given);
        }
        let started = match &request.source {
            Source::Manifests(paths) => self.start_manifests(paths, &request)?,
            _ => self.start_watches(&request)?,
        };
        let (held, dropped) = oneshot::channel();
        let Started { index, health, source, tasks } = started;
        tokio::task::spawn_local(boxed(until_dropped(tasks, dropped)));
        let subscription = Arc::new(Subscription { index, request, health, source, _held: held });
        self.given.borrow_mut().push(Arc::downgrade(&subscription));
        Ok(subscription)
    }

    fn start_watches(&self, request: &Request) -> Result<Started, SetupError> {
        let servers = Rc::new(Servers::new(request, &self.timing, &self.meter)?);
        let url = servers.first().url().to_owned();
        let spec = request.watches();
        let health = self.health();
        let journal = request
            .snapshot
            .as_ref()
            .map(|file| Journal::new(file, request, &self.meter, &health, self.timing.snapshot_growth));
        let mut restored = match &request.snapshot {
            Some(file) => Restored::load(file, request, &spec),
            None => Restored::nothing(&spec),
        };
        if let Some(journal) = &journal {
            journal.start(&mut restored);
        }
        let Restored { reducer, index, resumable, .. } = restored;
        let mut shared = Shared::new((reducer, &index), &self.meter, &health, request);
        if let Some(journal) = &journal {
            shared = shared.with_snapshot(journal, resumable);
        }
        let shared = Rc::new(shared);
        let mut tasks = JoinSet::new();
        tasks.spawn_local(boxed(announce(Arc::clone(&index), url.clone())));
        if let Some(journal) = journal {
            let listing = Rc::clone(&shared);
            tasks.spawn_local(boxed(snapshot::keep(journal, self.timing.snapshot, move || listing.list_all())));
        }
        if let Some(stale_after) = request.stale_after {
            let limit = AgeLimit { stale_after, look: self.timing.age, url: url.clone() };
            tasks.spawn_local(boxed(limit.run(Arc::clone(&index), Arc::clone(&shared.health))));
        }
        for (position, watch) in spec.watches.iter().enumerate() {
            let sink = Sink::new(&shared, position, watch);
            let watcher = Watcher::new(&servers, Target::new(watch, request), sink, &self.timing);
            tasks.spawn_local(boxed(watcher.run()));
        }
        if !spec.followed.is_empty() {
            tasks.spawn_local(boxed(Follower::new(&servers, &shared, request, &self.timing).run()));
        }
        Ok(Started { index, health: Arc::clone(&shared.health), source: url, tasks })
    }

    fn start_manifests(&self, paths: &[std::path::PathBuf], request: &Request) -> Result<Started, SetupError> {
        let folder = on_disk::Manifests::new(paths, request)?;
        let spec = request.watches_of_manifests();
        let (reducer, index) = Reducer::new(&spec);
        let shared = Rc::new(Shared::new((reducer, &index), &self.meter, &self.health(), request));
        let sinks: Vec<_> = (0..).zip(&spec.watches).map(|(at, watch)| Sink::new(&shared, at, watch)).collect();
        let mut tasks = JoinSet::new();
        let reporter = on_disk::Reporter::new(&self.manifest_log, &self.meter);
        tasks.spawn_local(boxed(on_disk::run(folder, sinks, reporter, self.timing.poll)));
        let names: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        Ok(Started { index, health: Arc::clone(&shared.health), source: names.join(" "), tasks })
    }

    /// Returns the health of a new subscription, whose age is shown.
    fn health(&self) -> Arc<ViewHealth> {
        let health = Arc::new(ViewHealth::new(self.timing.clock));
        self.meter.measure_age(&health);
        health
    }
}

struct Started {
    index: Arc<Index>,
    health: Arc<ViewHealth>,
    source: String,
    tasks: JoinSet<()>,
}

/// Runs the tasks until the subscription is dropped.
async fn until_dropped(mut tasks: JoinSet<()>, dropped: oneshot::Receiver<()>) {
    // `Err` means that the sender was dropped, which is the signal.
    let _ = dropped.await;
    tasks.abort_all();
}
