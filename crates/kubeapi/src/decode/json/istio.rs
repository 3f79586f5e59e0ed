//! JSON objects of a mesh: Istio's resources, and Pods with the fields that make them endpoints and clients.

use cluster::mesh::object::{self, Allocated};
use cluster::object::Object;
use serde::Deserialize;

use super::labelled::{Labelled, Pairs};
use super::objects::{Metadata, Read};
use super::pod::{PodIp, addresses};
use super::text::{Text, Texts};

/// Label and value that disable automatically allocated addresses.
const NOT_ALLOCATED: (&str, &str) = ("networking.istio.io/enable-autoallocate-ip", "false");

/// networking.istio.io ServiceEntry.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceEntry<'a> {
    #[serde(borrow)]
    metadata: Labelled<'a>,
    #[serde(borrow)]
    spec: Option<EntrySpec<'a>>,
    #[serde(borrow)]
    status: Option<EntryStatus<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EntrySpec<'a> {
    #[serde(borrow)]
    hosts: Texts<'a>,
    #[serde(borrow)]
    addresses: Texts<'a>,
    #[serde(borrow)]
    resolution: Text<'a>,
    #[serde(borrow)]
    endpoints: Option<Vec<EndpointSpec<'a>>>,
    #[serde(borrow)]
    workload_selector: Option<Selector<'a>>,
    #[serde(borrow)]
    export_to: Texts<'a>,
}

/// Endpoint of a ServiceEntry, or `spec` of a WorkloadEntry.
#[derive(Default, Deserialize)]
#[serde(default)]
struct EndpointSpec<'a> {
    #[serde(borrow)]
    address: Text<'a>,
    #[serde(borrow)]
    labels: Pairs<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Selector<'a> {
    #[serde(borrow)]
    labels: Pairs<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EntryStatus<'a> {
    #[serde(borrow)]
    addresses: Option<Vec<Address<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Address<'a> {
    #[serde(borrow)]
    value: Text<'a>,
    #[serde(borrow)]
    host: Text<'a>,
}

impl Read for ServiceEntry<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata.common
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        let mut entry = object::ServiceEntry {
            meta: self.metadata().meta(),
            created: &self.metadata.created,
            ..object::ServiceEntry::default()
        };
        if let Some(spec) = &self.spec {
            entry.hosts = texts(&spec.hosts);
            entry.addresses = texts(&spec.addresses);
            entry.resolution = &spec.resolution;
            entry.endpoints = spec.endpoints.iter().flatten().map(|endpoint| &*endpoint.address).collect();
            entry.selector = spec.workload_selector.as_ref().map(|selector| selector.labels.iter().collect());
            entry.export_to = texts(&spec.export_to);
        }
        let allocated = self.status.iter().flat_map(|status| status.addresses.iter().flatten());
        if !self.metadata.labels.iter().any(|label| label == NOT_ALLOCATED) {
            entry.allocated =
                allocated.map(|address| Allocated { address: &address.value, host: &address.host }).collect();
        }
        Ok(Object::ServiceEntry(entry))
    }
}

/// networking.istio.io WorkloadEntry.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct WorkloadEntry<'a> {
    #[serde(borrow)]
    metadata: Labelled<'a>,
    #[serde(borrow)]
    spec: Option<EndpointSpec<'a>>,
    #[serde(borrow)]
    status: Option<Conditions<'a>>,
}

/// `status` with conditions.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions<'a> {
    #[serde(borrow)]
    conditions: Option<Vec<Condition<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Condition<'a> {
    #[serde(rename = "type", borrow)]
    what: Text<'a>,
    #[serde(borrow)]
    status: Text<'a>,
}

fn says(conditions: Option<&Vec<Condition<'_>>>, what: &str, status: &str) -> bool {
    conditions.into_iter().flatten().any(|condition| &*condition.what == what && &*condition.status == status)
}

impl Read for WorkloadEntry<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata.common
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        let own = self.spec.iter().flat_map(|spec| spec.labels.iter());
        let conditions = self.status.as_ref().and_then(|status| status.conditions.as_ref());
        Ok(Object::WorkloadEntry(object::WorkloadEntry {
            meta: self.metadata().meta(),
            address: self.spec.as_ref().map_or("", |spec| &spec.address),
            labels: own.chain(self.metadata.labels.iter()).collect(),
            unhealthy: says(conditions, "Healthy", "False"),
        }))
    }
}

/// core/v1 Pod as a workload of a mesh.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct WorkloadPod<'a> {
    #[serde(borrow)]
    metadata: Labelled<'a>,
    spec: Option<PodSpec>,
    #[serde(borrow)]
    status: Option<PodStatus<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    host_network: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus<'a> {
    #[serde(rename = "podIP", borrow)]
    pod_ip: Text<'a>,
    #[serde(rename = "podIPs", borrow)]
    pod_ips: Option<Vec<PodIp<'a>>>,
    #[serde(borrow)]
    conditions: Option<Vec<Condition<'a>>>,
}

impl PodStatus<'_> {
    fn addresses(&self) -> Vec<&str> {
        addresses(self.pod_ips.as_deref(), &self.pod_ip)
    }
}

impl Read for WorkloadPod<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata.common
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        let conditions = self.status.as_ref().and_then(|status| status.conditions.as_ref());
        let terminates = self.metadata().deletion_timestamp.is_some();
        Ok(Object::WorkloadPod(object::WorkloadPod {
            meta: self.metadata().meta(),
            addresses: self.status.as_ref().map(PodStatus::addresses).unwrap_or_default(),
            labels: self.metadata.labels.iter().collect(),
            ready: !terminates && says(conditions, "Ready", "True"),
            on_host_network: self.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default(),
            captured: self.metadata.captured,
        }))
    }
}

fn texts<'a>(texts: &'a Texts<'_>) -> Vec<&'a str> {
    texts.iter().map(|text| &**text).collect()
}

#[cfg(test)]
#[path = "istio_tests.rs"]
mod tests;
