//! Keeper thread: creates the interface and the packet filter rules, restores them if they disappear, and removes them
//! at the end. It is a separate thread because addresses with a lifetime must be renewed on time, whatever the server
//! does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use compat::node_cache::Settings;
use metrics::{Kind, Metric, Registry};

use super::LOG;
use super::interface::{self, Interface};
use super::packets::{self, Packets};

pub(super) static ERRORS: Metric = Metric {
    name: "coredns_nodecache_setup_errors_total",
    help: "Errors of `portolan node` with interface, rules and configuration of the node; node-cache has no `nftables`.",
    kind: Kind::Counter,
    labels: &["errortype"],
};

/// Error types: those of node-cache, and `nftables`.
const KINDS: [&str; 6] = ["iptables", "iptables_lock", "interface_add", "interface_check", "configmap", "nftables"];

/// Error counters by type. All are exported from the start, with the value 0, because alerts on an increase need that.
#[derive(Clone, Default)]
pub(super) struct Errors(Arc<[AtomicU64; KINDS.len()]>);

impl Errors {
    /// Creates the counters and exports them.
    pub(super) fn new(registry: &Registry) -> Errors {
        let errors = Errors::default();
        for (at, kind) in KINDS.iter().enumerate() {
            let counts = Arc::clone(&errors.0);
            #[allow(clippy::cast_precision_loss, reason = "a metric is a float")]
            let read = move || counts.get(at).map(|count| count.load(Ordering::Relaxed) as f64);
            registry.gauge(&ERRORS, &[kind], read);
        }
        errors
    }

    /// Counts one error.
    pub(super) fn count(&self, kind: &str) {
        let place = KINDS.iter().zip(self.0.iter()).find(|(known, _)| **known == kind);
        if let Some((_, count)) = place {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

enum Order {
    /// Set the rules and restore them if they disappear.
    SetRules,
    /// Remove the rules.
    DropRules,
    /// Remove everything that no other instance needs, and end.
    End { others_serve: bool },
}

/// Handle of the keeper thread.
pub(super) struct Keeper {
    orders: Sender<(Order, Sender<()>)>,
    found_interface: bool,
    thread: JoinHandle<()>,
}

impl Keeper {
    /// Starts the thread and waits until the interface exists or could not be created.
    pub(super) fn start(settings: &Settings, errors: Errors) -> std::io::Result<Keeper> {
        let (orders, received) = channel();
        let settings = settings.clone();
        let (ready, is_ready) = channel();
        let run = move || Kept::new(&settings, errors).run(settings.sync, &received, &ready);
        let thread = std::thread::Builder::new().name("keeper".to_owned()).spawn(run)?;
        let found_interface = is_ready.recv().unwrap_or(false);
        Ok(Keeper { orders, found_interface, thread })
    }

    /// Returns true if the interface existed before, so that another instance may be running.
    pub(super) fn found_interface(&self) -> bool {
        self.found_interface
    }

    /// Sets the rules and restores them from now on.
    pub(super) fn set_rules(&self) {
        self.tell(Order::SetRules);
    }

    /// Removes the rules.
    pub(super) fn drop_rules(&self) {
        self.tell(Order::DropRules);
    }

    /// Removes everything that no other instance needs, and ends the thread.
    pub(super) fn end(self, others_serve: bool) {
        self.tell(Order::End { others_serve });
        let _ = self.thread.join();
    }

    fn tell(&self, order: Order) {
        let (done, is_done) = channel();
        if self.orders.send((order, done)).is_ok() {
            let _ = is_done.recv();
        }
    }
}

struct Kept {
    interface: Option<Interface>,
    packets: Packets,
    has_rules: bool,
    errors: Errors,
    said: Option<String>,
}

impl Kept {
    fn new(settings: &Settings, errors: Errors) -> Kept {
        let packets = Packets::new(settings);
        let mut kept = Kept { interface: None, packets, has_rules: false, errors, said: None };
        match Interface::new(settings) {
            Ok(interface) => kept.interface = interface,
            Err(error) => kept.fail("interface_check", &io_text::describe(&error)),
        }
        kept
    }

    fn run(mut self, sync: Duration, orders: &Receiver<(Order, Sender<()>)>, ready: &Sender<bool>) {
        let found_interface = self.look() == Some(false);
        let _ = ready.send(found_interface);
        loop {
            match orders.recv_timeout(sync) {
                Err(RecvTimeoutError::Timeout) => {
                    self.look();
                }
                Ok((Order::SetRules, _done)) => {
                    self.has_rules = true;
                    self.look_at_rules();
                }
                Ok((Order::DropRules, _done)) => self.drop_rules(false),
                Ok((Order::End { others_serve }, _done)) => return self.end(others_serve),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Checks and restores interface and rules. Returns whether the interface was missing, if that is known.
    fn look(&mut self) -> Option<bool> {
        let outcome = self.interface.as_mut().map(Interface::ensure);
        let is_new = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok().copied());
        match outcome {
            None | Some(Ok(false)) => {}
            Some(Ok(true)) => self.say(&self.interface.as_ref().map_or(String::new(), Interface::describe)),
            Some(Err(interface::Trouble::Add(error))) => self.fail("interface_add", &io_text::describe(&error)),
            Some(Err(interface::Trouble::Check(error))) => self.fail("interface_check", &io_text::describe(&error)),
        }
        if self.has_rules {
            self.look_at_rules();
        }
        is_new
    }

    fn look_at_rules(&mut self) {
        match self.packets.ensure() {
            Ok(false) => {}
            Ok(true) => self.say(&self.packets.describe()),
            Err(trouble) => self.fail_with_rules(trouble),
        }
    }

    fn drop_rules(&mut self, others_serve: bool) {
        if core::mem::take(&mut self.has_rules)
            && let Err(trouble) = self.packets.take_away(others_serve)
        {
            self.fail_with_rules(trouble);
        }
    }

    /// Removes the rules before the interface, so that packets reach the cluster DNS as they would without a cache.
    fn end(mut self, others_serve: bool) {
        self.drop_rules(others_serve);
        if let Some(Err(error)) = self.interface.take().map(|interface| interface.give_up(others_serve)) {
            self.fail("interface_check", &io_text::describe(&error));
        }
    }

    fn fail_with_rules(&mut self, trouble: packets::Trouble) {
        match trouble {
            packets::Trouble::Nftables(error) => self.fail("nftables", &io_text::describe(&error)),
            packets::Trouble::Iptables(said) => self.fail("iptables", &said),
            packets::Trouble::IptablesLock => self.fail("iptables_lock", "another program holds the lock of iptables"),
        }
    }

    /// Counts an error, and logs it unless it is the same as the last one.
    fn fail(&mut self, label: &str, what: &str) {
        self.errors.count(label);
        let line = format!("{label}: {what}");
        if self.said.as_ref() != Some(&line) {
            tracing::error!(target: LOG, "{line}");
            self.said = Some(line);
        }
    }

    fn say(&mut self, line: &str) {
        self.said = None;
        tracing::info!(target: LOG, "{line}");
    }
}
