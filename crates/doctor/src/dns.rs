//! DNS Service of the cluster, its endpoints and its Deployment.

use core::net::IpAddr;

use crate::known::known;
use crate::objects::{DaemonSet, Deployment, EndpointSlice, List, Metadata, Objects, PodTemplate, Service};
use crate::objects::{Endpoint, Pod, Port};
use crate::{Known, Unknown};

/// Port of DNS (RFC 1035 §4.2).
pub const DNS_PORT: u16 = 53;
/// Names that installers give to the Service.
const NAMES: [&str; 4] = ["kube-dns", "coredns", "portolan", "rke2-coredns-rke2-coredns"];
/// Labels that installers give to the Service.
const LABELS: [(&str, &[&str]); 2] =
    [("k8s-app", &["kube-dns", "coredns"]), ("app.kubernetes.io/name", &["portolan", "coredns"])];
/// Namespace that is preferred.
const NAMESPACE: &str = "kube-system";

/// DNS Service of the cluster.
#[derive(Clone, Copy)]
pub struct DnsService<'a> {
    /// Service.
    pub service: &'a Service,
    objects: &'a Objects,
}

/// Object that creates the Pods of the DNS Service.
#[derive(Clone, Copy)]
pub struct Workload<'a> {
    /// `Deployment` or `DaemonSet`.
    pub kind: &'static str,
    /// Metadata.
    pub metadata: &'a Metadata,
    /// Template of its Pods.
    pub template: &'a PodTemplate,
}

impl<'a> From<&'a Deployment> for Workload<'a> {
    fn from(deployment: &'a Deployment) -> Workload<'a> {
        Workload { kind: "Deployment", metadata: &deployment.metadata, template: &deployment.spec.template }
    }
}

impl<'a> From<&'a DaemonSet> for Workload<'a> {
    fn from(daemon_set: &'a DaemonSet) -> Workload<'a> {
        Workload { kind: "DaemonSet", metadata: &daemon_set.metadata, template: &daemon_set.spec.template }
    }
}

impl Workload<'_> {
    /// Returns `KIND NAMESPACE/NAME`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{} {}", self.kind, self.metadata.path())
    }
}

impl<'a> DnsService<'a> {
    /// Finds the DNS Service: the one with this namespace and name, or the one with the names and labels that
    /// installers use.
    pub(crate) fn find(objects: &'a Objects, named: Option<&(String, String)>) -> Known<DnsService<'a>> {
        let services = known(&objects.services)?;
        let found = match named {
            Some((namespace, name)) => {
                let is_it = |one: &&Service| one.metadata.namespace == *namespace && one.metadata.name == *name;
                let missing = || Unknown::new(format!("there is no Service {namespace}/{name}"));
                services.iter().find(is_it).ok_or_else(missing)
            }
            None => guess(services),
        };
        found.map(|service| DnsService { service, objects })
    }

    /// Namespace of the Service.
    #[must_use]
    pub fn namespace(&self) -> &'a str {
        &self.service.metadata.namespace
    }

    /// Returns `NAMESPACE/NAME`.
    #[must_use]
    pub fn path(&self) -> String {
        self.service.metadata.path()
    }

