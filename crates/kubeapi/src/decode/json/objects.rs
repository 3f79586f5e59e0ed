//! Kubernetes objects in JSON, with only the fields that answers need. Serde skips the others while parsing.
//!
//! The API sometimes writes `null` for an empty list, so every field may be `null` or absent.

use cluster::object::{self, Meta, Object};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::text::{Text, Texts};
use crate::decode::{POD, address_type};

/// Watch event.
#[derive(Deserialize)]
#[serde(bound(deserialize = "O: Deserialize<'de>"))]
pub(crate) struct Event<'a, O> {
    #[serde(rename = "type", borrow, default)]
    pub(crate) what: Text<'a>,
    pub(crate) object: O,
}

/// `metadata` of an object.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata<'a> {
    #[serde(borrow)]
    pub(super) namespace: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow)]
    pub(super) resource_version: Text<'a>,
    #[serde(borrow)]
    pub(super) labels: Option<Labels<'a>>,
    #[serde(borrow)]
    pub(super) annotations: Option<Annotations<'a>>,
    pub(super) deletion_timestamp: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Labels<'a> {
    #[serde(rename = "kubernetes.io/service-name", borrow)]
    service: Text<'a>,
    #[serde(rename = "multicluster.kubernetes.io/service-name", borrow)]
    common_service: Text<'a>,
    #[serde(rename = "multicluster.kubernetes.io/source-cluster", borrow)]
    source_cluster: Text<'a>,
    #[serde(rename = "topology.kubernetes.io/zone", borrow)]
    zone: Text<'a>,
    #[serde(rename = "topology.kubernetes.io/region", borrow)]
    region: Text<'a>,
    /// Name of the zone label before Kubernetes 1.17.
    #[serde(rename = "failure-domain.beta.kubernetes.io/zone", borrow)]
    old_zone: Text<'a>,
    #[serde(rename = "failure-domain.beta.kubernetes.io/region", borrow)]
    old_region: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Annotations<'a> {
    #[serde(rename = "endpoints.kubernetes.io/last-change-trigger-time", borrow)]
    pub(super) trigger: Text<'a>,
    #[serde(rename = "k8s.io/initial-events-end", borrow)]
    pub(super) initial_events_end: Text<'a>,
}

impl Metadata<'_> {
    pub(crate) fn meta(&self) -> Meta<'_> {
        Meta { namespace: &self.namespace, name: &self.name, version: &self.resource_version }
    }

    /// Returns the time of the change that triggered an EndpointSlice, or an empty string.
    pub(crate) fn trigger(&self) -> &str {
        self.annotations.as_ref().map_or("", |annotations| &annotations.trigger)
    }

    /// Returns true for the bookmark at the end of a streaming list.
    pub(crate) fn ends_list(&self) -> bool {
        self.annotations.as_ref().is_some_and(|annotations| &*annotations.initial_events_end == "true")
    }
}

/// `metadata` of a list.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ListMetadata<'a> {
    #[serde(borrow)]
    pub(crate) resource_version: Text<'a>,
    #[serde(rename = "continue", borrow)]
    pub(crate) token: Text<'a>,
    #[serde(rename = "remainingItemCount")]
    pub(crate) left: Option<u64>,
}

/// Fields that all objects have in common, and those of a Status.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Common<'a> {
    #[serde(borrow)]
    pub(crate) metadata: Metadata<'a>,
    pub(crate) code: Option<u16>,
    #[serde(borrow)]
    pub(crate) message: Text<'a>,
}

/// Decoded object.
pub(crate) trait Read {
    fn metadata(&self) -> &Metadata<'_>;

    /// Converts the object for the reducer. `Err` has the description of the error.
    fn object(&self) -> Result<Object<'_>, &'static str>;
}

/// core/v1 Namespace.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Namespace<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

impl Read for Namespace<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        Ok(Object::Namespace(self.metadata.meta()))
    }
}

/// core/v1 Service.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Service<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    spec: Option<ServiceSpec<'a>>,
    #[serde(borrow)]
    status: Option<ServiceStatus<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceSpec<'a> {
    #[serde(rename = "type", borrow)]
    service_type: Text<'a>,
    #[serde(rename = "clusterIP", borrow)]
    cluster_ip: Text<'a>,
    #[serde(rename = "clusterIPs", borrow)]
    cluster_ips: Texts<'a>,
    #[serde(borrow)]
    external_name: Text<'a>,
    #[serde(rename = "externalIPs", borrow)]
    external_ips: Texts<'a>,
    #[serde(borrow)]
    ports: Option<Vec<Port<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ServiceStatus<'a> {
    #[serde(borrow)]
    load_balancer: Option<LoadBalancer<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LoadBalancer<'a> {
    #[serde(borrow)]
    ingress: Option<Vec<Ingress<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ingress<'a> {
    #[serde(borrow)]
    ip: Text<'a>,
    #[serde(borrow)]
    hostname: Text<'a>,
}

impl Service<'_> {
    /// Returns the entries of the load balancer: IP address, or else host name of each.
    fn ingress(&self) -> impl Iterator<Item = &str> {
        let balancer = self.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let entries = balancer.and_then(|balancer| balancer.ingress.as_deref()).unwrap_or_default();
        let texts = entries.iter().map(|entry| if entry.ip.is_empty() { &*entry.hostname } else { &*entry.ip });
        texts.filter(|text| !text.is_empty())
    }
}

