//! Watch events with Kubernetes objects, reduced to the fields that answers need and borrowed from the decoder's
//! buffer. The reducer copies what it keeps.
//!
//! Fields have the names of the Kubernetes API and hold its values as text. The reducer interprets them.

pub mod mesh;

use core::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use self::mesh::{ServiceEntry, WorkloadEntry, WorkloadPod};
use crate::Kind;

/// Event of a watch.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A list (initial or repeated) begins. Objects not applied before the matching `Listed` no longer exist.
    Listing,
    /// An object exists in this state: an added, modified or listed object.
    Applied(Object<'a>),
    /// An object was deleted.
    Deleted {
        /// Namespace of the object; empty for a Namespace or a Node.
        namespace: &'a str,
        /// Name of the object.
        name: &'a str,
    },
    /// An object exists but cannot be decoded. Its last known state is kept.
    Unreadable {
        /// Namespace of the object; empty for a Namespace or a Node.
        namespace: &'a str,
        /// Name of the object.
        name: &'a str,
    },
    /// The list is complete.
    Listed,
}

/// Object of one of the watched kinds. It is serialised into [snapshots](crate::snapshot), whose format changes with
/// it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub enum Object<'a> {
    /// core/v1 Namespace.
    #[serde(borrow)]
    Namespace(Meta<'a>),
    /// core/v1 Service.
    #[serde(borrow)]
    Service(Service<'a>),
    /// discovery.k8s.io/v1 EndpointSlice.
    #[serde(borrow)]
    EndpointSlice(EndpointSlice<'a>),
    /// core/v1 Pod.
    #[serde(borrow)]
    Pod(Pod<'a>),
    /// multicluster.x-k8s.io ServiceImport.
    #[serde(borrow)]
    ServiceImport(ServiceImport<'a>),
    /// networking.istio.io ServiceEntry.
    #[serde(borrow)]
    ServiceEntry(ServiceEntry<'a>),
    /// networking.istio.io WorkloadEntry.
    #[serde(borrow)]
    WorkloadEntry(WorkloadEntry<'a>),
    /// core/v1 Pod, as an endpoint and a client of a mesh.
    #[serde(borrow)]
    WorkloadPod(WorkloadPod<'a>),
    /// core/v1 Node.
    #[serde(borrow)]
    Node(Node<'a>),
}

impl<'a> Object<'a> {
    /// Returns the kind. For an imported slice, it is `EndpointSlice`.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Object::Namespace(_) => Kind::Namespace,
            Object::Service(_) => Kind::Service,
            Object::EndpointSlice(_) => Kind::EndpointSlice,
            Object::Pod(_) => Kind::Pod,
            Object::ServiceImport(_) => Kind::ServiceImport,
            Object::ServiceEntry(_) => Kind::ServiceEntry,
            Object::WorkloadEntry(_) => Kind::WorkloadEntry,
            Object::WorkloadPod(_) => Kind::WorkloadPod,
            Object::Node(_) => Kind::Node,
        }
    }

    /// Returns the metadata.
    #[must_use]
    pub const fn meta(&self) -> Meta<'a> {
        match self {
            Object::Namespace(meta) => *meta,
            Object::Service(service) => service.meta,
            Object::EndpointSlice(slice) => slice.meta,
            Object::Pod(pod) => pod.meta,
            Object::ServiceImport(import) => import.meta,
            Object::ServiceEntry(entry) => entry.meta,
            Object::WorkloadEntry(entry) => entry.meta,
            Object::WorkloadPod(pod) => pod.meta,
            Object::Node(node) => node.meta,
        }
    }

    /// Returns true for a Pod that terminates: it changes nothing about what is known of the Pod.
    #[must_use]
    pub(crate) const fn is_terminating(&self) -> bool {
        matches!(self, Object::Pod(Pod { terminating: true, .. }))
    }
}

/// `metadata` of an object.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Meta<'a> {
    /// `namespace`; empty for a namespace.
    pub namespace: &'a str,
    /// `name`.
    pub name: &'a str,
    /// `resourceVersion`. An object already known in this version is skipped. Empty if the source has no versions;
    /// then every event is applied.
    pub version: &'a str,
}

impl Meta<'_> {
    /// Returns the resource version as a number. `None` if the source has none, or one that is not a number, which
    /// the API allows and no API server does.
    #[must_use]
    pub fn resource_version(&self) -> Option<NonZeroU64> {
        self.version.parse().ok()
    }
}

/// A Service.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Service<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub meta: Meta<'a>,
    /// `spec.type`; empty means `ClusterIP`.
    pub service_type: &'a str,
    /// `spec.clusterIPs`, or `spec.clusterIP` alone if that list is empty.
    #[serde(borrow)]
    pub cluster_ips: Vec<&'a str>,
    /// `spec.externalName`.
    pub external_name: &'a str,
    /// `spec.ports`.
    #[serde(borrow)]
    pub ports: Vec<Port<'a>>,
    /// External addresses: `spec.externalIPs`, then for each entry of `status.loadBalancer.ingress` its `ip`, or else
    /// its `hostname`.
    #[serde(borrow)]
    pub external: Vec<&'a str>,
}

/// A ServiceImport: a Service exported by one or more clusters of a ClusterSet (KEP-1645).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ServiceImport<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub meta: Meta<'a>,
    /// `spec.type`: `ClusterSetIP` or `Headless`.
    pub import_type: &'a str,
    /// `spec.ips`.
    #[serde(borrow)]
    pub ips: Vec<&'a str>,
    /// `spec.ports`.
    #[serde(borrow)]
    pub ports: Vec<Port<'a>>,
}

/// A port of a Service or of an EndpointSlice.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Port<'a> {
    /// `name`; empty if absent.
    pub name: &'a str,
    /// `protocol`; empty if absent.
    pub protocol: &'a str,
    /// `port`, if set.
    pub number: Option<u16>,
}

