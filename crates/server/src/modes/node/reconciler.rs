//! Reconciler thread: creates the interface and the packet filter rules, restores them if they disappear, and removes
//! them at the end. It is a separate thread because addresses with a lifetime must be renewed on time, whatever the
//! server does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use compat::node_cache::Settings;
use metrics::{Kind, Metric, Registry};

use super::LOG;
use super::interface::Interface;
use super::packet_filter::PacketFilter;

pub(super) static ERRORS: Metric = Metric {
    name: "coredns_nodecache_setup_errors_total",
    help: "Errors of `portolan node` with interface, rules and configuration of the node; node-cache has no `nftables`.",
    kind: Kind::Counter,
    labels: &["errortype"],
};

/// Error types: those of node-cache, and `nftables`.
const ERROR_TYPES: [&str; 6] =
    ["iptables", "iptables_lock", "interface_add", "interface_check", "configmap", "nftables"];

/// Error counters by type. All are exported from the start, with the value 0, because alerts on an increase need that.
#[derive(Clone, Default)]
pub(super) struct ErrorCounters(Arc<[AtomicU64; ERROR_TYPES.len()]>);

impl ErrorCounters {
    /// Creates the counters and exports them.
    pub(super) fn new(registry: &Registry) -> ErrorCounters {
        let errors = ErrorCounters::default();
        for (at, error_type) in ERROR_TYPES.iter().enumerate() {
            let counts = Arc::clone(&errors.0);
            #[allow(clippy::cast_precision_loss, reason = "a metric is a float")]
            let read = move || counts.get(at).map(|count| count.load(Ordering::Relaxed) as f64);
            registry.gauge(&ERRORS, &[error_type], read);
        }
        errors
    }

    /// Counts one error.
    pub(super) fn count(&self, error_type: &str) {
        let place = ERROR_TYPES.iter().zip(self.0.iter()).find(|(known, _)| **known == error_type);
        if let Some((_, count)) = place {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

enum Command {
    /// Set the rules and restore them if they disappear.
    SetRules,
    /// Remove the rules for queries.
    StopQueries,
    /// Remove everything that no other instance needs, and end.
    End { others_serve: bool },
}

/// Handle of the reconciler thread.
pub(super) struct Reconciler {
    commands: Sender<(Command, Sender<()>)>,
    found_interface: bool,
    thread: JoinHandle<()>,
}

impl Reconciler {
    /// Starts the thread and waits until the interface exists or could not be created.
    pub(super) fn start(settings: &Settings, errors: ErrorCounters) -> std::io::Result<Reconciler> {
        let (commands, received) = channel();
        let settings = settings.clone();
        let (ready, is_ready) = channel();
        let run = move || NodeState::new(&settings, errors).run(settings.sync_interval, &received, &ready);
        let thread = std::thread::Builder::new().name("reconciler".to_owned()).spawn(run)?;
        let found_interface = is_ready.recv().unwrap_or(false);
        Ok(Reconciler { commands, found_interface, thread })
    }

    /// Returns true if the interface existed before, so that another instance may be running.
    pub(super) fn found_interface(&self) -> bool {
        self.found_interface
    }

    /// Sets the rules and restores them from now on.
    pub(super) fn set_rules(&self) {
        self.execute(Command::SetRules);
    }

    /// Removes the rules for queries.
    pub(super) fn stop_queries(&self) {
        self.execute(Command::StopQueries);
    }

    /// Removes everything that no other instance needs, and ends the thread.
    pub(super) fn end(self, others_serve: bool) {
        self.execute(Command::End { others_serve });
        let _ = self.thread.join();
    }

    fn execute(&self, command: Command) {
        let (done, is_done) = channel();
        if self.commands.send((command, done)).is_ok() {
            let _ = is_done.recv();
        }
    }
}

struct NodeState {
    interface: Option<Interface>,
    packet_filter: PacketFilter,
    has_rules: bool,
    errors: ErrorCounters,
    last_error: Option<String>,
}

impl NodeState {
    fn new(settings: &Settings, errors: ErrorCounters) -> NodeState {
        let packet_filter = PacketFilter::new(settings);
        let mut state = NodeState { interface: None, packet_filter, has_rules: false, errors, last_error: None };
        match Interface::new(settings) {
            Ok(interface) => state.interface = interface,
            Err(error) => state.fail("interface_check", &host::errors::describe(&error)),
        }
        state
    }

    fn run(mut self, sync: Duration, commands: &Receiver<(Command, Sender<()>)>, ready: &Sender<bool>) {
        let found_interface = self.reconcile() == Some(false);
        let _ = ready.send(found_interface);
        loop {
            match commands.recv_timeout(sync) {
                Err(RecvTimeoutError::Timeout) => {
                    self.reconcile();
                }
                Ok((Command::SetRules, _done)) => {
                    self.has_rules = true;
                    self.reconcile_rules();
                }
                Ok((Command::StopQueries, _done)) => self.stop_queries(),
                Ok((Command::End { others_serve }, _done)) => return self.end(others_serve),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Checks and restores interface and rules. Returns whether the interface was missing, if that is known.
    fn reconcile(&mut self) -> Option<bool> {
        let outcome = self.interface.as_mut().map(Interface::ensure);
        let is_new = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok().copied());
        match outcome {
            None | Some(Ok(false)) => {}
            Some(Ok(true)) => self.say(&self.interface.as_ref().map_or(String::new(), Interface::describe)),
            Some(Err(error)) => self.fail(error.label(), &error.to_string()),
        }
        if self.has_rules {
            self.reconcile_rules();
        }
        is_new
    }

    fn reconcile_rules(&mut self) {
        match self.packet_filter.ensure() {
            Ok(false) => {}
            Ok(true) => self.say(&self.packet_filter.describe()),
            Err(error) => self.fail(error.label(), &error.to_string()),
        }
    }

    fn stop_queries(&mut self) {
        if self.has_rules
            && let Err(error) = self.packet_filter.stop_queries()
        {
            self.fail(error.label(), &error.to_string());
        }
    }

    fn drop_rules(&mut self, others_serve: bool) {
        if core::mem::take(&mut self.has_rules)
            && let Err(error) = self.packet_filter.remove(others_serve)
        {
            self.fail(error.label(), &error.to_string());
        }
    }

    /// Removes the rules before the interface, so that packets reach the cluster DNS as they would without a cache.
    fn end(mut self, others_serve: bool) {
        self.drop_rules(others_serve);
        if let Some(Err(error)) = self.interface.take().map(|interface| interface.release(others_serve)) {
            self.fail("interface_check", &host::errors::describe(&error));
        }
    }

    /// Counts an error, and logs it unless it is the same as the last one.
    fn fail(&mut self, label: &str, what: &str) {
        self.errors.count(label);
        let line = format!("{label}: {what}");
        if self.last_error.as_ref() != Some(&line) {
            tracing::error!(target: LOG, "{line}");
            self.last_error = Some(line);
        }
    }

    fn say(&mut self, line: &str) {
        self.last_error = None;
        tracing::info!(target: LOG, "{line}");
    }
}
