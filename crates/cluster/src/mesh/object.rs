//! The objects of a mesh as the edge hands them in. The fields have the names of Istio's API and hold its texts.

use crate::meta::Meta;

/// A label: its name and its value.
pub type Label<'a> = (&'a str, &'a str);

/// networking.istio.io ServiceEntry.
#[derive(Clone, Debug, Default)]
pub struct ServiceEntry<'a> {
    /// `metadata`.
    pub meta: Meta<'a>,
    /// `metadata.creationTimestamp` as the API server writes it, in UTC, so that texts have the order of times; empty if
    /// there is none.
    pub created: &'a str,
    /// `spec.hosts`.
    pub hosts: Vec<&'a str>,
    /// `spec.addresses`.
    pub addresses: Vec<&'a str>,
    /// `status.addresses`, unless the label `networking.istio.io/enable-autoallocate-ip` is `false`.
    pub allocated: Vec<Allocated<'a>>,
    /// `spec.resolution`; empty means `NONE`.
    pub resolution: &'a str,
    /// The `address` of each of `spec.endpoints`.
    pub endpoints: Vec<&'a str>,
    /// `spec.workloadSelector.labels`, if there is a selector.
    pub selector: Option<Vec<Label<'a>>>,
    /// `spec.exportTo`.
    pub export_to: Vec<&'a str>,
}

/// An address that was allocated for a host.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocated<'a> {
    /// `value`.
    pub address: &'a str,
    /// `host`; empty stands for all hosts of the entry.
    pub host: &'a str,
}

/// networking.istio.io WorkloadEntry.
#[derive(Clone, Debug, Default)]
pub struct WorkloadEntry<'a> {
    /// `metadata`.
    pub meta: Meta<'a>,
    /// `spec.address`.
    pub address: &'a str,
    /// `spec.labels` and `metadata.labels`; of two of one name the later one counts.
    pub labels: Vec<Label<'a>>,
    /// Whether the condition `Healthy` is `False`.
    pub unhealthy: bool,
}

/// core/v1 Pod, as a workload that entries select and as a client that asks.
#[derive(Clone, Debug, Default)]
pub struct WorkloadPod<'a> {
    /// `metadata`.
    pub meta: Meta<'a>,
    /// `status.podIPs`, or `status.podIP` alone if that list is empty.
    pub addresses: Vec<&'a str>,
    /// `metadata.labels`.
    pub labels: Vec<Label<'a>>,
    /// Whether its condition `Ready` is `True` and it does not terminate.
    pub ready: bool,
    /// `spec.hostNetwork`: its address is that of its node, and says nothing about who asks.
    pub on_host_network: bool,
    /// Whether Istio captures its traffic: by a sidecar (annotation `sidecar.istio.io/status`) or on its node
    /// (`ambient.istio.io/redirection` is `enabled`).
    pub captured: bool,
}