/// An EndpointSlice.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct EndpointSlice<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub meta: Meta<'a>,
    /// The label `kubernetes.io/service-name`, or `multicluster.kubernetes.io/service-name` in a watch of imported
    /// slices; empty if absent.
    pub service: &'a str,
    /// The label `multicluster.kubernetes.io/source-cluster`; empty if absent.
    pub source_cluster: &'a str,
    /// `addressType`.
    pub address_type: AddressType,
    /// `endpoints`. An endpoint with several addresses is repeated for each of them.
    #[serde(borrow)]
    pub endpoints: Vec<Endpoint<'a>>,
    /// `ports`.
    #[serde(borrow)]
    pub ports: Vec<Port<'a>>,
}

/// `addressType` of an EndpointSlice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum AddressType {
    /// `IPv4`.
    Ipv4,
    /// `IPv6`.
    Ipv6,
    /// `FQDN`.
    Fqdn,
}

/// An endpoint with one of its addresses.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Endpoint<'a> {
    /// One of `addresses`.
    pub address: &'a str,
    /// `conditions.ready`.
    pub ready: Option<bool>,
    /// `hostname`; empty if absent.
    pub hostname: &'a str,
    /// `targetRef.name`; empty if absent.
    pub target: &'a str,
    /// True if `targetRef.kind` is `Pod`.
    pub is_pod: bool,
    /// Topology zone (`zone`); empty if absent.
    pub zone: &'a str,
}

/// A Pod. Pods in phase Succeeded, Failed or Unknown are excluded by the watch's field selector.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Pod<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub meta: Meta<'a>,
    /// `status.podIPs`, or `status.podIP` alone if that list is empty; empty while none is assigned.
    #[serde(borrow)]
    pub addresses: Vec<&'a str>,
    /// True if `metadata.deletionTimestamp` is set. The state before that counts until the pod is deleted.
    pub terminating: bool,
    /// `spec.hostNetwork`.
    pub host_network: bool,
    /// `metadata.labels`: keys and values.
    #[serde(borrow)]
    pub labels: Vec<(&'a str, &'a str)>,
}

/// A Node.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Node<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub meta: Meta<'a>,
    /// Label `topology.kubernetes.io/zone` or its deprecated predecessor; empty if absent.
    pub zone: &'a str,
    /// Label `topology.kubernetes.io/region` or its deprecated predecessor; empty if absent.
    pub region: &'a str,
}
