//! Running server with its current configuration: startup, reload and shutdown.
//!
//! A configuration becomes a generation, which the workers read through an atomically swapped pointer. A reload builds
//! the next generation completely before it replaces the current one, so a failed reload changes nothing.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use aws_lc_rs::digest::{SHA512, digest};
use config::setup::{
    Capabilities, Command, Inspection, LifecycleEvent, MemoryGuard, NamePrivacy, Readiness, ReloadState, SetupWarning,
};
use config::{BuildContext, Built, Directives, PlannedListener};
use corefile::{Span, Style};
use engine::log::Level;
use engine::{Io, Scheme};
use metrics::{Kind, Metric, Registry};
use net::{Live, TokioIo, WorkerLimits, Workers};
use tokio::sync::mpsc::Receiver;

use crate::admin::{Admin, IfTaken};
use crate::jobs::Jobs;
use crate::lifecycle::{LifecycleHooks, ShutdownKind};
use crate::own_queries::SelfClient;
use crate::serve_error::ServeError;
use crate::{hook_commands, process_limits, sockets};
use inspect::explain::{Bound, Outline, place};
use inspect::{Control, ControlCommand, FollowedFiles, Loaded, View, Warning, without_secrets};
use process::configuration::{self, Configuration, Origin, Surroundings};
use process::files::Disk;
use process::secrets::Secrets;
use process::version::COMMIT;
use process::{cgroup, internal_errors, limit_hits, log, process_metrics, startup_gates};

static BUILD_INFO: Metric = Metric {
    name: "coredns_build_info",
    help: "A metric with a constant '1' value labeled by version, revision, and goversion from which the server was \
           built.",
    kind: Kind::Gauge,
    labels: &["version", "revision", "goversion"],
};

/// Metrics of the build, for the documentation.
pub static BUILD_METRICS: [&Metric; 1] = [&BUILD_INFO];

/// Running server.
pub(crate) struct Instance {
    origin: Origin,
    port: u16,
    registry: Arc<Registry>,
    hooks: Rc<dyn LifecycleHooks>,
    process: Capabilities,
    io: Rc<dyn Io>,
    live: Live,
    workers: Workers,
    admin: Admin,
    /// Background jobs of the current generation.
    jobs: Jobs,
    reload_state: ReloadState,
    listeners: Vec<PlannedListener>,
    bound: Bound,
    fingerprint: String,
    /// Number of configurations so far.
    generation: u64,
    control: Control,
    control_commands: Option<Receiver<ControlCommand>>,
    /// Last rejected configuration: the error if it could not be read, or the fingerprint if it could not be built.
    refused: Option<String>,
    /// Time to continue serving after the shutdown begins.
    pub(crate) lameduck: Duration,
    /// Interval between checks for a new Corefile, and its jitter.
    pub(crate) reload_every: Option<(Duration, Duration)>,
    readiness: Arc<Readiness>,
    /// Programs to run at startup and shutdown.
    commands: Vec<Command>,
}

