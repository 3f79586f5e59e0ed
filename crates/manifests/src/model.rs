//! Data model of manifests. All fields are optional, since an API server fills them in.

use std::collections::BTreeMap;

use cluster::object::Meta;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

use super::port::{self, TargetPort};

/// Label on an EndpointSlice with the name of its Service.
pub const SERVICE_NAME: &str = "kubernetes.io/service-name";

/// Type of a document.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Head {
    #[serde(deserialize_with = "or_default")]
    pub(crate) api_version: String,
    #[serde(deserialize_with = "or_default")]
    pub kind: Text,
}

/// Text with its line, for messages.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub text: String,
    /// Line in the YAML document, starting at 1. 0 if it is unknown: in JSON, and in an item of a list.
    pub line: usize,
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
pub struct Metadata {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_default")]
    pub namespace: String,
    #[serde(deserialize_with = "or_default")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing)]
    pub deletion_timestamp: Option<IgnoredAny>,
}

impl Metadata {
    /// Returns namespace and name.
    pub fn key(&self) -> (String, String) {
        (self.namespace.clone(), self.name.clone())
    }

    /// Returns the metadata for the reducer. It has no version, so every object is compared again after a change of a
    /// file.
    pub fn meta(&self) -> Meta<'_> {
        Meta { namespace: &self.namespace, name: &self.name, version: "" }
    }

    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.get(name).map(String::as_str)
    }
}

/// core/v1 Namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    #[serde(deserialize_with = "or_default")]
    pub metadata: Metadata,
}

/// core/v1 Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    #[serde(deserialize_with = "or_default")]
    pub metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub spec: ServiceSpec,
    #[serde(deserialize_with = "or_default")]
    pub status: ServiceStatus,
}

/// `status` of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceStatus {
    #[serde(deserialize_with = "or_default")]
    pub load_balancer: LoadBalancer,
}

/// `status.loadBalancer` of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LoadBalancer {
    #[serde(deserialize_with = "or_default")]
    pub ingress: Vec<Ingress>,
}

/// Entry of a load balancer: an IP address or a host name.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Ingress {
    #[serde(deserialize_with = "or_default")]
    pub ip: String,
    #[serde(deserialize_with = "or_default")]
    pub hostname: String,
}

impl Service {
    /// Returns the external addresses of the Service: `externalIPs`, then IP address or host name of each load balancer
    /// entry.
    pub fn external(&self) -> impl Iterator<Item = &str> {
        let entries = self.status.load_balancer.ingress.iter();
        let ingress = entries.map(|entry| if entry.ip.is_empty() { &*entry.hostname } else { &*entry.ip });
        self.spec.external_ips.iter().map(String::as_str).chain(ingress).filter(|text| !text.is_empty())
    }
}

/// multicluster.x-k8s.io ServiceImport.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ServiceImport {
    #[serde(deserialize_with = "or_default")]
    pub metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub spec: ImportSpec,
}

/// `spec` of a ServiceImport.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ImportSpec {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub import_type: String,
    #[serde(deserialize_with = "or_default")]
    pub ips: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<ServicePort>,
}

/// `spec` of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceSpec {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub service_type: String,
    #[serde(rename = "clusterIP", deserialize_with = "or_default")]
    pub cluster_ip: Text,
    #[serde(rename = "clusterIPs", deserialize_with = "or_default")]
    pub cluster_ips: Vec<Text>,
    #[serde(deserialize_with = "or_default")]
    pub external_name: String,
    #[serde(rename = "externalIPs", deserialize_with = "or_default")]
    pub external_ips: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<ServicePort>,
    #[serde(deserialize_with = "or_default")]
    pub selector: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_default")]
    pub ip_families: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub ip_family_policy: String,
    #[serde(deserialize_with = "or_default")]
    pub publish_not_ready_addresses: bool,
}

/// Port of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServicePort {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_tcp")]
    pub protocol: Protocol,
    #[serde(deserialize_with = "port::number")]
    pub port: Option<u16>,
    pub target_port: Option<TargetPort>,
}

/// Protocol of a port. Defaults to `TCP`, as in the API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Protocol(pub String);

impl Default for Protocol {
    fn default() -> Protocol {
        Protocol("TCP".to_owned())
    }
}

/// discovery.k8s.io EndpointSlice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EndpointSlice {
    #[serde(deserialize_with = "or_default")]
    pub metadata: Metadata,
    pub address_type: AddressType,
    #[serde(deserialize_with = "or_default")]
    pub endpoints: Vec<SliceEndpoint>,
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<EndpointPort>,
}

