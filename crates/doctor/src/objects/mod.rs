//! Objects of the Kubernetes API, with only the fields that checks read. They are decoded from JSON; unknown fields are
//! ignored, and a missing or null field has its default.

mod autoscaler;
mod policy;
mod selector;
mod service;
mod workload;

use core::ops::Deref;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use autoscaler::{Autoscaler, AutoscalerSpec, ScaleTarget};
pub use policy::{CiliumPolicy, IpBlock, NetworkPolicy, Peer, PolicyPort, PolicyRule, PolicySpec};
pub(crate) use selector::contains;
pub use selector::{Expression, Selector};
pub use service::{
    Endpoint, EndpointSlice, EndpointSubset, Endpoints, Namespace, Node, NodeSpec, Port, Service, ServiceSpec,
};
pub use workload::{
    Container, ContainerPort, DaemonSet, Deployment, DisruptionBudget, DisruptionBudgetSpec, DisruptionBudgetStatus,
    DnsConfig, EnvVariable, Event, HttpGet, Pod, PodSpec, PodStatus, PodTemplate, Probe, ReadinessProbe, Volume,
    VolumeSource, WorkloadSpec,
};

use crate::{Known, Unknown};

/// Metadata of an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(deserialize_with = "or_default")]
    pub namespace: String,
    /// Labels.
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    /// Annotations whose keys are in [`ANNOTATIONS`].
    #[serde(deserialize_with = "annotations")]
    pub annotations: BTreeMap<String, String>,
}

/// Annotations that are kept. Others can be large.
const ANNOTATIONS: [&str; 1] = ["kubernetes.io/config.mirror"];

/// Decodes a value; null is the default.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(from: D) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(from)?.unwrap_or_default())
}

fn annotations<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    let all: BTreeMap<String, String> = or_default(from)?;
    Ok(all.into_iter().filter(|(key, _)| ANNOTATIONS.contains(&key.as_str())).collect())
}

impl Metadata {
    /// Returns `NAMESPACE/NAME`, or the name of a cluster-scoped object.
    #[must_use]
    pub fn path(&self) -> String {
        if self.namespace.is_empty() { self.name.clone() } else { format!("{}/{}", self.namespace, self.name) }
    }

    /// Returns a label; empty without it.
    #[must_use]
    pub fn label(&self, key: &str) -> &str {
        self.labels.get(key).map_or("", String::as_str)
    }
}

/// Objects of a kind.
#[derive(Clone, Debug, Default)]
pub struct List<T> {
    /// Objects.
    pub items: Vec<T>,
    /// True if the cluster has more objects than were read.
    pub cut: bool,
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

/// Page of a list, as the API server sends it.
#[derive(Debug, Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
pub struct Page<T> {
    /// Metadata of the list.
    #[serde(default)]
    pub metadata: ListMetadata,
    /// Objects.
    #[serde(default = "Vec::new", deserialize_with = "or_default")]
    pub items: Vec<T>,
}

/// Metadata of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ListMetadata {
    /// Token for the next page; empty on the last one.
    #[serde(rename = "continue", deserialize_with = "or_default")]
    pub next: String,
}

/// Kind of objects, and where the API server has them.
pub trait Resource: DeserializeOwned {
    /// Path of the collection of all namespaces.
    const PATH: &'static str;
    /// Plural name.
    const PLURAL: &'static str;
}

/// Objects of the cluster.
pub struct Objects {
    /// Services.
    pub services: Known<List<Service>>,
    /// EndpointSlices.
    pub slices: Known<List<EndpointSlice>>,
    /// Endpoints.
    pub endpoints: Known<List<Endpoints>>,
    /// Namespaces.
    pub namespaces: Known<List<Namespace>>,
    /// Pods.
    pub pods: Known<List<Pod>>,
    /// Nodes.
    pub nodes: Known<List<Node>>,
    /// Deployments.
    pub deployments: Known<List<Deployment>>,
    /// DaemonSets.
    pub daemon_sets: Known<List<DaemonSet>>,
    /// PodDisruptionBudgets.
    pub disruption_budgets: Known<List<DisruptionBudget>>,
    /// HorizontalPodAutoscalers.
    pub autoscalers: Known<List<Autoscaler>>,
    /// NetworkPolicies.
    pub network_policies: Known<List<NetworkPolicy>>,
    /// Events with the reason `DNSConfigForming`.
    pub events: Known<List<Event>>,
    /// `CiliumNetworkPolicies`.
    pub cilium_policies: Known<List<CiliumPolicy>>,
    /// `CiliumLocalRedirectPolicies`.
    pub redirect_policies: Known<List<CiliumPolicy>>,
    /// ConfigMap `kube-system/kubeadm-config`; `None` if it does not exist.
    pub kubeadm: Known<Option<BTreeMap<String, String>>>,
    /// ConfigMap `kube-system/cilium-config`; `None` if it does not exist.
    pub cilium: Known<Option<BTreeMap<String, String>>>,
}

impl Objects {
    /// Returns objects that nobody read.
    #[must_use]
    pub fn unknown(reason: &Unknown) -> Objects {
        Objects {
            services: Err(reason.clone()),
            slices: Err(reason.clone()),
            endpoints: Err(reason.clone()),
            namespaces: Err(reason.clone()),
            pods: Err(reason.clone()),
            nodes: Err(reason.clone()),
            deployments: Err(reason.clone()),
            daemon_sets: Err(reason.clone()),
            disruption_budgets: Err(reason.clone()),
            autoscalers: Err(reason.clone()),
            network_policies: Err(reason.clone()),
            events: Err(reason.clone()),
            cilium_policies: Err(reason.clone()),
            redirect_policies: Err(reason.clone()),
            kubeadm: Err(reason.clone()),
            cilium: Err(reason.clone()),
        }
    }

    /// Returns the resources of which the cluster has more objects than were read.
    #[must_use]
    pub fn cut(&self) -> Vec<&'static str> {
        fn of<T: Resource>(list: &Known<List<T>>) -> Option<&'static str> {
            list.as_ref().is_ok_and(|list| list.cut).then_some(T::PLURAL)
        }
        let all = [
            of(&self.services),
            of(&self.slices),
            of(&self.endpoints),
            of(&self.namespaces),
            of(&self.pods),
            of(&self.nodes),
            of(&self.deployments),
            of(&self.daemon_sets),
            of(&self.disruption_budgets),
            of(&self.autoscalers),
            of(&self.network_policies),
            of(&self.events),
        ];
        all.into_iter().flatten().collect()
    }
}

/// Decodes a value that is a number or a text, such as a port or `maxUnavailable`.
pub(crate) fn number_or_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    })
}