impl Instance {
    /// Reads the Corefile and serves it with `workers` worker threads.
    ///
    /// # Errors
    /// Fails if the Corefile is invalid or an address could not be bound.
    pub(crate) fn start(
        origin: Origin,
        port: u16,
        workers: usize,
        process: Capabilities,
        registry: &Arc<Registry>,
        hooks: &Rc<dyn LifecycleHooks>,
    ) -> Result<Instance, ServeError> {
        registry.gauge(&BUILD_INFO, &[process::version::VERSION, COMMIT, ""], || Some(1.0));
        process_metrics::publish(registry);
        internal_errors::publish(registry);
        // Alerts on an increase need the counter to exist with the value 0.
        registry.counter(&plugins::RELOAD_FAILED, &[]);
        limit_hits::count_in(registry);
        let configuration = read(&origin, port, &process)?;
        log_warnings(&configuration);
        let (mut built, written) = build(configuration, registry, &process, ReloadState::default())?;
        let admin = Admin::new(registry);
        let prepared = admin.prepare(&built.requests.pages, IfTaken::TryAgain)?;
        let sockets = sockets::open(built.listeners.iter(), workers, &**hooks, true)?;
        let io: Rc<dyn Io> = Rc::new(TokioIo::new(registry));
        let live: Live = Arc::new(ArcSwap::from_pointee(built.generation));
        let limits = WorkerLimits { cpu: cgroup::cpu_quota(), ..WorkerLimits::within(cgroup::memory_limit()) };
        let workers = Workers::start(workers, &live, registry, limits)?;
        let (control, control_commands) = Control::start(
            View::new(
                registry,
                &live,
                workers.probes(),
                process.find().unwrap_or_default(),
                directives_of(&process),
                process.find(),
            ),
            workers.taps(),
        )?;
        let mut instance = Instance {
            origin,
            port,
            registry: Arc::clone(registry),
            hooks: Rc::clone(hooks),
            process,
            io,
            live,
            workers,
            admin,
            jobs: Jobs::default(),
            reload_state: built.reload_state,
            listeners: built.listeners,
            bound: Bound::new(),
            fingerprint: String::new(),
            generation: 0,
            control,
            control_commands: Some(control_commands),
            refused: None,
            lameduck: Duration::ZERO,
            reload_every: None,
            readiness: Arc::default(),
            commands: Vec::new(),
        };
        process_limits::check_threads()?;
        instance.announce(&sockets);
        instance.hooks.serves_next();
        instance.serve(sockets);
        // At startup, serving does not wait for these conditions. The job logs those that are not met in time.
        let startup_gates = core::mem::take(&mut built.requests.startup_gates);
        built.requests.jobs.push(Box::new(|_| Box::pin(startup_gates::wait(startup_gates))));
        instance.start_jobs(built.requests, prepared, written);
        Ok(instance)
    }

    /// Reads the Corefile again and applies it if its fingerprint changed, or unconditionally if `anyway`. Returns true
    /// if it was applied.
    ///
    /// An error leaves the current configuration unchanged, and so does dropping the future before it completes. Unless
    /// `anyway`, a rejected configuration is not tried again until it changes, so that its error is logged only once.
    ///
    /// # Errors
    /// Fails if the new configuration is invalid or an address could not be bound.
    pub(crate) async fn reload(&mut self, anyway: bool) -> Result<bool, ServeError> {
        let (found, configuration) = match read(&self.origin, self.port, &self.process) {
            Ok(configuration) => (configuration.fingerprint.clone(), Ok(configuration)),
            Err(error) => (error.to_string(), Err(error)),
        };
        if !anyway && (found == self.fingerprint || self.refused.as_ref() == Some(&found)) {
            self.refused = self.refused.take().filter(|refused| *refused == found);
            return Ok(false);
        }
        self.refused = Some(found);
        tracing::info!(target: "portolan", "Reloading");
        let taken = self.replace(configuration?).await;
        if taken.is_ok() {
            self.refused = None;
        }
        taken.map(|()| true)
    }

    /// Builds a configuration and replaces the current one with it.
    async fn replace(&mut self, configuration: Configuration) -> Result<(), ServeError> {
        log_warnings(&configuration);
        let (mut built, written) = build(configuration, &self.registry, &self.process, self.reload_state.next())?;
        // Waits before it opens any socket: until a new socket is read, the kernel could already route queries to it.
        let startup_gates = core::mem::take(&mut built.requests.startup_gates);
        startup_gates::announce(&startup_gates);
        startup_gates::wait(startup_gates).await;
        let is_new =
            |listener: &&PlannedListener| !self.listeners.iter().any(|known| known.label() == listener.label());
        let sockets = sockets::open(built.listeners.iter().filter(is_new), self.workers.count(), &*self.hooks, false)?;
        let prepared = self.admin.prepare(&built.requests.pages, IfTaken::Fail)?;

        self.live.store(Arc::new(built.generation));
        self.announce(&sockets);
        self.serve(sockets);
        for gone in &self.listeners {
            if !built.listeners.iter().any(|kept| kept.label() == gone.label()) {
                self.workers.close(&gone.label());
                self.bound.remove(&gone.label());
                self.hooks.closed(&gone.label());
            }
        }
        self.workers.load_generation();
        self.listeners = built.listeners;
        self.reload_state = built.reload_state;
        self.start_jobs(built.requests, prepared, written);
        Ok(())
    }

