//! Main loop of the server: startup, signals, reloads and shutdown.
#![allow(clippy::print_stderr, reason = "a command prints to its user")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::Directives;
use engine::log::{Level, Source};
use metrics::Registry;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use crate::instance::Instance;
use crate::kept::{Keeper, KeptHooks};
use crate::lifecycle::{LifecycleHooks, NoHooks, ShutdownKind};
use crate::privileges::raise_bind_capability;
use crate::process_limits;
use crate::serve_error::ServeError;
use inspect::ControlCommand;
use keeper::Record;
use process::capabilities::capabilities;
use process::configuration::Origin;
use process::log::{self, Format};
use process::version::version_text;

/// Exit code after a second SIGINT during the shutdown, as in CoreDNS.
const INTERRUPTED_TWICE: u8 = 2;

/// Log message for SIGUSR2, on which CoreDNS starts a new process from its binary and hands its sockets over.
const UPGRADE_IGNORED: &str = "SIGUSR2 is ignored: this server does not replace its own binary. Start the new process \
                               with the same Corefile while this one runs (they can share their ports), then stop \
                               this one with SIGTERM";

/// Options of the server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Path of the Corefile; `stdin` for standard input.
    pub conf: Option<PathBuf>,
    /// Port for server blocks without one.
    pub port: u16,
    /// File for the process ID.
    pub pidfile: Option<PathBuf>,
    /// True to print no banner at startup.
    pub quiet: bool,
    /// Log format.
    pub log_format: Format,
    /// Directives of this program.
    pub directives: Directives,
}

/// Serves until a signal ends the process. Returns a failure if the server cannot start.
#[must_use]
pub fn run(options: &ServeOptions) -> ExitCode {
    block_on(options.log_format, async {
        let signals = ShutdownSignals::new()?;
        let origin = Origin::find(options.conf.as_deref())?;
        serve(options, origin, &Registry::new(), None, Rc::new(NoHooks), signals).await
    })
}

/// Runs a server on this thread and prints the error if it fails.
pub fn block_on(format: Format, serving: impl Future<Output = Result<ExitCode, ServeError>>) -> ExitCode {
    raise_bind_capability();
    log::start(format);
    net::raise_descriptor_limit();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let _file_size = {
        let _inside = runtime.enter();
        process_limits::survive_file_size_limit()
    };
    let outcome = LocalSet::new().block_on(&runtime, serving);
    // Blocking threads that still read a file or look up a name may never finish, so do not wait for them.
    runtime.shutdown_background();
    log::finish();
    match outcome {
        Ok(code) => code,
        Err(error) => {
            let mut text = error.without_secrets();
            if let Some(advice) = process_limits::advice(&error, workers()) {
                text.push('\n');
                text.push_str(&advice);
            }
            eprintln!("{}", log::fatal(format, &text));
            ExitCode::FAILURE
        }
    }
}

/// Number of worker threads.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(net::WORKERS_MAX)
}

