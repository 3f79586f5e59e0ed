//! What the Corefile of `portolan node` is made of, beside the ConfigMap of kube-dns: the template, which is looked at four
//! times a second, and the address of the upstream Service.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use kubedns::{DNS_PORT, Dynamic, Hosts, NameServer, Source};
use node::{Found, Settings, service_variable};
use tokio::sync::mpsc::Sender;

use super::LOG;
use super::keeper::Errors;
use crate::kube_dns::pod::is_of_cluster;
use crate::kube_dns::recipe::{News, Recipe};

/// How often the template is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Octets of the longest template: what a ConfigMap may have in all.
const TEMPLATE_MAX: u64 = 1 << 20;

/// What the Corefile is made of.
pub(super) struct NodeRecipe {
    settings: Settings,
    found: RefCell<Found>,
    errors: Errors,
}

impl NodeRecipe {
    /// Reads the template and looks for the Service.
    ///
    /// # Errors
    /// In words, if there is no template.
    pub(super) fn find(settings: &Settings, errors: Errors) -> Result<Rc<NodeRecipe>, String> {
        let template = read(&settings.template)?;
        let cluster_dns = upstream_service(settings);
        let asks_for_it = template.contains("__PILLAR__CLUSTER__DNS__");
        if cluster_dns.is_none() && asks_for_it {
            let variable = service_variable(&settings.upstream_service);
            tracing::warn!(target: LOG, "Nobody says yet where the Service {} is: {variable} is not set", settings.upstream_service);
        }
        Ok(Rc::new(NodeRecipe {
            settings: settings.clone(),
            found: RefCell::new(Found { template, cluster_dns }),
            errors,
        }))
    }

    /// Follows the template for as long as it is polled.
    pub(super) async fn follow(self: Rc<Self>, news: Sender<News>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            // What cannot be read just now is read the next time; until then the one before stays in force.
            let Ok(template) = read(&self.settings.template) else { continue };
            if self.found.borrow().template != template {
                self.found.borrow_mut().template = template;
                tracing::info!(target: LOG, "The template {} has changed", self.settings.template);
                if news.send(News::Recipe).await.is_err() {
                    return;
                }
            }
        }
    }
}

impl Recipe for NodeRecipe {
    fn name(&self) -> &'static str {
        "node"
    }

    fn source(&self) -> &Source {
        &self.settings.source
    }

    fn cluster(&self) -> cluster::Source {
        cluster::Source::InCluster
    }

    fn named_hosts(&self, dynamic: &Dynamic) -> BTreeSet<String> {
        dynamic.stub_domains.values().flatten().filter_map(NameServer::host).collect()
    }

    fn resolver(&self, name: &str) -> Option<SocketAddr> {
        let cluster_dns = self.found.borrow().cluster_dns.filter(|_| is_of_cluster(name, &self.settings.domain));
        cluster_dns.map(|ip| SocketAddr::new(ip, DNS_PORT))
    }

    fn corefile(&self, dynamic: &Dynamic, hosts: Hosts<'_>) -> String {
        node::corefile(&self.settings, &self.found.borrow(), dynamic, hosts)
    }

    fn count_refused(&self) {
        self.errors.count("configmap");
    }
}

fn read(path: &str) -> Result<String, String> {
    let fail = |error: std::io::Error| format!("the template {path}: {error}");
    if std::fs::metadata(Path::new(path)).map_err(fail)?.len() > TEMPLATE_MAX {
        return Err(format!("the template {path} is longer than {TEMPLATE_MAX} octets"));
    }
    std::fs::read_to_string(path).map_err(fail)
}

/// What Kubernetes has put into the environment, if the Service was there before the pod.
fn upstream_service(settings: &Settings) -> Option<IpAddr> {
    std::env::var(service_variable(&settings.upstream_service)).ok()?.parse().ok()
}
