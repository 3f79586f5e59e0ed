//! Pods, and the objects that create and protect them.

use core::net::IpAddr;

use serde::Deserialize;

use super::{Metadata, Resource, Selector, number_or_text, or_default};

/// Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: PodSpec,
    /// Status.
    pub status: PodStatus,
}

/// Specification of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodSpec {
    /// Containers.
    #[serde(deserialize_with = "or_default")]
    pub containers: Vec<Container>,
    /// Resolver policy, such as `ClusterFirst`.
    #[serde(deserialize_with = "or_default")]
    pub dns_policy: String,
    /// Resolver settings.
    #[serde(deserialize_with = "or_default")]
    pub dns_config: DnsConfig,
    /// True if it has the network of its node.
    #[serde(deserialize_with = "or_default")]
    pub host_network: bool,
    /// Name of its Node.
    #[serde(deserialize_with = "or_default")]
    pub node_name: String,
    /// Service account.
    #[serde(deserialize_with = "or_default")]
    pub service_account_name: String,
    /// Volumes.
    #[serde(deserialize_with = "or_default")]
    pub volumes: Vec<Volume>,
    /// Time in seconds between the request to end and the kill; 30 without it.
    #[serde(deserialize_with = "or_default")]
    pub termination_grace_period_seconds: Option<u64>,
}

/// Resolver settings of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DnsConfig {
    /// Name servers.
    #[serde(deserialize_with = "or_default")]
    pub nameservers: Vec<String>,
    /// Search domains.
    #[serde(deserialize_with = "or_default")]
    pub searches: Vec<String>,
}

/// Volume of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Volume {
    /// ConfigMap whose keys are its files.
    #[serde(deserialize_with = "or_default")]
    pub config_map: Option<VolumeSource>,
}

/// Object whose content is a volume.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct VolumeSource {
    /// Name, in the namespace of the Pod.
    pub name: String,
}

/// Container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Container {
    /// Name.
    pub name: String,
    /// Image.
    #[serde(deserialize_with = "or_default")]
    pub image: String,
    /// Program.
    #[serde(deserialize_with = "or_default")]
    pub command: Vec<String>,
    /// Arguments.
    #[serde(deserialize_with = "or_default")]
    pub args: Vec<String>,
    /// Environment variables.
    #[serde(deserialize_with = "or_default")]
    pub env: Vec<EnvVariable>,
    /// Ports.
    #[serde(deserialize_with = "or_default")]
    pub ports: Vec<ContainerPort>,
    /// Readiness probe.
    #[serde(deserialize_with = "or_default")]
    pub readiness_probe: Option<ReadinessProbe>,
}

/// Environment variable.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EnvVariable {
    /// Name.
    pub name: String,
    /// Value.
    #[serde(deserialize_with = "or_default")]
    pub value: String,
}

/// Port of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ContainerPort {
    /// Name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Number.
    pub container_port: u16,
    /// `UDP` or `TCP`.
    #[serde(deserialize_with = "or_default")]
    pub protocol: String,
}

impl ContainerPort {
    /// Returns the protocol with its default.
    #[must_use]
    pub fn protocol(&self) -> &str {
        if self.protocol.is_empty() { "TCP" } else { &self.protocol }
    }
}

/// Probe of a container.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Probe {
    /// Request over HTTP.
    #[serde(deserialize_with = "or_default")]
    pub http_get: Option<HttpGet>,
}

/// Readiness probe of a container.
pub type ReadinessProbe = Probe;

/// Request of a probe.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct HttpGet {
    /// Path.
    #[serde(deserialize_with = "or_default")]
    pub path: String,
    /// Number or name of the port.
    #[serde(deserialize_with = "number_or_text")]
    pub port: String,
}

/// Status of a Pod.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodStatus {
    /// Phase, such as `Running`.
    #[serde(deserialize_with = "or_default")]
    pub phase: String,
    /// First IP address.
    #[serde(rename = "podIP", deserialize_with = "or_default")]
    ip: String,
    /// All IP addresses.
    #[serde(rename = "podIPs", deserialize_with = "or_default")]
    ips: Vec<PodIp>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodIp {
    #[serde(deserialize_with = "or_default")]
    ip: String,
}

