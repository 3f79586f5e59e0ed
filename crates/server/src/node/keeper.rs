//! Keeps interface and rules: makes them, looks again and again whether they are there, takes them away at the end. On a
//! thread of its own: what is leased must be renewed, whatever else goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::metrics::{Kind, Metric, Registry};
use node::Settings;

use super::LOG;
use super::interface::{self, Interface};
use super::packets::{self, Packets};

pub(super) static ERRORS: Metric = Metric {
    name: "coredns_nodecache_setup_errors_total",
    help: "Errors of `portolan node` with interface, rules and configuration of the node; `nftables` is our own.",
    kind: Kind::Counter,
    labels: &["errortype"],
};

/// What can go wrong: the words of node-cache, and one of our own.
const KINDS: [&str; 6] = ["iptables", "iptables_lock", "interface_add", "interface_check", "configmap", "nftables"];

/// What went wrong, by its kind. Each is shown from the start, as 0: people have alerts on them.
#[derive(Clone, Default)]
pub(super) struct Errors(Arc<[AtomicU64; KINDS.len()]>);

impl Errors {
    /// Shows them among the metrics.
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

    /// Counts one.
    pub(super) fn count(&self, kind: &str) {
        let place = KINDS.iter().zip(self.0.iter()).find(|(known, _)| **known == kind);
        if let Some((_, count)) = place {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

enum Order {
    /// Set the rules, and keep them.
    SetRules,
    /// Take the rules away.
    DropRules,
    /// Take all away and end; or leave to others what they need too.
    End { others_serve: bool },
}

/// The thread that keeps them.
pub(super) struct Keeper {
    orders: Sender<(Order, Sender<()>)>,
    found_interface: bool,
    thread: JoinHandle<()>,
}

impl Keeper {
    /// Makes the interface and begins to keep it.
    pub(super) fn start(settings: &Settings, errors: Errors) -> std::io::Result<Keeper> {
        let (orders, received) = channel();
        let settings = settings.clone();
        let (ready, is_ready) = channel();
        let run = move || Kept::new(&settings, errors).run(settings.sync, &received, &ready);
        let thread = std::thread::Builder::new().name("keeper".to_owned()).spawn(run)?;
        // It says so when the interface is there, or cannot be.
        let found_interface = is_ready.recv().unwrap_or(false);
        Ok(Keeper { orders, found_interface, thread })
    }

    /// Whether the interface was there before: somebody else may serve.
    pub(super) fn found_interface(&self) -> bool {
        self.found_interface
    }

    /// Sets the rules and keeps them.
    pub(super) fn set_rules(&self) {
        self.tell(Order::SetRules);
    }

    /// Takes the rules away.
    pub(super) fn drop_rules(&self) {
        self.tell(Order::DropRules);
    }

    /// Takes all away, or leaves to others what they need too.
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
            Err(error) => kept.fail("interface_check", &error.to_string()),
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

    /// Looks whether all is there; gives whether the interface had to be made, if that is known.
    fn look(&mut self) -> Option<bool> {
        let outcome = self.interface.as_mut().map(Interface::ensure);
        let is_new = outcome.as_ref().and_then(|outcome| outcome.as_ref().ok().copied());
        match outcome {
            None | Some(Ok(false)) => {}
            Some(Ok(true)) => self.say(&self.interface.as_ref().map_or(String::new(), Interface::describe)),
            Some(Err(interface::Trouble::Add(error))) => self.fail("interface_add", &error.to_string()),
            Some(Err(interface::Trouble::Check(error))) => self.fail("interface_check", &error.to_string()),
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

    /// The rules first: without them packets go where they would go without a cache.
    fn end(mut self, others_serve: bool) {
        self.drop_rules(others_serve);
        if let Some(Err(error)) = self.interface.take().map(|interface| interface.give_up(others_serve)) {
            self.fail("interface_check", &error.to_string());
        }
    }

    fn fail_with_rules(&mut self, trouble: packets::Trouble) {
        match trouble {
            packets::Trouble::Nftables(error) => self.fail("nftables", &error.to_string()),
            packets::Trouble::Iptables(said) => self.fail("iptables", &said),
            packets::Trouble::IptablesLock => self.fail("iptables_lock", "another program holds the lock of iptables"),
        }
    }

    /// Counts what went wrong, and says it once until something else is to be said.
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
