//! What is served at present: the Corefile of a recipe, the newest ConfigMap that could be read, and the addresses that are
//! known; made anew when one of them changes.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::metrics::{Counter, Counters, Kind, Metric, Registry};
use engine::setup::Files;
use kubeapi::Data;
use kubedns::{Dynamic, Hosts, Source};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

use super::hosts::{self, Wanted};
use super::recipe::{Known, LOG, News, Recipe};
use super::source;
use crate::configuration::{Made, Origin};
use crate::files::Disk;

static UPDATES: Metric = Metric {
    name: "portolan_kube_dns_config_updates_total",
    help: "Versions of the ConfigMap of `portolan kube-dns` that were taken up.",
    kind: Kind::Counter,
    labels: &[],
};
static REFUSED: Metric = Metric {
    name: "portolan_kube_dns_config_refused_total",
    help: "Versions of the ConfigMap of `portolan kube-dns` that could not be used; the one before stays in force.",
    kind: Kind::Counter,
    labels: &[],
};

/// What is counted here.
pub static METRICS: [&Metric; 2] = [&UPDATES, &REFUSED];

/// News that may change what is served: so many may wait.
const NEWS_MAX: usize = 16;
/// How long it may take to say what the ConfigMap holds, before what there is without it is served.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often resolv.conf is looked at.
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

/// Makes the Corefile, and keeps making it while this thread runs. It may wait for the ConfigMap, but not long. `also` can
/// tell of other news.
///
/// # Errors
/// In words, what can never become right by itself.
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
            _ => tracing::warn!(target: LOG, "Begins without the ConfigMap: nobody has said yet what it holds"),
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

    /// Takes what the ConfigMap holds, if it can be used; whether that is something new.
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
                tracing::error!(target: LOG, "The ConfigMap is refused, the one before stays in force: {refused}");
                false
            }
        }
    }

    /// Makes the Corefile; whether it is another one than before.
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

/// Tells when a file changes, from now on: it is to be read after this is called.
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
