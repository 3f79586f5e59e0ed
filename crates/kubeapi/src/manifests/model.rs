//! Manifests as people write them: with what an API server would add to them left out.

use std::collections::BTreeMap;

use cluster::object::Meta;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

/// The label by which a slice says to which Service it belongs.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// What every document begins with.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Head {
    #[serde(deserialize_with = "or_default")]
    pub(crate) api_version: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) kind: String,
}

/// What a Service, an EndpointSlice and so on have in common.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) namespace: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(skip_serializing)]
    pub(crate) deletion_timestamp: Option<IgnoredAny>,
}

impl Metadata {
    /// Namespace and name.
    pub(crate) fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    /// As the world takes it. There are no versions on disk, so every object is looked at again whenever a file changes.
    pub(crate) fn meta(&self) -> Meta<'_> {
        Meta { namespace: &self.namespace, name: &self.name, version: "" }
    }

    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }
}

/// core/v1 Namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Namespace {
    #[serde(deserialize_with = "or_default")]
    pub(crate) metadata: Metadata,
}

/// core/v1 Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Service {
    #[serde(deserialize_with = "or_default")]
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: ServiceSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: ServiceStatus,
}

/// `status` of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ServiceStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) load_balancer: LoadBalancer,
}

/// `status.loadBalancer` of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct LoadBalancer {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ingress: Vec<Ingress>,
}

/// How a load balancer is reached: by an address, or else by a name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ingress {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) hostname: String,
}

impl Service {
    /// How it is reached from outside, as the world takes it.
    pub(crate) fn external(&self) -> impl Iterator<Item = &str> {
        let entries = self.status.load_balancer.ingress.iter();
        let ingress = entries.map(|entry| if entry.ip.is_empty() { &*entry.hostname } else { &*entry.ip });
        self.spec.external_ips.iter().map(String::as_str).chain(ingress).filter(|text| !text.is_empty())
    }
}

/// multicluster.x-k8s.io ServiceImport.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceImport {
    #[serde(deserialize_with = "or_default")]
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: ImportSpec,
}

/// `spec` of a ServiceImport.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ImportSpec {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) import_type: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ips: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ports: Vec<ServicePort>,
}

/// `spec` of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ServiceSpec {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) service_type: String,
    #[serde(rename = "clusterIP", deserialize_with = "or_default")]
    pub(crate) cluster_ip: String,
    #[serde(rename = "clusterIPs", deserialize_with = "or_default")]
    pub(crate) cluster_ips: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) external_name: String,
    #[serde(rename = "externalIPs", deserialize_with = "or_default")]
    pub(crate) external_ips: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ports: Vec<ServicePort>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip_families: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip_family_policy: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) publish_not_ready_addresses: bool,
}

/// A port of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ServicePort {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_tcp")]
    pub(crate) protocol: Protocol,
    pub(crate) port: Option<u16>,
    pub(crate) target_port: Option<TargetPort>,
}

/// Where a port of a Service leads to in a Pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum TargetPort {
    Number(u16),
    Name(String),
}

/// `TCP` where nothing is written, as the API server has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Protocol(pub(crate) String);

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol("TCP".to_owned())
    }
}

/// discovery.k8s.io EndpointSlice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct EndpointSlice {
    #[serde(deserialize_with = "or_default")]
    pub(crate) metadata: Metadata,
    pub(crate) address_type: AddressType,
    #[serde(deserialize_with = "or_default")]
    pub(crate) endpoints: Vec<SliceEndpoint>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ports: Vec<EndpointPort>,
}

/// `addressType` of an EndpointSlice.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) enum AddressType {
    #[default]
    #[serde(rename = "IPv4")]
    Ipv4,
    #[serde(rename = "IPv6")]
    Ipv6,
    #[serde(rename = "FQDN")]
    Fqdn,
}

/// An endpoint of an EndpointSlice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SliceEndpoint {
    #[serde(deserialize_with = "or_default")]
    pub(crate) addresses: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: SliceConditions,
    #[serde(deserialize_with = "or_default")]
    pub(crate) hostname: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) target_ref: TargetRef,
    #[serde(deserialize_with = "or_default")]
    pub(crate) zone: String,
}

/// `conditions` of an endpoint.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SliceConditions {
    pub(crate) ready: Option<bool>,
}

/// What an endpoint stands for.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TargetRef {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
}

/// A port of endpoints.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(default)]
pub(crate) struct EndpointPort {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_tcp")]
    pub(crate) protocol: Protocol,
    pub(crate) port: Option<u16>,
}

/// core/v1 Endpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Endpoints {
    #[serde(deserialize_with = "or_default")]
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) subsets: Vec<Subset>,
}

/// Addresses with the same ports.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Subset {
    #[serde(deserialize_with = "or_default")]
    pub(crate) addresses: Vec<SubsetAddress>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) not_ready_addresses: Vec<SubsetAddress>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ports: Vec<EndpointPort>,
}

/// An address of Endpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SubsetAddress {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) hostname: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) target_ref: TargetRef,
}

/// core/v1 Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pod {
    #[serde(deserialize_with = "or_default")]
    pub(crate) metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub(crate) spec: PodSpec,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: PodStatus,
}

impl Pod {
    /// One that says nothing about it is ready: who writes one down by hand means it to be there.
    pub(crate) fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.condition == "Ready").is_none_or(|condition| condition.status == "True")
    }
}

/// `spec` of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodSpec {
    #[serde(deserialize_with = "or_default")]
    pub(crate) hostname: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) subdomain: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) containers: Vec<Container>,
}

/// A container of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Container {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ports: Vec<ContainerPort>,
}

/// A port of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerPort {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_tcp")]
    pub(crate) protocol: Protocol,
    pub(crate) container_port: Option<u16>,
}

/// `status` of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) phase: String,
    #[serde(rename = "podIP", deserialize_with = "or_default")]
    pub(crate) pod_ip: String,
    #[serde(rename = "podIPs", deserialize_with = "or_default")]
    pub(crate) pod_ips: Vec<PodIp>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<PodCondition>,
}

/// One of a Pod's addresses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodIp {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip: String,
}

/// One of a Pod's conditions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodCondition {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) condition: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: String,
}

/// A field with nothing behind its name is as good as none.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn or_tcp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
    let text: String = or_default(deserializer)?;
    Ok(if text.is_empty() { Protocol::default() } else { Protocol(text) })
}