/// `addressType` of an EndpointSlice.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub enum AddressType {
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
pub struct SliceEndpoint {
    #[serde(deserialize_with = "or_default")]
    pub addresses: Vec<Text>,
    #[serde(deserialize_with = "or_default")]
    pub conditions: SliceConditions,
    #[serde(deserialize_with = "or_default")]
    pub hostname: String,
    #[serde(deserialize_with = "or_default")]
    pub target_ref: TargetRef,
    #[serde(deserialize_with = "or_default")]
    pub zone: String,
}

/// `conditions` of an endpoint.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SliceConditions {
    pub ready: Option<bool>,
}

/// Object that an endpoint refers to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct TargetRef {
    #[serde(deserialize_with = "or_default")]
    pub kind: String,
    #[serde(deserialize_with = "or_default")]
    pub name: String,
}

/// Port of an EndpointSlice or a subset.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(default)]
pub struct EndpointPort {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_tcp")]
    pub protocol: Protocol,
    #[serde(deserialize_with = "port::number")]
    pub port: Option<u16>,
}

/// core/v1 Endpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Endpoints {
    #[serde(deserialize_with = "or_default")]
    pub metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub subsets: Vec<Subset>,
}

/// Addresses that share the same ports.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Subset {
    #[serde(deserialize_with = "or_default")]
    pub addresses: Vec<SubsetAddress>,
    #[serde(deserialize_with = "or_default")]
    pub not_ready_addresses: Vec<SubsetAddress>,
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<EndpointPort>,
}

/// Address in an Endpoints object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SubsetAddress {
    #[serde(deserialize_with = "or_default")]
    pub ip: Text,
    #[serde(deserialize_with = "or_default")]
    pub hostname: String,
    #[serde(deserialize_with = "or_default")]
    pub target_ref: TargetRef,
}

/// core/v1 Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    #[serde(deserialize_with = "or_default")]
    pub metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub spec: PodSpec,
    #[serde(deserialize_with = "or_default")]
    pub status: PodStatus,
}

impl Pod {
    /// Returns true if the Pod has no `Ready` condition or a true one. A Pod in a manifest is assumed to run.
    pub fn is_ready(&self) -> bool {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.condition == "Ready").is_none_or(|condition| condition.status == "True")
    }
}

/// `spec` of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodSpec {
    #[serde(rename = "hostNetwork")]
    pub host_network: Option<bool>,
    #[serde(deserialize_with = "or_default")]
    pub hostname: String,
    #[serde(deserialize_with = "or_default")]
    pub subdomain: String,
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    #[serde(rename = "dnsPolicy")]
    pub dns_policy: Option<String>,
    #[serde(rename = "dnsConfig")]
    pub dns_config: Option<DnsConfig>,
}

/// `dnsConfig` of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DnsConfig {
    pub nameservers: Option<Vec<String>>,
    pub searches: Option<Vec<String>>,
    pub options: Option<Vec<DnsOption>>,
}

/// Option of a resolver, such as `ndots`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DnsOption {
    pub name: String,
    pub value: Option<String>,
}

/// Container of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Container {
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<ContainerPort>,
}

/// Port of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    #[serde(deserialize_with = "or_tcp")]
    pub protocol: Protocol,
    #[serde(deserialize_with = "port::number")]
    pub container_port: Option<u16>,
}

/// `status` of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    #[serde(deserialize_with = "or_default")]
    pub phase: String,
    #[serde(rename = "podIP", deserialize_with = "or_default")]
    pub pod_ip: Text,
    #[serde(rename = "podIPs", deserialize_with = "or_default")]
    pub pod_ips: Vec<PodIp>,
    #[serde(deserialize_with = "or_default")]
    pub conditions: Vec<PodCondition>,
}

impl PodStatus {
    /// Returns the addresses: `podIPs`, or `podIP` alone if that list is empty.
    pub fn addresses(&self) -> Vec<&str> {
        let single = Some(&*self.pod_ip.text).filter(|single| self.pod_ips.is_empty() && !single.is_empty());
        self.pod_ips.iter().map(|one| &*one.ip.text).chain(single).collect()
    }
}

/// IP address of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodIp {
    #[serde(deserialize_with = "or_default")]
    pub ip: Text,
}

/// Condition of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodCondition {
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub condition: String,
    #[serde(deserialize_with = "or_default")]
    pub status: String,
}

/// Deserializes a field whose value may be null.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

fn or_tcp<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Protocol, D::Error> {
    let text: String = or_default(deserializer)?;
    Ok(if text.is_empty() { Protocol::default() } else { Protocol(text) })
}