    /// Shows the hooks the sockets that are served next. Must come after the last step that can fail, because the hooks
    /// keep a copy of them.
    fn announce(&self, sockets: &[net::Opened]) {
        sockets.iter().for_each(|opened| self.hooks.opened(opened));
    }

    /// Passes sockets to the workers.
    fn serve(&mut self, sockets: Vec<net::Opened>) {
        for opened in sockets {
            self.bound.insert(opened.label.clone(), opened.bound);
            self.workers.serve(opened);
        }
    }

    /// Starts the jobs, pages and commands of the generation that serves now. It returns no error: the generation
    /// serves already, so an error here would report a successful reload as failed.
    fn start_jobs(
        &mut self,
        mut requests: config::setup::HostRequests,
        prepared: crate::admin::Prepared,
        written: Written,
    ) {
        log::levels::set_usual(if requests.panics_end { Level::Debug } else { Level::Info });
        self.hooks.crashes_wanted(requests.panics_end);
        self.lameduck = requests.lameduck;
        self.reload_every = requests.reload;
        self.readiness = Arc::clone(&requests.readiness);
        self.commands = core::mem::take(&mut requests.commands);
        for SetupWarning { notice, .. } in &requests.warnings {
            log::report(notice.level, notice.source(), format_args!("{}", notice.message));
        }
        let cpu_limit = self.workers.cpu_limit();
        requests.jobs.push(Box::new(move |_| Box::pin(cgroup::follow_cpu_limit(cpu_limit))));
        let own = SelfClient::new(&self.live, &self.registry, &self.io);
        self.jobs = Jobs::start(&mut requests, &self.io, &own);
        self.control.listen(requests.control.addresses());
        self.publish(written, requests.inspection, requests.control.names);
        self.admin.serve(prepared, requests.pages);
        hook_commands::run(&self.commands, LifecycleEvent::Start);
    }

