//! Settings of a Pod's resolver: what kubelet writes into its resolv.conf.
//!
//! Source: <https://kubernetes.io/docs/concepts/services-networking/dns-pod-service/#pod-s-dns-policy>. The search
//! domains and nameservers of the node, which kubelet appends or uses, cannot be read from the API server.

use core::time::Duration;

use manifests::DnsConfig;
use serde::Deserialize;

use super::{RESPONSE_MAX, is_name};
use crate::Reader;

/// Time limit for the kubelet, so that a node that does not respond leaves time for the rest of the answer: half of the
/// time for all requests.
const KUBELET_TIME_MAX: Duration = Duration::from_secs(1);

/// Settings of a Pod's resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodResolver {
    /// Policy that takes effect.
    pub policy: DnsPolicy,
    /// Nameservers of `dnsConfig`.
    pub nameservers: Vec<String>,
    /// Search domains of `dnsConfig`.
    pub searches: Vec<String>,
    /// Option `ndots` of `dnsConfig`.
    pub ndots: Option<u64>,
    /// `clusterDomain` of the kubelet of its node; `None` without a kubelet to ask, or without a use for it. An error
    /// says why it is not known.
    pub cluster_domain: Option<Result<String, KubeletError>>,
}

/// `dnsPolicy` that takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsPolicy {
    /// The cluster DNS.
    ClusterFirst,
    /// The nameservers of the node: `Default`.
    Node,
    /// The nameservers of the node, because the Pod is on its network, where `ClusterFirst` has the effect of
    /// `Default`.
    HostNetwork,
    /// The nameservers of `dnsConfig` only.
    None,
}

/// Reason why the cluster domain of a kubelet is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubeletError {
    /// The Pod has not been scheduled.
    #[error("the Pod has no node yet")]
    NoNode,
    /// The role of the server does not allow to ask the kubelet of this node.
    #[error("the API server refuses to ask the kubelet of {0} (403; right: get nodes/proxy)")]
    Refused(String),
    /// The kubelet of this node did not respond in time.
    #[error("the kubelet of {0} cannot be asked: no response within {limit} s", limit = KUBELET_TIME_MAX.as_secs())]
    Late(String),
    /// The kubelet of this node has no understandable answer, for this reason.
    #[error("the kubelet of {0} cannot be asked: {1}")]
    NoAnswer(String, String),
    /// The kubelet of this node has no cluster domain.
    #[error("the kubelet of {0} has no clusterDomain")]
    NoDomain(String),
}

/// `spec` of a Pod, as far as it is about its resolver.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSpec {
    dns_policy: Option<String>,
    dns_config: Option<DnsConfig>,
    host_network: Option<bool>,
    node_name: Option<String>,
}

/// Answer of a kubelet to `/configz`.
#[derive(Deserialize)]
struct ConfigZ {
    #[serde(rename = "kubeletconfig")]
    settings: Settings,
}

#[derive(Deserialize)]
struct Settings {
    #[serde(rename = "clusterDomain", default)]
    cluster_domain: String,
}

impl From<&manifests::PodSpec> for PodSpec {
    fn from(spec: &manifests::PodSpec) -> PodSpec {
        PodSpec {
            dns_policy: spec.dns_policy.clone(),
            dns_config: spec.dns_config.clone(),
            host_network: spec.host_network,
            node_name: None,
        }
    }
}

impl PodSpec {
    /// Returns true for a Pod on the network of its node, with which it shares the address.
    pub(super) fn is_on_host_network(&self) -> bool {
        self.host_network.unwrap_or(false)
    }

    /// Reads what the Pod and the kubelet of its node say about its resolver. Manifests have no `reader`, and no
    /// kubelet.
    pub(super) async fn resolver(self, reader: Option<&Reader>) -> PodResolver {
        let policy = match (self.dns_policy.as_deref(), self.is_on_host_network()) {
            (Some("None"), _) => DnsPolicy::None,
            (Some("Default"), _) => DnsPolicy::Node,
            (Some("ClusterFirst") | None, true) => DnsPolicy::HostNetwork,
            // kubelet takes any other word for `ClusterFirst`; the API server refuses it.
            _ => DnsPolicy::ClusterFirst,
        };
        let DnsConfig { nameservers, searches, options } = self.dns_config.unwrap_or_default();
        // The resolver takes the last of several.
        let ndots = options.iter().flatten().rev().find(|option| option.name == "ndots");
        let ndots = ndots.and_then(|option| option.value.as_ref()?.parse().ok());
        let cluster_domain = match reader {
            Some(reader) if policy == DnsPolicy::ClusterFirst => {
                Some(cluster_domain(self.node_name.as_deref(), reader).await)
            }
            _ => None,
        };
        let [nameservers, searches] = [nameservers, searches].map(Option::unwrap_or_default);
        PodResolver { policy, nameservers, searches, ndots, cluster_domain }
    }
}

/// Asks the kubelet of a node for its cluster domain. It needs the right `get nodes/proxy`, which the usual role of a
/// DNS server does not have.
async fn cluster_domain(node: Option<&str>, reader: &Reader) -> Result<String, KubeletError> {
    let Some(node) = node.filter(|node| is_name(node)) else { return Err(KubeletError::NoNode) };
    let path = format!("/api/v1/nodes/{node}/proxy/configz");
    let no_answer = |reason: String| KubeletError::NoAnswer(node.to_owned(), reason);
    let getting = tokio::time::timeout(KUBELET_TIME_MAX, reader.get(&path, RESPONSE_MAX)).await;
    let getting = getting.map_err(|_| KubeletError::Late(node.to_owned()))?;
    let document = getting.map_err(|error| match error.status() {
        Some(403) => KubeletError::Refused(node.to_owned()),
        _ => no_answer(error.to_string()),
    })?;
    let configz: ConfigZ = serde_json::from_slice(&document.body).map_err(|error| no_answer(error.to_string()))?;
    let domain = configz.settings.cluster_domain;
    if domain.is_empty() { Err(KubeletError::NoDomain(node.to_owned())) } else { Ok(domain) }
}
