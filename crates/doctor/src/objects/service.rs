//! Services, their endpoints, namespaces and nodes.

use core::net::IpAddr;
use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Metadata, Resource, number_or_text, or_default};

/// Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Service {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: ServiceSpec,
}

/// Specification of a Service.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceSpec {
    /// Type, such as `ClusterIP`.
    #[serde(rename = "type")]
    pub kind: String,
    /// First cluster IP, `None` for a headless Service, or empty.
    #[serde(rename = "clusterIP", deserialize_with = "or_default")]
    pub cluster_ip: String,
    /// All cluster IPs.
    #[serde(rename = "clusterIPs", deserialize_with = "or_default")]
    pub cluster_ips: Vec<String>,
    /// Labels of its Pods; empty without a selector.
    #[serde(deserialize_with = "or_default")]
    pub selector: BTreeMap<String, String>,
    /// Ports.
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<Port>,
    /// Name that an ExternalName Service refers to.
    #[serde(deserialize_with = "or_default")]
    pub external_name: String,
    /// `PreferSameNode`, `PreferSameZone` or `PreferClose`; empty for no preference.
    #[serde(deserialize_with = "or_default")]
    pub traffic_distribution: String,
    /// `Cluster` or `Local`; empty means `Cluster`.
    #[serde(deserialize_with = "or_default")]
    pub internal_traffic_policy: String,
    /// `None` or `ClientIP`; empty means `None`.
    #[serde(deserialize_with = "or_default")]
    pub session_affinity: String,
    /// True if endpoints that are not ready have addresses too.
    #[serde(deserialize_with = "or_default")]
    pub publish_not_ready_addresses: bool,
}

/// Port of a Service or an EndpointSlice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Port {
    /// Name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Number.
    #[serde(deserialize_with = "or_default")]
    pub port: u16,
    /// `UDP` or `TCP`; empty means `TCP`.
    #[serde(deserialize_with = "or_default")]
    pub protocol: String,
    /// Number or name of the container's port; empty means the same number.
    #[serde(deserialize_with = "number_or_text")]
    pub target_port: String,
}

impl Port {
    /// Returns the protocol with its default.
    #[must_use]
    pub fn protocol(&self) -> &str {
        if self.protocol.is_empty() { "TCP" } else { &self.protocol }
    }
}

impl Service {
    /// Returns true without a cluster IP, but with endpoints of its own.
    #[must_use]
    pub fn is_headless(&self) -> bool {
        self.spec.cluster_ip == "None"
    }

    /// Cluster IPs; none for a headless Service.
    pub fn cluster_ips(&self) -> impl Iterator<Item = IpAddr> {
        let first = core::iter::once(&self.spec.cluster_ip).filter(|_| self.spec.cluster_ips.is_empty());
        first.chain(&self.spec.cluster_ips).filter_map(|text| text.parse().ok())
    }
}

impl Resource for Service {
    const PATH: &'static str = "/api/v1/services";
    const PLURAL: &'static str = "services";
}

/// EndpointSlice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EndpointSlice {
    /// Metadata.
    pub metadata: Metadata,
    /// Endpoints.
    #[serde(deserialize_with = "or_default")]
    pub endpoints: Vec<Endpoint>,
    /// Ports of all endpoints.
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<Port>,
}

/// Endpoint of an EndpointSlice.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Endpoint {
    /// Addresses.
    #[serde(deserialize_with = "or_default")]
    pub addresses: Vec<String>,
    /// Conditions.
    #[serde(deserialize_with = "or_default")]
    conditions: Conditions,
    /// Name of the Node; empty if not known.
    #[serde(deserialize_with = "or_default")]
    pub node_name: String,
    /// Topology zone; empty if not known.
    #[serde(deserialize_with = "or_default")]
    pub zone: String,
    /// Object that it belongs to.
    #[serde(deserialize_with = "or_default")]
    pub target_ref: ObjectReference,
    /// Clients that should use it.
    #[serde(deserialize_with = "or_default")]
    hints: Hints,
}

/// Reference to an object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ObjectReference {
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Hints {
    #[serde(deserialize_with = "or_default")]
    for_nodes: Vec<ForNode>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ForNode {
    #[serde(deserialize_with = "or_default")]
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

impl Endpoint {
    /// Returns true if it is ready. Without the condition, it is (API documentation of `EndpointConditions`).
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.conditions.ready.unwrap_or(true)
    }

    /// Returns true if it has a hint for a node. The control plane sets it for `trafficDistribution: PreferSameNode`.
    #[must_use]
    pub fn has_node_hint(&self) -> bool {
        self.hints.for_nodes.iter().any(|node| !node.name.is_empty())
    }
}

impl EndpointSlice {
    /// Name of its Service.
    #[must_use]
    pub fn service(&self) -> &str {
        self.metadata.label("kubernetes.io/service-name")
    }
}

impl Resource for EndpointSlice {
    const PATH: &'static str = "/apis/discovery.k8s.io/v1/endpointslices";
    const PLURAL: &'static str = "endpointslices";
}

/// Endpoints, the older form of EndpointSlices.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Endpoints {
    /// Metadata.
    pub metadata: Metadata,
    /// Groups of addresses.
    #[serde(deserialize_with = "or_default")]
    pub subsets: Vec<EndpointSubset>,
}

/// Group of addresses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EndpointSubset {
    /// Ready addresses.
    #[serde(deserialize_with = "or_default")]
    pub addresses: Vec<EndpointAddress>,
}

/// Address of Endpoints.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EndpointAddress {
    /// IP address.
    pub ip: String,
}

impl Resource for Endpoints {
    const PATH: &'static str = "/api/v1/endpoints";
    const PLURAL: &'static str = "endpoints";
}

/// Namespace.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Metadata.
    pub metadata: Metadata,
}

impl Resource for Namespace {
    const PATH: &'static str = "/api/v1/namespaces";
    const PLURAL: &'static str = "namespaces";
}

/// Node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Node {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: NodeSpec,
    /// Status.
    #[serde(deserialize_with = "or_default")]
    status: NodeStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeStatus {
    #[serde(deserialize_with = "or_default")]
    addresses: Vec<NodeAddress>,
    #[serde(deserialize_with = "or_default")]
    node_info: NodeInfo,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct NodeInfo {
    #[serde(deserialize_with = "or_default")]
    kube_proxy_version: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct NodeAddress {
    address: String,
}

/// Specification of a Node.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct NodeSpec {
    /// Machine at the cloud provider, such as `aws:///eu-west-1a/i-0123`.
    #[serde(rename = "providerID", deserialize_with = "or_default")]
    pub provider_id: String,
    /// True if no further Pods may start there.
    #[serde(deserialize_with = "or_default")]
    pub unschedulable: bool,
}

impl Node {
    /// Topology zone; empty if not known.
    #[must_use]
    pub fn zone(&self) -> &str {
        self.metadata.label("topology.kubernetes.io/zone")
    }

    /// Version of kube-proxy, as kubelets before 1.33 report it; empty if not known.
    #[must_use]
    pub fn kube_proxy_version(&self) -> &str {
        &self.status.node_info.kube_proxy_version
    }

    /// IP addresses.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.status.addresses.iter().filter_map(|one| one.address.parse().ok())
    }
}

impl Resource for Node {
    const PATH: &'static str = "/api/v1/nodes";
    const PLURAL: &'static str = "nodes";
}
