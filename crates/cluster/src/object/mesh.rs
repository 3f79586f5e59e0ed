//! Objects of a service mesh, as passed to the reducer. Fields have the names of Istio's API and hold its values as
//! text.

use serde::{Deserialize, Serialize};

use super::Meta;

/// Label: name and value.
pub type Label<'a> = (&'a str, &'a str);

/// networking.istio.io ServiceEntry.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ServiceEntry<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub meta: Meta<'a>,
    /// `metadata.creationTimestamp`. The API server writes it in UTC, so texts sort like times. Empty if absent.
    pub created: &'a str,
    /// `spec.hosts`.
    #[serde(borrow)]
    pub hosts: Vec<&'a str>,
    /// `spec.addresses`.
    #[serde(borrow)]
    pub addresses: Vec<&'a str>,
    /// `status.addresses`, unless the label `networking.istio.io/enable-autoallocate-ip` is `false`.
    #[serde(borrow)]
    pub allocated: Vec<Allocated<'a>>,
    /// `spec.resolution`; empty means `NONE`.
    pub resolution: &'a str,
    /// The `address` of each of `spec.endpoints`.
    #[serde(borrow)]
    pub endpoints: Vec<&'a str>,
    /// `spec.workloadSelector.labels`, if there is a selector.
    #[serde(borrow)]
    pub selector: Option<Vec<Label<'a>>>,
    /// `spec.exportTo`.
    #[serde(borrow)]
    pub export_to: Vec<&'a str>,
}

/// Address allocated for a host.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Allocated<'a> {
    /// `value`.
    pub address: &'a str,
    /// `host`; empty if the address is for all hosts of the entry.
    pub host: &'a str,
}

/// networking.istio.io WorkloadEntry.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct WorkloadEntry<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub meta: Meta<'a>,
    /// `spec.address`.
    pub address: &'a str,
    /// `spec.labels`, then `metadata.labels`. If a name occurs twice, the last value wins.
    #[serde(borrow)]
    pub labels: Vec<Label<'a>>,
    /// True if the condition `Healthy` is `False`.
    pub unhealthy: bool,
}

/// core/v1 Pod, both as a workload that entries select and as a client that sends queries.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct WorkloadPod<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub meta: Meta<'a>,
    /// `status.podIPs`, or `status.podIP` alone if that list is empty.
    #[serde(borrow)]
    pub addresses: Vec<&'a str>,
    /// `metadata.labels`.
    #[serde(borrow)]
    pub labels: Vec<Label<'a>>,
    /// True if the condition `Ready` is `True` and the pod is not terminating.
    pub ready: bool,
    /// `spec.hostNetwork`. Such a pod has the address of its node, so the address does not identify the client.
    pub on_host_network: bool,
    /// True if Istio captures the pod's traffic: with a sidecar (annotation `sidecar.istio.io/status`) or in ambient
    /// mode (`ambient.istio.io/redirection` is `enabled`).
    pub captured: bool,
}