/// Serves the Corefile of an origin until a signal ends the process. `changes` reports that the Corefile has changed,
/// or, with `true`, that something it names has changed, which forces a reload.
pub async fn serve(
    options: &ServeOptions,
    origin: Origin,
    registry: &Arc<Registry>,
    changes: Option<Receiver<bool>>,
    hooks: Rc<dyn LifecycleHooks>,
    shutdown: ShutdownSignals,
) -> Result<ExitCode, ServeError> {
    let mut signals = Signals::new(shutdown, changes)?;
    let keeper = Keeper::connect().map(Rc::new);
    let hooks = match &keeper {
        Some(keeper) => {
            keeper.tell(&Record::LogFormat { is_json: options.log_format == Format::Json }, &[]);
            Rc::new(KeptHooks { inner: hooks, keeper: Rc::clone(keeper) })
        }
        None => hooks,
    };
    log::publish(registry);
    let mut process = capabilities(registry);
    process.provide(options.directives);
    if let Some(keeper) = &keeper {
        keeper.publish(registry);
        process.provide(keeper.exits.clone());
    }
    process.provide(plugins::QueryFields(options.log_format == Format::Json));
    let mut instance = Instance::start(origin, options.port, workers(), process, registry, &hooks)?;
    signals.commands = instance.take_control_commands();
    let _pidfile = options.pidfile.as_deref().and_then(Pidfile::write);
    if !options.quiet {
        instance.banner().iter().for_each(|line| log::report(Level::Info, Source::Banner, format_args!("{line}")));
        version_text().lines().for_each(|line| log::report(Level::Info, Source::Banner, format_args!("{line}")));
    }
    hooks.started();
    keeper.iter().for_each(|keeper| keeper.start_beats(&instance.probes()));
    let exit_now = run_until_shutdown(&mut instance, &mut signals).await;
    instance.begin_end();
    keeper.iter().for_each(|keeper| keeper.end());
    let exit_now = match (exit_now, hooks.shutdown_kind()) {
        (None, ShutdownKind::Drain) => serve_lameduck(&instance, &mut signals).await,
        (exit_now, _) => exit_now,
    };
    match exit_now {
        Some(code) => Ok(code),
        None => {
            instance.end(hooks.shutdown_kind()).await;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Reloads on signals and on changes of the files, until the shutdown begins. Returns an exit code if the process must
/// exit immediately.
async fn run_until_shutdown(instance: &mut Instance, signals: &mut Signals) -> Option<ExitCode> {
    loop {
        let next_check = instance.reload_every.map(|(interval, jitter)| with_jitter(interval, jitter));
        let event = signals.next(next_check).await;
        let shutdown = match event {
            Event::Shutdown | Event::ExitNow(_) => Some(event),
            Event::Reload => {
                tracing::info!(target: "portolan", "SIGUSR1: Reloading");
                signals.shutdown.or_shutdown(reload(instance, true, None)).await
            }
            Event::Command(ControlCommand::Reload(outcome)) => {
                tracing::info!(target: "portolan", "Control socket: Reloading");
                signals.shutdown.or_shutdown(reload(instance, true, Some(outcome))).await
            }
            Event::CheckFiles => signals.shutdown.or_shutdown(reload(instance, false, None)).await,
            Event::InputChanged => signals.shutdown.or_shutdown(reload(instance, true, None)).await,
        };
        match shutdown {
            Some(Event::ExitNow(code)) => return Some(code),
            Some(_) => return None,
            None => {}
        }
    }
}

/// Reloads the Corefile, and tells `asked` about the error or the success.
async fn reload(instance: &mut Instance, anyway: bool, asked: Option<oneshot::Sender<Option<String>>>) {
    let error = match instance.reload(anyway).await {
        Ok(applied) => {
            if applied {
                tracing::info!(target: "portolan", "Reloading complete");
            }
            None
        }
        Err(error) => {
            let error = error.without_secrets();
            instance.count_failed_reload(&error);
            tracing::error!(target: "portolan", "Restart failed: {error}");
            Some(error)
        }
    };
    if let Some(asked) = asked {
        // Nobody waits any more if the client is gone.
        let _ = asked.send(error);
    }
}

/// Continues to serve for the lameduck time of *health*. Returns an exit code if the process must exit immediately.
async fn serve_lameduck(instance: &Instance, signals: &mut Signals) -> Option<ExitCode> {
    if instance.lameduck.is_zero() {
        return None;
    }
    let seconds = instance.lameduck.as_secs_f64();
    tracing::info!(target: "plugin/health", "Going into lameduck mode for {seconds}s");
    let end = tokio::time::Instant::now() + instance.lameduck;
    loop {
        let left = end.saturating_duration_since(tokio::time::Instant::now());
        match signals.next(Some(left)).await {
            // A generated Corefile that changed also arrives as `CheckFiles`, so compare the time.
            Event::CheckFiles if tokio::time::Instant::now() >= end => return None,
            Event::ExitNow(code) => return Some(code),
            Event::Shutdown | Event::Reload | Event::Command(_) | Event::CheckFiles | Event::InputChanged => {}
        }
    }
}

/// Returns an interval that is randomly longer or shorter by at most half of `jitter`.
fn with_jitter(interval: Duration, jitter: Duration) -> Duration {
    let mut bytes = [0; 8];
    if aws_lc_rs::rand::fill(&mut bytes).is_err() || jitter.is_zero() {
        return interval;
    }
    let jitter_nanos = u64::try_from(jitter.as_nanos()).unwrap_or(u64::MAX).max(1);
    let shift = Duration::from_nanos(u64::from_ne_bytes(bytes) % jitter_nanos);
    (interval + shift).saturating_sub(jitter / 2)
}

/// Event of the main loop, from a signal, a timer, the control socket or a changed input.
enum Event {
    Shutdown,
    ExitNow(ExitCode),
    Reload,
    /// From the control socket.
    Command(ControlCommand),
    CheckFiles,
    InputChanged,
}

/// Sources of events: the signals of CoreDNS, and changes of a generated Corefile.
struct Signals {
    shutdown: ShutdownSignals,
    reload: Signal,
    hang_up: Signal,
    upgrade: Signal,
    changes: Option<Receiver<bool>>,
    /// Commands from the control socket.
    commands: Option<Receiver<ControlCommand>>,
}

/// Signals that end the process. Create it before anything that waits: the kernel discards a signal without a handler
/// if the process is the first one of its container.
pub(crate) struct ShutdownSignals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    interrupts: u32,
}

impl ShutdownSignals {
    /// Handles the signals from now on.
    ///
    /// # Errors
    /// Returns an error for a failed system call.
    pub fn new() -> std::io::Result<ShutdownSignals> {
        Ok(ShutdownSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            interrupts: 0,
        })
    }

    async fn next(&mut self) -> Event {
        let (line, event) = tokio::select! {
            _ = self.terminate.recv() => ("SIGTERM: Shutting down servers then terminating", Event::Shutdown),
            _ = self.interrupt.recv() => {
                self.interrupts += 1;
                match self.interrupts {
                    1 => ("SIGINT: Shutting down", Event::Shutdown),
                    _ => ("SIGINT: Force quit", Event::ExitNow(INTERRUPTED_TWICE.into())),
                }
            }
            _ = self.quit.recv() => ("SIGQUIT: Quitting process immediately", Event::ExitNow(ExitCode::SUCCESS)),
        };
        tracing::info!(target: "portolan", "{line}");
        event
    }

    /// Runs `work` to completion, or drops it and returns the event if a signal ends the process first.
    async fn or_shutdown(&mut self, work: impl Future<Output = ()>) -> Option<Event> {
        tokio::select! {
            biased;
            () = work => None,
            event = self.next() => Some(event),
        }
    }

    /// Runs a part of the startup. Returns the exit code if a signal ends the process first, and drops the rest then.
    pub(crate) async fn or_exit<T>(&mut self, startup: impl Future<Output = T>) -> Result<T, ExitCode> {
        tokio::select! {
            biased;
            event = self.next() => match event {
                Event::ExitNow(code) => Err(code),
                _ => Err(ExitCode::SUCCESS),
            },
            done = startup => Ok(done),
        }
    }
}

impl Signals {
    fn new(shutdown: ShutdownSignals, changes: Option<Receiver<bool>>) -> std::io::Result<Signals> {
        let (reload, upgrade) = (signal(SignalKind::user_defined1())?, signal(SignalKind::user_defined2())?);
        Ok(Signals { shutdown, reload, hang_up: signal(SignalKind::hangup())?, upgrade, changes, commands: None })
    }

    /// Waits for the next event; returns [`Event::CheckFiles`] after `limit`.
    async fn next(&mut self, limit: Option<Duration>) -> Event {
        let time = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(time);
        loop {
            return tokio::select! {
                event = self.shutdown.next() => event,
                _ = self.reload.recv() => Event::Reload,
                // CoreDNS ignores SIGHUP too.
                _ = self.hang_up.recv() => continue,
                _ = self.upgrade.recv() => {
                    log::report(Level::Warning, Source::Server, format_args!("{UPGRADE_IGNORED}"));
                    continue;
                }
                () = &mut time => Event::CheckFiles,
                anyway = next_of(&mut self.changes) => if anyway { Event::InputChanged } else { Event::CheckFiles },
                command = next_of(&mut self.commands) => Event::Command(command),
            };
        }
    }
}

/// Waits for the next value; waits forever if there can be none.
async fn next_of<T>(receiver: &mut Option<Receiver<T>>) -> T {
    match receiver {
        Some(receiver) => match receiver.recv().await {
            Some(value) => value,
            None => std::future::pending().await,
        },
        None => std::future::pending().await,
    }
}

/// File with the process ID, which is removed on drop.
struct Pidfile<'a>(&'a Path);

impl Pidfile<'_> {
    /// Writes the file. A failure is only logged, because the server can run without the file.
    fn write(path: &Path) -> Option<Pidfile<'_>> {
        match std::fs::write(path, format!("{}\n", std::process::id())) {
            Ok(()) => Some(Pidfile(path)),
            Err(error) => {
                let reason = host::errors::describe(&error);
                tracing::error!(target: "portolan", "Could not write pidfile {}: {reason}", path.display());
                None
            }
        }
    }
}

impl Drop for Pidfile<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}