    /// Publishes the configuration that serves now on the control socket. If *reload* is in use, publishes its hash as
    /// a metric and in the log too.
    fn publish(&mut self, written: Written, inspection: Inspection, names: NamePrivacy) {
        let hash: String =
            digest(&SHA512, written.fingerprint.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        self.fingerprint = written.fingerprint;
        self.generation += 1;
        self.control.view().publish(Loaded {
            generation: self.generation,
            hash: hash.clone(),
            at: Some(std::time::Instant::now()),
            warnings: written.warnings,
            followed: written.followed,
            files: written.files,
            readiness: Arc::clone(&self.readiness),
            inspection,
            outline: written.outline,
            bound: self.bound.clone(),
            names,
        });
        if self.reload_every.is_some() {
            tracing::info!(target: "plugin/reload", "Running configuration SHA512 = {hash}");
            self.registry.forget_gauges(&plugins::RELOAD_VERSION);
            self.registry.gauge(&plugins::RELOAD_VERSION, &["sha512", &hash], || Some(1.0));
        }
    }

    /// Returns the commands that arrive over the control socket; `None` if they were taken before.
    pub(crate) fn take_control_commands(&mut self) -> Option<Receiver<ControlCommand>> {
        self.control_commands.take()
    }

    /// Counts a reload that failed.
    pub(crate) fn count_failed_reload(&self, error: &str) {
        self.control.view().refuse(error);
        self.io.counters().count(self.registry.counter(&plugins::RELOAD_FAILED, &[]));
    }

    /// Returns the lines of the startup banner: one per zone and address.
    pub(crate) fn banner(&self) -> Vec<String> {
        let mut lines: Vec<String> = self
            .listeners
            .iter()
            .flat_map(|listener| {
                let on = listener.ip.map_or(String::new(), |ip| format!(" on {ip}"));
                let scheme = match listener.scheme {
                    Scheme::Dns => String::new(),
                    scheme => format!("{}://", scheme.name()),
                };
                listener.zones.iter().map(move |(zone, _)| format!("{scheme}{zone}:{}{on}", listener.port))
            })
            .collect();
        host::sorting::sort_by(&mut lines, Ord::cmp);
        // Server blocks with views may serve the same zone.
        lines.dedup();
        lines
    }

    /// Returns a handle to check if the workers respond.
    pub(crate) fn probes(&self) -> net::Probes {
        self.workers.probes()
    }

    /// Reports the server as not ready, because the shutdown begins. Serving continues.
    pub(crate) fn begin_end(&self) {
        self.readiness.end();
    }

    /// Answers the pending queries, waits for the jobs to finish and runs the shutdown commands.
    pub(crate) async fn end(self, kind: ShutdownKind) {
        match kind {
            ShutdownKind::Drain => self.workers.drain(),
            ShutdownKind::Leave => self.workers.leave(),
        }
        self.jobs.end().await;
        hook_commands::run(&self.commands, LifecycleEvent::End);
    }
}

/// What is published of a configuration as it was written.
struct Written {
    fingerprint: String,
    warnings: Vec<Warning>,
    /// Files that directives follow.
    followed: Vec<FollowedFiles>,
    /// Files without secrets.
    files: Vec<(String, String)>,
    outline: Outline,
}

impl Written {
    fn of(configuration: Configuration, built: &Built) -> Written {
        let Configuration { fingerprint, problems, written, .. } = configuration;
        let warning = |span: Span, text: &str| Warning { place: place(&written.sources, span), text: text.to_owned() };
        let found = problems.iter().map(|problem| warning(problem.span, &problem.message));
        let lasting = built.requests.warnings.iter().filter(|warning| !warning.is_followed);
        let during_setup = lasting.map(|setup| warning(setup.span, &setup.notice.message));
        let followed = built.requests.inspection.files.iter();
        let followed = followed.map(|(span, files)| (place(&written.sources, *span), Arc::clone(files)));
        Written {
            warnings: found.chain(during_setup).collect(),
            followed: followed.collect(),
            files: without_secrets(&written),
            outline: Outline::new(&built.outlines, &written.sources),
            fingerprint,
        }
    }
}

/// Returns the directives that the process offers.
fn directives_of(process: &Capabilities) -> Directives {
    process.find().unwrap_or(Directives::new(&[]))
}

fn read(origin: &Origin, port: u16, process: &Capabilities) -> Result<Configuration, ServeError> {
    let memory: Option<MemoryGuard> = process.find();
    let around = Surroundings { port, directives: directives_of(process), memory: memory.as_ref() };
    let read = Configuration::read_within(origin, &around);
    let configuration = read.map_err(|error| ServeError::Load(origin.name(), error))?;
    if configuration.plan.is_none() {
        return Err(ServeError::Corefile(configuration.render_problems(Style::Plain)));
    }
    // CoreDNS serves the built-in Corefile then, and no longer reads the file: an empty one is often a file that is
    // being replaced.
    if configuration.written.blocks.is_empty() {
        return Err(ServeError::NoServerBlock(origin.name()));
    }
    Ok(configuration)
}

fn log_warnings(configuration: &Configuration) {
    for problem in &configuration.problems {
        let place = configuration.written.sources.place(problem.span);
        tracing::warn!(target: "portolan", "{place}: {} [{}]", problem.message, problem.code);
    }
}

fn build(
    mut configuration: Configuration,
    registry: &Arc<Registry>,
    process: &Capabilities,
    reload_state: ReloadState,
) -> Result<(Built, Written), ServeError> {
    let plan = configuration.plan.take().ok_or_else(|| ServeError::Corefile("the Corefile has errors".to_owned()))?;
    let context = BuildContext { registry, files: &Disk, process, reload_state };
    let secrets = Secrets::of(&configuration.written);
    let mut built = plan.build(context).map_err(|mut problems| {
        configuration::sort(&mut problems);
        ServeError::Corefile(secrets.render(&problems, Style::Plain))
    })?;
    for SetupWarning { notice, span, .. } in &mut built.requests.warnings {
        notice.message = secrets.masked_text(*span, &notice.message);
    }
    let written = Written::of(configuration, &built);
    Ok((built, written))
}