impl Pod {
    /// IP addresses; those of its node for a Pod with the network of its node.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let status = &self.status;
        core::iter::once(&status.ip).chain(status.ips.iter().map(|one| &one.ip)).filter_map(|text| text.parse().ok())
    }

    /// Returns true for a Pod that a kubelet created from a file, such as those of the control plane.
    #[must_use]
    pub fn is_static(&self) -> bool {
        self.metadata.annotations.contains_key("kubernetes.io/config.mirror")
    }
}

impl PodSpec {
    /// Returns true if a container declares this port for a protocol; `None` if no container declares ports.
    #[must_use]
    pub fn declares_port(&self, port: u16, protocol: &str) -> Option<bool> {
        let mut ports = self.containers.iter().flat_map(|container| &container.ports).peekable();
        ports.peek()?;
        Some(ports.any(|one| one.container_port == port && one.protocol() == protocol))
    }

    /// Words of all containers: programs, arguments and values of the environment.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.containers.iter().flat_map(|container| {
            let words = container.command.iter().chain(&container.args);
            words.chain(container.env.iter().map(|variable| &variable.value)).map(String::as_str)
        })
    }
}

impl Resource for Pod {
    const PATH: &'static str = "/api/v1/pods";
    const PLURAL: &'static str = "pods";
}

/// Deployment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Deployment {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: WorkloadSpec,
}

/// Specification of a Deployment or a DaemonSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct WorkloadSpec {
    /// Number of Pods of a Deployment; 1 without it.
    #[serde(deserialize_with = "or_default")]
    pub replicas: Option<u64>,
    /// Template of its Pods.
    pub template: PodTemplate,
}

/// Template of Pods.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodTemplate {
    /// Metadata.
    #[serde(deserialize_with = "or_default")]
    pub metadata: Metadata,
    /// Specification.
    #[serde(deserialize_with = "or_default")]
    pub spec: PodSpec,
}

impl Resource for Deployment {
    const PATH: &'static str = "/apis/apps/v1/deployments";
    const PLURAL: &'static str = "deployments";
}

/// DaemonSet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DaemonSet {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: WorkloadSpec,
}

/// Flag of node-cache with its local addresses.
const LOCAL_ADDRESSES: &str = "localip";

impl DaemonSet {
    /// Returns the local addresses of a node cache (`-localip`); `None` for any other DaemonSet.
    #[must_use]
    pub fn node_cache_addresses(&self) -> Option<Vec<IpAddr>> {
        let words = self.spec.template.spec.containers.iter().flat_map(|one| one.command.iter().chain(&one.args));
        let words: Vec<&String> = words.collect();
        let is_flag = |word: &str| word.starts_with('-') && word.trim_start_matches('-').starts_with(LOCAL_ADDRESSES);
        let at = words.iter().position(|word| is_flag(word))?;
        let value = match words.get(at)?.split_once('=') {
            Some((_, value)) => value,
            None => words.get(at + 1)?,
        };
        Some(value.split(',').filter_map(|address| address.trim().parse().ok()).collect())
    }
}

impl Resource for DaemonSet {
    const PATH: &'static str = "/apis/apps/v1/daemonsets";
    const PLURAL: &'static str = "daemonsets";
}

/// PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DisruptionBudget {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: DisruptionBudgetSpec,
    /// Status.
    #[serde(deserialize_with = "or_default")]
    pub status: DisruptionBudgetStatus,
}

/// Specification of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct DisruptionBudgetSpec {
    /// Selector of its Pods; `None` selects none.
    pub selector: Option<Selector>,
}

/// Status of a PodDisruptionBudget.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DisruptionBudgetStatus {
    /// Number of Pods that may be evicted now.
    pub disruptions_allowed: u64,
    /// Number of healthy Pods.
    pub current_healthy: u64,
    /// Number of healthy Pods that must remain.
    pub desired_healthy: u64,
    /// Number of Pods that it counts.
    pub expected_pods: u64,
}

impl Resource for DisruptionBudget {
    const PATH: &'static str = "/apis/policy/v1/poddisruptionbudgets";
    const PLURAL: &'static str = "poddisruptionbudgets";
}

/// Event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Event {
    /// Object that it is about.
    #[serde(deserialize_with = "or_default")]
    pub involved_object: super::service::ObjectReference,
    /// Message.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
}

impl Resource for Event {
    const PATH: &'static str = "/api/v1/events?fieldSelector=reason%3DDNSConfigForming";
    const PLURAL: &'static str = "events";
}
