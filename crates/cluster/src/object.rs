//! What the edge hands in: Kubernetes objects with only what an answer needs, borrowed from the octets that they were
//! decoded from. The reducer copies what it keeps, so that decoding need not.
//!
//! The fields have the names of the API and hold its texts as they stand; what they mean is decided by the reducer.

use crate::Kind;
use crate::mesh::object::{ServiceEntry, WorkloadEntry, WorkloadPod};
pub use crate::meta::Meta;

/// What a watch saw.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A list begins, the first one or a new one: what is not applied until `Listed` does not exist any more.
    Listing,
    /// An object exists in this state.
    Applied(Object<'a>),
    /// An object is gone.
    Deleted {
        /// Its namespace; empty for a namespace or a node.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// An object exists in a state that cannot be read: what is known of it stays.
    Unreadable {
        /// Its namespace; empty for a namespace or a node.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
    /// The list is complete.
    Listed,
}

/// An object of one of the kinds that are watched.
#[derive(Clone, Debug)]
pub enum Object<'a> {
    /// core/v1 Namespace.
    Namespace(Meta<'a>),
    /// core/v1 Service.
    Service(Service<'a>),
    /// discovery.k8s.io/v1 EndpointSlice.
    EndpointSlice(EndpointSlice<'a>),
    /// core/v1 Pod.
    Pod(Pod<'a>),
    /// multicluster.x-k8s.io ServiceImport.
    ServiceImport(ServiceImport<'a>),
    /// networking.istio.io ServiceEntry.
    ServiceEntry(ServiceEntry<'a>),
    /// networking.istio.io WorkloadEntry.
    WorkloadEntry(WorkloadEntry<'a>),
    /// core/v1 Pod, in a mesh.
    WorkloadPod(WorkloadPod<'a>),
    /// core/v1 Node.
    Node(Node<'a>),
}

impl<'a> Object<'a> {
    /// Its kind.
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

    /// Its metadata.
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
}

/// A Service.
#[derive(Clone, Debug, Default)]
pub struct Service<'a> {
    /// `metadata`.
    pub meta: Meta<'a>,
    /// `spec.type`; empty means `ClusterIP`.
    pub service_type: &'a str,
    /// `spec.clusterIPs`, or `spec.clusterIP` alone if that list is empty.
    pub cluster_ips: Vec<&'a str>,
    /// `spec.externalName`.
    pub external_name: &'a str,
    /// `spec.ports`.
    pub ports: Vec<Port<'a>>,
    /// How it is reached from outside: `spec.externalIPs`, then `status.loadBalancer.ingress`, of each entry the `ip` or
    /// else the `hostname`.
    pub external: Vec<&'a str>,
}

/// A Service of several clusters.
#[derive(Clone, Debug, Default)]
pub struct ServiceImport<'a> {
    /// `metadata`.
    pub meta: Meta<'a>,
    /// `spec.type`: `ClusterSetIP` or `Headless`.
    pub import_type: &'a str,
    /// `spec.ips`.
    pub ips: Vec<&'a str>,
    /// `spec.ports`.
    pub ports: Vec<Port<'a>>,
}

/// A port of a Service or of an EndpointSlice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Port<'a> {
    /// `name`; empty if absent.
    pub name: &'a str,
    /// `protocol`; empty if absent.
    pub protocol: &'a str,
    /// `port`, if there is one.
    pub number: Option<u16>,
}

/// An EndpointSlice.
#[derive(Clone, Debug)]
pub struct EndpointSlice<'a> {
    /// `metadata`.
    pub meta: Meta<'a>,
    /// The label `kubernetes.io/service-name`, or `multicluster.kubernetes.io/service-name` in a watch of imported
    /// slices; empty if absent.
    pub service: &'a str,
    /// The label `multicluster.kubernetes.io/source-cluster`; empty if absent.
    pub source_cluster: &'a str,
    /// `addressType`.
    pub address_type: AddressType,
    /// `endpoints`, an endpoint of several addresses once for each.
    pub endpoints: Vec<Endpoint<'a>>,
    /// `ports`.
    pub ports: Vec<Port<'a>>,
}

/// `addressType` of an EndpointSlice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressType {
    /// `IPv4`.
    Ipv4,
    /// `IPv6`.
    Ipv6,
    /// `FQDN`.
    Fqdn,
}

/// One address of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub struct Endpoint<'a> {
    /// One of `addresses`.
    pub address: &'a str,
    /// `conditions.ready`.
    pub ready: Option<bool>,
    /// `hostname`; empty if absent.
    pub hostname: &'a str,
    /// `targetRef.name`; empty if absent.
    pub target: &'a str,
    /// `zone`, the topology zone that it is in; empty if absent.
    pub zone: &'a str,
}

/// A Pod. The edge watches only those that are not in phase Succeeded, Failed or Unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pod<'a> {
    /// `metadata`.
    pub meta: Meta<'a>,
    /// `status.podIP`, the primary address; empty if there is none yet.
    pub address: &'a str,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
}

/// A Node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Node<'a> {
    /// `metadata`.
    pub meta: Meta<'a>,
    /// The label `topology.kubernetes.io/zone`, or its predecessor; empty if absent.
    pub zone: &'a str,
    /// The label `topology.kubernetes.io/region`, or its predecessor; empty if absent.
    pub region: &'a str,
}
