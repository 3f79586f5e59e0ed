//! Generates the Corefile to serve from a recipe, the last valid ConfigMap and the resolved name server addresses.
//!
//! The control task receives [`News`] of changes, generates the Corefile again and signals the server if its text
//! changed.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use compat::kube_dns::{Dynamic, Hosts, Source};
use config::setup::Files;
use kubeapi::Data;
use metrics::{Counter, Counters, Kind, Metric, Registry};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

use super::hosts::{self, Wanted};
use super::source;
use super::{Known, LOG, News, Recipe};
use crate::configuration::{Made, Origin};
use crate::files::Disk;

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

/// Capacity of the channel of [`News`].
const NEWS_MAX: usize = 16;
/// Limit for the first read of the ConfigMap. After it the server starts without the ConfigMap.
const PATIENCE: Duration = Duration::from_secs(3);
/// Interval between checks of resolv.conf for a change.
const RESOLV_CONF_EVERY: Duration = Duration::from_millis(500);

struct Control {
    recipe: Rc<dyn Recipe>,
    dynamic: Dynamic,
    hosts: Known,
    wanted: Wanted,
    text: Rc<RefCell<String>>,
    counters: Counters,
    updates: Counter,
    refused: Counter,
}

/// Generates the Corefile, and regenerates it on changes while the `LocalSet` of this thread runs. Waits up to
/// [`PATIENCE`] for the ConfigMap.
///
/// `also` receives a sender for further news. The returned receiver gets a value when the Corefile changes (`false`),
/// or when something that it names changes (`true`).
///
/// # Errors
/// Returns a message for a permanent error, which no retry can fix.
pub(crate) async fn start(
    recipe: Rc<dyn Recipe>,
    registry: &Arc<Registry>,
    also: impl FnOnce(Sender<News>),
) -> Result<(Origin, Receiver<bool>), String> {
    let (tell, mut news) = channel(NEWS_MAX);
    source::follow(&*recipe, registry, tell.clone())?;
    let mut control = Control::new(Rc::clone(&recipe), registry);
    if *recipe.source() != Source::None {
        match timeout(PATIENCE, news.recv()).await {
            Ok(Some(News::Config(data))) => drop(control.take_config(&data)),
            _ => tracing::warn!(target: LOG, "Starting without the ConfigMap: it could not be read in time"),
        }
    }
    control.make();
    let made = Made { name: recipe.name(), text: Rc::clone(&control.text) };
    tokio::task::spawn_local(hosts::follow(Rc::clone(&recipe), control.wanted.clone(), tell.clone()));
    also(tell.clone());
    if let Some(path) = recipe.resolv_conf() {
        tokio::task::spawn_local(follow_resolv_conf(path, tell));
    }
    let (change, changes) = channel(1);
    tokio::task::spawn_local(control.run(news, change));
    Ok((Origin::Made(made), changes))
}

impl Control {
    fn new(recipe: Rc<dyn Recipe>, registry: &Arc<Registry>) -> Control {
        Control {
            recipe,
            dynamic: Dynamic::default(),
            hosts: Known::new(),
            wanted: Wanted::default(),
            text: Rc::default(),
            counters: registry.counters(),
            updates: registry.counter(&UPDATES, &[]),
            refused: registry.counter(&REFUSED, &[]),
        }
    }

    async fn run(mut self, mut news: Receiver<News>, change: Sender<bool>) {
        while let Some(what) = news.recv().await {
            let is_of_system = matches!(what, News::ResolvConf);
            let changed = match what {
                News::Config(data) => self.take_config(&data),
                News::Hosts(hosts) => {
                    self.hosts = hosts;
                    true
                }
                News::ResolvConf | News::Recipe => true,
            };
            let has_other_text = changed && self.make();
            if (has_other_text || is_of_system) && change.send(is_of_system).await.is_err() {
                return;
            }
        }
    }

    /// Applies a ConfigMap if it is valid. Returns true if that changed the settings.
    fn take_config(&mut self, data: &Data) -> bool {
        match Dynamic::read(data) {
            Ok(dynamic) if dynamic == self.dynamic => false,
            Ok(dynamic) => {
                self.dynamic = dynamic;
                self.counters.count(self.updates);
                tracing::info!(target: LOG, "Configuration updated: {}", describe(&self.dynamic));
                true
            }
            Err(refused) => {
                self.counters.count(self.refused);
                self.recipe.count_refused();
                tracing::error!(target: LOG, "The ConfigMap is invalid; the previous version stays in use: {refused}");
                false
            }
        }
    }

    /// Generates the Corefile. Returns true if its text changed.
    fn make(&mut self) -> bool {
        self.wanted.set(self.recipe.named_hosts(&self.dynamic));
        let text = self.recipe.corefile(&self.dynamic, Hosts::Known(&self.hosts));
        let is_new = *self.text.borrow() != text;
        *self.text.borrow_mut() = text;
        is_new
    }
}

fn describe(dynamic: &Dynamic) -> String {
    let Dynamic { stub_domains, upstreams, federations } = dynamic;
    format!("{} stub domains, {} upstreams, {} federations", stub_domains.len(), upstreams.len(), federations.len())
}

/// Sends [`News::ResolvConf`] whenever a file changes. Changes count from the call, so read the file after it.
fn follow_resolv_conf(path: PathBuf, news: Sender<News>) -> impl Future<Output = ()> {
    let stamp = move || Disk.stamp(&path).ok();
    let mut known = stamp();
    async move {
        loop {
            tokio::time::sleep(RESOLV_CONF_EVERY).await;
            let now = stamp();
            if now != known {
                known = now;
                if news.send(News::ResolvConf).await.is_err() {
                    return;
                }
            }
        }
    }
}
