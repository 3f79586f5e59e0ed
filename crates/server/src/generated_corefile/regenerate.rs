//! Generates the Corefile to serve from a generator, the last valid ConfigMap and the resolved name server addresses.
//!
//! The task receives each [`InputChange`], generates the Corefile again and signals the server if its text changed.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use compat::kube_dns::{ConfigMapSettings, ConfigMapSource, HostNames};
use config::setup::Files;
use host::boxed;
use kubeapi::Data;
use metrics::{Counter, Counters, Kind, Metric, Registry};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

use super::config_map::{self, ConfigMapReadError};
use super::name_servers::{self, WantedHosts};
use super::{CorefileGenerator, HostAddresses, InputChange, LOG};
use process::configuration::{GeneratedCorefile, Origin};
use process::files::Disk;

static UPDATES: Metric = Metric {
    name: "portolan_kube_dns_config_updates_total",
    help: "ConfigMap versions that `portolan kube-dns` applied.",
    kind: Kind::Counter,
    labels: &[],
};
static REFUSED: Metric = Metric {
    name: "portolan_kube_dns_config_refused_total",
    help: "ConfigMap versions that `portolan kube-dns` rejected as invalid; the previous version stays in use.",
    kind: Kind::Counter,
    labels: &[],
};

/// Metrics of this module, for the documentation.
pub static METRICS: [&Metric; 2] = [&UPDATES, &REFUSED];

/// Capacity of the channel of [`InputChange`].
const CHANGES_MAX: usize = 16;
/// Limit for the first read of the ConfigMap. After it the server starts without the ConfigMap.
const FIRST_READ_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval between checks of resolv.conf for a change.
const RESOLV_CONF_EVERY: Duration = Duration::from_millis(500);

struct Regenerator {
    generator: Rc<dyn CorefileGenerator>,
    config_map: ConfigMapSettings,
    hosts: HostAddresses,
    wanted: WantedHosts,
    text: Rc<RefCell<String>>,
    counters: Counters,
    updates: Counter,
    refused: Counter,
}

/// Generates the Corefile, and regenerates it on changes while the `LocalSet` of this thread runs. Waits up to
/// [`FIRST_READ_TIMEOUT`] for the ConfigMap.
///
/// `also` receives a sender for further changes. The returned receiver gets a value when the Corefile changes
/// (`false`), or when something that it names changes (`true`).
///
/// # Errors
/// Fails for a permanent reason, which no retry can fix.
pub(crate) async fn start(
    generator: Rc<dyn CorefileGenerator>,
    registry: &Arc<Registry>,
    also: impl FnOnce(Sender<InputChange>),
) -> Result<(Origin, Receiver<bool>), ConfigMapReadError> {
    let (sender, mut changes) = channel(CHANGES_MAX);
    config_map::follow(&*generator, registry, sender.clone())?;
    let mut regenerator = Regenerator::new(Rc::clone(&generator), registry);
    if *generator.source() != ConfigMapSource::None {
        match timeout(FIRST_READ_TIMEOUT, changes.recv()).await {
            Ok(Some(InputChange::ConfigMap(data))) => drop(regenerator.apply_config_map(&data)),
            _ => tracing::warn!(target: LOG, "Starting without the ConfigMap: it could not be read in time"),
        }
    }
    regenerator.regenerate();
    let generated = GeneratedCorefile { name: generator.name(), text: Rc::clone(&regenerator.text) };
    tokio::task::spawn_local(boxed(name_servers::follow(
        Rc::clone(&generator),
        regenerator.wanted.clone(),
        sender.clone(),
    )));
    also(sender.clone());
    if let Some(path) = generator.resolv_conf() {
        tokio::task::spawn_local(boxed(follow_resolv_conf(path, sender)));
    }
    let (reload_sender, reloads) = channel(1);
    tokio::task::spawn_local(boxed(regenerator.run(changes, reload_sender)));
    Ok((Origin::Generated(generated), reloads))
}

impl Regenerator {
    fn new(generator: Rc<dyn CorefileGenerator>, registry: &Arc<Registry>) -> Regenerator {
        Regenerator {
            generator,
            config_map: ConfigMapSettings::default(),
            hosts: HostAddresses::new(),
            wanted: WantedHosts::default(),
            text: Rc::default(),
            counters: registry.counters(),
            updates: registry.counter(&UPDATES, &[]),
            refused: registry.counter(&REFUSED, &[]),
        }
    }

    async fn run(mut self, mut changes: Receiver<InputChange>, reloads: Sender<bool>) {
        while let Some(change) = changes.recv().await {
            let is_of_system = matches!(change, InputChange::ResolvConf);
            let changed = match change {
                InputChange::ConfigMap(data) => self.apply_config_map(&data),
                InputChange::HostAddresses(hosts) => {
                    self.hosts = hosts;
                    true
                }
                InputChange::ResolvConf | InputChange::Generator => true,
            };
            let text_changed = changed && self.regenerate();
            if (text_changed || is_of_system) && reloads.send(is_of_system).await.is_err() {
                return;
            }
        }
    }

    /// Applies a ConfigMap if it is valid. Returns true if that changed the settings.
    fn apply_config_map(&mut self, data: &Data) -> bool {
        match ConfigMapSettings::parse(data) {
            Ok(config_map) if config_map == self.config_map => false,
            Ok(config_map) => {
                self.config_map = config_map;
                self.counters.count(self.updates);
                tracing::info!(target: LOG, "Configuration updated: {}", describe(&self.config_map));
                true
            }
            Err(refused) => {
                self.counters.count(self.refused);
                self.generator.count_rejected();
                tracing::error!(target: LOG, "The ConfigMap is invalid; the previous version stays in use: {refused}");
                false
            }
        }
    }

    /// Generates the Corefile. Returns true if its text changed.
    fn regenerate(&mut self) -> bool {
        self.wanted.set(self.generator.named_hosts(&self.config_map));
        let text = self.generator.corefile(&self.config_map, HostNames::Resolved(&self.hosts));
        let is_new = *self.text.borrow() != text;
        *self.text.borrow_mut() = text;
        is_new
    }
}

fn describe(config_map: &ConfigMapSettings) -> String {
    let ConfigMapSettings { stub_domains, upstreams, federations } = config_map;
    format!("{} stub domains, {} upstreams, {} federations", stub_domains.len(), upstreams.len(), federations.len())
}

/// Sends [`InputChange::ResolvConf`] whenever a file changes. Changes count from the call, so read the file after it.
fn follow_resolv_conf(path: PathBuf, changes: Sender<InputChange>) -> impl Future<Output = ()> {
    let stamp = move || Disk.stamp(&path).ok();
    let mut known = stamp();
    async move {
        loop {
            tokio::time::sleep(RESOLV_CONF_EVERY).await;
            let now = stamp();
            if now != known {
                known = now;
                if changes.send(InputChange::ResolvConf).await.is_err() {
                    return;
                }
            }
        }
    }
}