impl Read for Service<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        let meta = self.metadata.meta();
        let Some(spec) = &self.spec else { return Ok(Object::Service(object::Service { meta, ..Default::default() })) };
        let mut cluster_ips: Vec<&str> = spec.cluster_ips.iter().map(|text| &**text).collect();
        if cluster_ips.is_empty() {
            cluster_ips.push(&spec.cluster_ip);
        }
        Ok(Object::Service(object::Service {
            meta,
            service_type: &spec.service_type,
            cluster_ips,
            external_name: &spec.external_name,
            ports: ports(spec.ports.as_deref()),
            external: spec.external_ips.iter().map(|text| &**text).chain(self.ingress()).collect(),
        }))
    }
}

/// multicluster.x-k8s.io ServiceImport. The fields are in `spec`, or in newer API versions at the top level.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServiceImport<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    spec: Option<ImportSpec<'a>>,
    #[serde(rename = "type", borrow)]
    import_type: Text<'a>,
    #[serde(borrow)]
    ips: Texts<'a>,
    #[serde(borrow)]
    ports: Option<Vec<Port<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ImportSpec<'a> {
    #[serde(rename = "type", borrow)]
    import_type: Text<'a>,
    #[serde(borrow)]
    ips: Texts<'a>,
    #[serde(borrow)]
    ports: Option<Vec<Port<'a>>>,
}

impl Read for ServiceImport<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        let (import_type, ips, own) = match &self.spec {
            Some(spec) => (&spec.import_type, &spec.ips, &spec.ports),
            None => (&self.import_type, &self.ips, &self.ports),
        };
        Ok(Object::ServiceImport(object::ServiceImport {
            meta: self.metadata.meta(),
            import_type,
            ips: ips.iter().map(|text| &**text).collect(),
            ports: ports(own.as_deref()),
        }))
    }
}

/// Port of a Service or an EndpointSlice.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Port<'a> {
    #[serde(borrow)]
    name: Text<'a>,
    #[serde(borrow)]
    protocol: Text<'a>,
    port: Option<u16>,
}

fn ports<'a>(ports: Option<&'a [Port<'_>]>) -> Vec<object::Port<'a>> {
    let port = |port: &'a Port<'_>| object::Port { name: &port.name, protocol: &port.protocol, number: port.port };
    ports.unwrap_or_default().iter().map(port).collect()
}

/// discovery.k8s.io/v1 EndpointSlice.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct EndpointSlice<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    #[serde(borrow)]
    address_type: Text<'a>,
    #[serde(borrow)]
    endpoints: Option<Vec<Endpoint<'a>>>,
    #[serde(borrow)]
    ports: Option<Vec<Port<'a>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Endpoint<'a> {
    #[serde(borrow)]
    addresses: Texts<'a>,
    conditions: Option<Conditions>,
    #[serde(borrow)]
    hostname: Text<'a>,
    #[serde(borrow)]
    target_ref: Option<Target<'a>>,
    #[serde(borrow)]
    zone: Text<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Target<'a> {
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    name: Text<'a>,
}

impl Endpoint<'_> {
    fn addresses(&self) -> impl Iterator<Item = object::Endpoint<'_>> {
        self.addresses.iter().map(|address| object::Endpoint {
            address,
            ready: self.conditions.as_ref().and_then(|conditions| conditions.ready),
            hostname: &self.hostname,
            target: self.target_ref.as_ref().map_or("", |target| &target.name),
            is_pod: self.target_ref.as_ref().is_some_and(|target| &*target.kind == POD),
            zone: &self.zone,
        })
    }
}

impl Read for EndpointSlice<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        let address_type = address_type(&self.address_type)?;
        let given = self.endpoints.as_deref().unwrap_or_default();
        let mut endpoints = Vec::with_capacity(given.iter().map(|endpoint| endpoint.addresses.len()).sum());
        endpoints.extend(given.iter().flat_map(Endpoint::addresses));
        Ok(Object::EndpointSlice(object::EndpointSlice {
            meta: self.metadata.meta(),
            service: self.metadata.labels.as_ref().map_or("", |labels| &labels.service),
            source_cluster: "",
            address_type,
            endpoints,
            ports: ports(self.ports.as_deref()),
        }))
    }
}

/// EndpointSlice of a ServiceImport, which another label names.
#[derive(Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct ImportedSlice<'a> {
    #[serde(borrow)]
    slice: EndpointSlice<'a>,
}

impl Read for ImportedSlice<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.slice.metadata
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        let mut object = self.slice.object()?;
        if let (Object::EndpointSlice(slice), Some(labels)) = (&mut object, &self.slice.metadata.labels) {
            slice.service = &labels.common_service;
            slice.source_cluster = &labels.source_cluster;
        }
        Ok(object)
    }
}

/// core/v1 Node.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

impl Read for Node<'_> {
    fn metadata(&self) -> &Metadata<'_> {
        &self.metadata
    }

    fn object(&self) -> Result<Object<'_>, &'static str> {
        let (meta, labels) = (self.metadata.meta(), self.metadata.labels.as_ref());
        let (zone, region) = labels.map_or(("", ""), |labels| {
            let first = |newer, older| if str::is_empty(newer) { older } else { newer };
            (first(&*labels.zone, &*labels.old_zone), first(&*labels.region, &*labels.old_region))
        });
        Ok(Object::Node(object::Node { meta, zone, region }))
    }
}