    /// EndpointSlices of the Service.
    ///
    /// # Errors
    /// The EndpointSlices could not be read.
    pub fn slices(&self) -> Known<Vec<&'a EndpointSlice>> {
        let slices = known(&self.objects.slices)?;
        let is_ours = |slice: &&EndpointSlice| {
            slice.metadata.namespace == self.service.metadata.namespace && slice.service() == self.service.metadata.name
        };
        Ok(slices.iter().filter(is_ours).collect())
    }

    /// Endpoints of the Service, without duplicates in several slices. Of those with the same addresses, one that names
    /// its object is kept: a slice that was written by hand does not hide a Pod.
    ///
    /// # Errors
    /// The EndpointSlices could not be read.
    pub fn endpoints(&self) -> Known<Vec<&'a Endpoint>> {
        let mut all: Vec<&Endpoint> = Vec::new();
        for endpoint in self.slices()?.into_iter().flat_map(|slice| &slice.endpoints) {
            match all.iter_mut().find(|known| known.addresses == endpoint.addresses) {
                None => all.push(endpoint),
                Some(known) if known.target_ref.name.is_empty() => *known = endpoint,
                Some(_) => {}
            }
        }
        Ok(all)
    }

    /// Addresses of the ready endpoints.
    ///
    /// # Errors
    /// The EndpointSlices could not be read.
    pub fn ready_addresses(&self) -> Known<Vec<IpAddr>> {
        let ready = self.endpoints()?.into_iter().filter(|endpoint| endpoint.is_ready());
        Ok(ready.flat_map(|endpoint| &endpoint.addresses).filter_map(|address| address.parse().ok()).collect())
    }

    /// Returns the port of the endpoints for queries over UDP.
    #[must_use]
    pub fn endpoint_port(&self) -> u16 {
        let is_dns = |port: &&Port| port.port == DNS_PORT && port.protocol() == "UDP";
        let name = self.service.spec.ports.iter().find(is_dns).map_or("", |port| port.name.as_str());
        let ports = self.slices().unwrap_or_default().into_iter().flat_map(|slice| &slice.ports);
        let mut own = ports.filter(|port| port.protocol() == "UDP" && port.name == name);
        own.next().map_or(DNS_PORT, |port| port.port)
    }

    /// Deployment whose Pods the Service selects.
    ///
    /// # Errors
    /// The Deployments are not known, or none matches.
    pub fn deployment(&self) -> Known<&'a Deployment> {
        let deployments = known(&self.objects.deployments)?;
        let missing = || Unknown::new(format!("no Deployment has the Pods of Service {}", self.path()));
        deployments.iter().find(|deployment| self.selects((*deployment).into())).ok_or_else(missing)
    }

    /// DaemonSet of the full server whose Pods the Service selects; `None` without one.
    ///
    /// # Errors
    /// The DaemonSets are not known.
    pub fn daemon_set(&self) -> Known<Option<&'a DaemonSet>> {
        let daemon_sets = known(&self.objects.daemon_sets)?;
        let is_server = |one: &&DaemonSet| one.node_cache_addresses().is_none() && self.selects((*one).into());
        Ok(daemon_sets.iter().find(is_server))
    }

    /// Object that creates the Pods of the Service: the DaemonSet of the full server, or else the Deployment.
    ///
    /// # Errors
    /// Neither is known.
    pub fn workload(&self) -> Known<Workload<'a>> {
        if let Ok(Some(daemon_set)) = self.daemon_set() {
            return Ok(daemon_set.into());
        }
        self.deployment().map(Workload::from)
    }

    /// Deployments and DaemonSets whose Pods the Service selects.
    ///
    /// # Errors
    /// The Deployments or the DaemonSets are not known.
    pub fn workloads(&self) -> Known<Vec<Workload<'a>>> {
        let deployments = known(&self.objects.deployments)?.iter().map(Workload::from);
        let all = deployments.chain(known(&self.objects.daemon_sets)?.iter().map(Workload::from));
        Ok(all.filter(|workload| self.selects(*workload)).collect())
    }

    /// Pods of the Service.
    ///
    /// # Errors
    /// The Pods could not be read.
    pub fn pods(&self) -> Known<Vec<&'a Pod>> {
        let selector = &self.service.spec.selector;
        let is_ours = |pod: &&Pod| {
            pod.metadata.namespace == self.service.metadata.namespace
                && !selector.is_empty()
                && crate::objects::contains(&pod.metadata.labels, selector)
        };
        Ok(known(&self.objects.pods)?.iter().filter(is_ours).collect())
    }

    /// Returns true if the Service selects the Pods of a workload.
    pub(crate) fn selects(&self, workload: Workload<'_>) -> bool {
        let selector = &self.service.spec.selector;
        workload.metadata.namespace == self.service.metadata.namespace
            && !selector.is_empty()
            && crate::objects::contains(&workload.template.metadata.labels, selector)
    }
}

fn guess(services: &List<Service>) -> Known<&Service> {
    let serves = |service: &&Service| service.spec.ports.iter().any(|port| port.port == DNS_PORT);
    let has_label =
        |service: &Service| LABELS.iter().any(|(key, values)| values.contains(&service.metadata.label(key)));
    let rank = |service: &&Service| {
        let name = NAMES.iter().position(|name| *name == service.metadata.name).unwrap_or(NAMES.len());
        (service.metadata.namespace != NAMESPACE, name, service.metadata.path())
    };
    let is_named =
        |service: &Service| service.metadata.namespace == NAMESPACE && NAMES.contains(&service.metadata.name.as_str());
    let candidates = services.iter().filter(serves).filter(|service| has_label(service) || is_named(service));
    let missing = || Unknown::new("no Service looks like that of the cluster DNS; name it with `--service`");
    candidates.min_by_key(rank).ok_or_else(missing)
}
