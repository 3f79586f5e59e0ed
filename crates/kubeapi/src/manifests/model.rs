//! Data model of manifests. All fields are optional, since an API server fills them in.

use std::collections::BTreeMap;

use cluster::object::Meta;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use super::port;

/// Label on an EndpointSlice with the name of its Service.
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Type of a document.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Head {
    #[serde(deserialize_with = "or_default")]
    pub(crate) api_version: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) kind: Text,
}

/// Text with its line, for messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Text {
    pub(crate) text: String,
    /// Line in the YAML document, starting at 1. 0 if it is unknown: in JSON, and in an item of a list.
    pub(crate) line: usize,
}

impl From<String> for Text {
    /// Creates a text that is not in a file.
    fn from(text: String) -> Text {
        Text { text, line: 0 }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::deserialize(deserializer)?;
        Ok(Text { text: value, line: usize::try_from(referenced.line()).unwrap_or_default() })
    }
}

/// `metadata` of an object.
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
    /// Returns namespace and name.
    pub(crate) fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    /// Returns the metadata for the reducer. It has no version, so every object is compared again after a change of a
    /// file.
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

/// Entry of a load balancer: an IP address or a host name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Ingress {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) hostname: String,
}

impl Service {
    /// Returns the external addresses of the Service: `externalIPs`, then IP address or host name of each load balancer
    /// entry.
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
    pub(crate) cluster_ip: Text,
    #[serde(rename = "clusterIPs", deserialize_with = "or_default")]
    pub(crate) cluster_ips: Vec<Text>,
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

/// Port of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ServicePort {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_tcp")]
    pub(crate) protocol: Protocol,
    #[serde(deserialize_with = "port::number")]
    pub(crate) port: Option<u16>,
    pub(crate) target_port: Option<TargetPort>,
}

/// Target port of a Service port: a number, or the name of a container port.
#[derive(Clone, Debug)]
pub(crate) enum TargetPort {
    Number(u16),
    Name(String),
}

/// Protocol of a port. Defaults to `TCP`, as in the API server.
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

/// Endpoint of an EndpointSlice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SliceEndpoint {
    #[serde(deserialize_with = "or_default")]
    pub(crate) addresses: Vec<Text>,
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

/// Object that an endpoint refers to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TargetRef {
    #[serde(deserialize_with = "or_default")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
}

/// Port of an EndpointSlice or a subset.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(default)]
pub(crate) struct EndpointPort {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_tcp")]
    pub(crate) protocol: Protocol,
    #[serde(deserialize_with = "port::number")]
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

/// Addresses that share the same ports.
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

/// Address in an Endpoints object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct SubsetAddress {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip: Text,
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
    /// Returns true if the Pod has no `Ready` condition or a true one. A Pod in a manifest is assumed to run.
    pub(crate) fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.condition == "Ready").is_none_or(|condition| condition.status == "True")
    }
}

/// `spec` of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodSpec {
    #[serde(rename = "hostNetwork")]
    pub(crate) host_network: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) hostname: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) subdomain: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) containers: Vec<Container>,
}

/// Container of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Container {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ports: Vec<ContainerPort>,
}

/// Port of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ContainerPort {
    #[serde(deserialize_with = "or_default")]
    pub(crate) name: String,
    #[serde(deserialize_with = "or_tcp")]
    pub(crate) protocol: Protocol,
    #[serde(deserialize_with = "port::number")]
    pub(crate) container_port: Option<u16>,
}

/// `status` of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodStatus {
    #[serde(deserialize_with = "or_default")]
    pub(crate) phase: String,
    #[serde(rename = "podIP", deserialize_with = "or_default")]
    pub(crate) pod_ip: Text,
    #[serde(rename = "podIPs", deserialize_with = "or_default")]
    pub(crate) pod_ips: Vec<PodIp>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<PodCondition>,
}

impl PodStatus {
    /// Returns the addresses: `podIPs`, or `podIP` alone if that list is empty.
    pub(crate) fn addresses(&self) -> Vec<&str> {
        let single = Some(&*self.pod_ip.text).filter(|single| self.pod_ips.is_empty() && !single.is_empty());
        self.pod_ips.iter().map(|one| &*one.ip.text).chain(single).collect()
    }
}

/// IP address of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodIp {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip: Text,
}

/// Condition of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PodCondition {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub(crate) condition: String,
    #[serde(deserialize_with = "or_default")]
    pub(crate) status: String,
}

/// Deserializes a field whose value may be null.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn or_tcp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
    let text: String = or_default(deserializer)?;
    Ok(if text.is_empty() { Protocol::default() } else { Protocol(text) })
}
