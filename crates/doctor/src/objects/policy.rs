//! Network policies.

use serde::Deserialize;
use serde_json::Value;

use super::{Metadata, Resource, Selector, number_or_text, or_default};

/// NetworkPolicy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct NetworkPolicy {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    #[serde(deserialize_with = "or_default")]
    pub spec: PolicySpec,
}

/// Specification of a NetworkPolicy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PolicySpec {
    /// Pods that it applies to.
    #[serde(deserialize_with = "or_default")]
    pub pod_selector: Selector,
    /// Directions: `Ingress` and `Egress`. The API server fills them in.
    #[serde(deserialize_with = "or_default")]
    pub policy_types: Vec<String>,
    /// Rules for packets to the Pods.
    #[serde(deserialize_with = "or_default")]
    pub ingress: Vec<PolicyRule>,
    /// Rules for packets from the Pods.
    #[serde(deserialize_with = "or_default")]
    pub egress: Vec<PolicyRule>,
}

/// Rule of a NetworkPolicy.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PolicyRule {
    /// Ports; empty means all.
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<PolicyPort>,
    /// Peers that may connect; empty means all.
    #[serde(deserialize_with = "or_default")]
    pub from: Vec<Peer>,
    /// Peers that may be connected to; empty means all.
    #[serde(deserialize_with = "or_default")]
    pub to: Vec<Peer>,
}

/// Port of a rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PolicyPort {
    /// Protocol; empty means `TCP`.
    #[serde(deserialize_with = "or_default")]
    pub protocol: String,
    /// Number or name; empty means all ports.
    #[serde(deserialize_with = "number_or_text")]
    pub port: String,
    /// Last port of a range.
    #[serde(deserialize_with = "or_default")]
    pub end_port: Option<u16>,
}

/// Peer of a rule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Peer {
    /// Pods.
    #[serde(deserialize_with = "or_default")]
    pub pod_selector: Option<Selector>,
    /// Namespaces; that of the policy without it.
    #[serde(deserialize_with = "or_default")]
    pub namespace_selector: Option<Selector>,
    /// Addresses.
    #[serde(deserialize_with = "or_default")]
    pub ip_block: Option<IpBlock>,
}

/// Range of addresses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct IpBlock {
    /// Range.
    pub cidr: String,
    /// Ranges that are not part of it.
    #[serde(deserialize_with = "or_default")]
    pub except: Vec<String>,
}

impl PolicyPort {
    /// Returns true if it includes a protocol and one of these port numbers. A port with a name counts, because its
    /// number is that of each Pod.
    #[must_use]
    pub fn includes(&self, protocol: &str, ports: &[u16]) -> bool {
        let own = if self.protocol.is_empty() { "TCP" } else { &self.protocol };
        let is_in_range = |first: u16| ports.iter().any(|port| (first..=self.end_port.unwrap_or(first)).contains(port));
        own == protocol && (self.port.is_empty() || self.port.parse().map_or(true, is_in_range))
    }
}

impl NetworkPolicy {
    /// Returns true if it restricts a direction.
    #[must_use]
    pub fn restricts(&self, direction: &str) -> bool {
        self.spec.policy_types.iter().any(|known| known == direction)
    }
}

impl Resource for NetworkPolicy {
    const PATH: &'static str = "/apis/networking.k8s.io/v1/networkpolicies";
    const PLURAL: &'static str = "networkpolicies";
}

/// Policy of Cilium.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct CiliumPolicy {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification, as it is.
    pub spec: Value,
}
