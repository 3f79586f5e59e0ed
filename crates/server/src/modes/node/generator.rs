//! [`CorefileGenerator`] of `portolan node`: the template, which is polled four times a second, and the address of the
//! upstream Service.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use compat::kube_dns::{ConfigMapSettings, ConfigMapSource, DNS_PORT, HostNames, NameServer};
use compat::node_cache::{self, Settings, TemplateInputs, service_variable};
use tokio::sync::mpsc::Sender;

use super::LOG;
use super::reconciler::ErrorCounters;
use crate::generated_corefile::{CorefileGenerator, InputChange, is_cluster_name};
use crate::serve_error::TemplateError;

/// Interval between reads of the template.
const POLL_EVERY: Duration = Duration::from_millis(250);
/// Placeholder for the address of the upstream Service.
const CLUSTER_DNS: &str = "__PILLAR__CLUSTER__DNS__";
/// Maximum size of the template, in bytes: Kubernetes limits a whole ConfigMap to this.
const TEMPLATE_MAX: u64 = 1 << 20;

/// Inputs of the Corefile.
pub(super) struct NodeCacheGenerator {
    settings: Settings,
    inputs: RefCell<TemplateInputs>,
    errors: ErrorCounters,
}

impl NodeCacheGenerator {
    /// Reads the template and finds the address of the Service.
    ///
    /// # Errors
    /// Fails if the template could not be read, or if `in_pod` is true and the address of the Service is needed but not
    /// known. The kubelet sets the environment variable when it starts the container again.
    pub(super) fn find(
        settings: &Settings,
        errors: ErrorCounters,
        in_pod: bool,
    ) -> Result<Rc<NodeCacheGenerator>, TemplateError> {
        let template = read(&settings.template)?;
        let cluster_dns = upstream_service(settings);
        let asks_for_it = template.contains(CLUSTER_DNS);
        if cluster_dns.is_none() && asks_for_it {
            let variable = service_variable(&settings.upstream_service);
            if in_pod {
                return Err(TemplateError::NoService(settings.upstream_service.clone(), variable));
            }
            tracing::warn!(
                target: LOG,
                "Service {} not found: environment variable {variable} is not set", settings.upstream_service
            );
        }
        Ok(Rc::new(NodeCacheGenerator {
            settings: settings.clone(),
            inputs: RefCell::new(TemplateInputs { template, cluster_dns }),
            errors,
        }))
    }

    /// Returns the address of the upstream Service, if the template needs it and it is known.
    pub(super) fn upstream(&self) -> Option<SocketAddr> {
        let inputs = self.inputs.borrow();
        let ip = inputs.cluster_dns.filter(|_| inputs.template.contains(CLUSTER_DNS))?;
        Some(SocketAddr::new(ip, DNS_PORT))
    }

    /// Polls the template and sends [`InputChange::Generator`] when it changes. Returns if the receiver is gone.
    pub(super) async fn follow(self: Rc<Self>, changes: Sender<InputChange>) {
        loop {
            tokio::time::sleep(POLL_EVERY).await;
            // After a read error, the previous template stays in use until the next read.
            let Ok(template) = read(&self.settings.template) else { continue };
            if self.inputs.borrow().template != template {
                self.inputs.borrow_mut().template = template;
                tracing::info!(target: LOG, "The template {} has changed", self.settings.template);
                if changes.send(InputChange::Generator).await.is_err() {
                    return;
                }
            }
        }
    }
}

impl CorefileGenerator for NodeCacheGenerator {
    fn name(&self) -> &'static str {
        "node"
    }

    fn source(&self) -> &ConfigMapSource {
        &self.settings.source
    }

    fn cluster(&self) -> cluster::Source {
        cluster::Source::InCluster
    }

    fn named_hosts(&self, config_map: &ConfigMapSettings) -> BTreeSet<String> {
        host::sorting::set(config_map.stub_domains.values().flatten().filter_map(NameServer::host))
    }

    fn resolver(&self, name: &str) -> Option<SocketAddr> {
        let cluster_dns = self.inputs.borrow().cluster_dns.filter(|_| is_cluster_name(name, &self.settings.domain));
        cluster_dns.map(|ip| SocketAddr::new(ip, DNS_PORT))
    }

    fn corefile(&self, config_map: &ConfigMapSettings, hosts: HostNames<'_>) -> String {
        node_cache::corefile(&self.settings, &self.inputs.borrow(), config_map, hosts)
    }

    fn count_rejected(&self) {
        self.errors.count("configmap");
    }
}

fn read(path: &str) -> Result<String, TemplateError> {
    transport::files::read_text(path, TEMPLATE_MAX).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => TemplateError::TooLarge(path.to_owned(), TEMPLATE_MAX),
        _ => TemplateError::Read(path.to_owned(), error),
    })
}

/// Returns the address from the environment variable that Kubernetes sets if the Service is older than the pod.
fn upstream_service(settings: &Settings) -> Option<IpAddr> {
    std::env::var(service_variable(&settings.upstream_service)).ok()?.parse().ok()
}
