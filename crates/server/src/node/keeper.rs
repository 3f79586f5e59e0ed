//! Keeps interface and rules: makes them, looks again and again whether they are there, takes them away at the end. On a
//! thread of its own: what is leased must be renewed, whatever else goes on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::metrics::{Counter, Counters, Kind, Metric, Registry};
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
    thread: JoinHandle<()>,
}

impl Keeper {
    /// Makes the interface and begins to keep it.
    pub(super) fn start(settings: &Settings, registry: &Arc<Registry>) -> std::io::Result<Keeper> {
        let (orders, received) = channel();
        let (settings, registry) = (settings.clone(), Arc::clone(registry));
        let (ready, is_ready) = channel::<()>();
        let run = move || Kept::new(&settings, &registry).run(settings.sync, &received, ready);
        let thread = std::thread::Builder::new().name("keeper".to_owned()).spawn(run)?;
        // It drops its end when the interface is there, or cannot be.
        let _ = is_ready.recv();
        Ok(Keeper { orders, thread })
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
    counters: Counters,
    errors: [(&'static str, Counter); 6],
    said: Option<String>,
}

impl Kept {
    fn new(settings: &Settings, registry: &Arc<Registry>) -> Kept {
        let error = |label| (label, registry.counter(&ERRORS, &[label]));
        let labels = ["iptables", "iptables_lock", "interface_add", "interface_check", "configmap", "nftables"];
        let mut kept = Kept {
            interface: None,
            packets: Packets::new(settings),
            has_rules: false,
            counters: registry.counters(),
            errors: labels.map(error),
            said: None,
        };
        match Interface::new(settings) {
            Ok(interface) => kept.interface = interface,
            Err(error) => kept.fail("interface_check", &error.to_string()),
        }
        kept
    }

    fn run(mut self, sync: Duration, orders: &Receiver<(Order, Sender<()>)>, ready: Sender<()>) {
        self.look();
        drop(ready);
        loop {
            match orders.recv_timeout(sync) {
                Err(RecvTimeoutError::Timeout) => self.look(),
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

    fn look(&mut self) {
        match self.interface.as_mut().map(Interface::ensure) {
            None | Some(Ok(false)) => {}
            Some(Ok(true)) => self.say(&self.interface.as_ref().map_or(String::new(), Interface::describe)),
            Some(Err(interface::Trouble::Add(error))) => self.fail("interface_add", &error.to_string()),
            Some(Err(interface::Trouble::Check(error))) => self.fail("interface_check", &error.to_string()),
        }
        if self.has_rules {
            self.look_at_rules();
        }
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
    fn fail(&mut self, label: &'static str, what: &str) {
        if let Some((_, counter)) = self.errors.iter().find(|(known, _)| *known == label) {
            self.counters.count(*counter);
        }
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
