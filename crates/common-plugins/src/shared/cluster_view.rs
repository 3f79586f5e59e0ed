//! The cluster of a server block as its *kubernetes* stanza serves it. The plugin publishes it to the plugins above, so
//! that these need no watches of their own and agree with it on which names exist.

use std::net::IpAddr;
use std::sync::Arc;

use cluster::{Address, ClusterHandle, Clusters, Index, Kind, NamedPod, Request, Source};
use config::setup::{InspectCluster, InspectedPod};
use engine::{Failure, Response, Zones};
use host::FollowError;
use wire::{EdeCode, Name, NameRef};

/// Maximum TTL of stale records in seconds, so that clients ask again soon after the data is current.
const STALE_TTL_MAX: u32 = 5;

/// A cluster as one stanza serves it, published as `Arc<Exposed>`.
pub struct Exposed {
    /// Index that answers are built from.
    pub index: Arc<Index>,
    /// Keeps the watches of the cluster running.
    handle: Arc<dyn ClusterHandle>,
    /// Forward zones that hold this cluster's own names.
    pub zones: Zones,
    /// True if Pods are watched.
    pub has_pods: bool,
    /// True if EndpointSlices are watched.
    pub has_endpoints: bool,
    /// Source of the cluster's objects.
    pub source: Source,
    /// Addresses of this machine, without loopback addresses.
    pub local_addresses: Arc<[IpAddr]>,
    /// Namespaces to serve. If empty, all are served.
    namespaces: Box<[Box<[u8]>]>,
}

impl Exposed {
    /// Starts to follow a cluster.
    ///
    /// # Errors
    /// An error if following cannot even start.
    pub fn follow(
        clusters: &dyn Clusters,
        request: &Request,
        zones: Zones,
        local_addresses: Arc<[IpAddr]>,
    ) -> Result<Exposed, FollowError> {
        let handle = clusters.follow(request)?;
        Ok(Exposed {
            index: Arc::clone(handle.index()),
            handle,
            zones,
            has_pods: request.pods,
            has_endpoints: request.endpoints,
            source: request.source.clone(),
            local_addresses,
            namespaces: request.namespaces.iter().map(|name| name.as_bytes().into()).collect(),
        })
    }

    /// Returns what is wrong with the files that describe the cluster, if they were only checked.
    pub fn warnings(&self) -> &[String] {
        self.handle.warnings()
    }

    /// Returns true if a namespace exists and the stanza serves it.
    pub fn shows(&self, namespace: &[u8]) -> bool {
        let listed = self.namespaces.is_empty() || self.namespaces.iter().any(|listed| **listed == *namespace);
        listed && self.index.namespace_exists(namespace)
    }

    /// Marks a complete response as stale if the data is. Returns true if so.
    pub fn mark_stale(&self, denies: bool, response: &mut Response) -> bool {
        mark_stale(&self.index, denies, response)
    }
}

/// Marks a complete response as stale (RFC 8914 §4.4, §4.20) if the data of the index comes from an earlier process
/// or if the API server has confirmed it too long ago. Returns true if so.
pub fn mark_stale(index: &Index, denies: bool, response: &mut Response) -> bool {
    let code = if denies { EdeCode::STALE_NXDOMAIN } else { EdeCode::STALE_ANSWER };
    match index.stale_seconds() {
        _ if index.is_remembered() => response.set_ede(code, "not confirmed by the API server yet"),
        Some(age) => response.write_ede(code, format_args!("last confirmed by the API server {age} s ago")),
        None => return false,
    }
    response.message.cap_ttls(STALE_TTL_MAX);
    true
}

impl Exposed {
    /// Returns the pods at an address, if their names are known.
    fn named_pods_at(&self, address: IpAddr) -> Vec<InspectedPod> {
        let mut pods = Vec::new();
        self.index.pods_at(address, |pod| {
            pods.push(InspectedPod {
                namespace: pod.namespace().to_owned(),
                name: Some(pod.name()),
                service: None,
                on_host_network: pod.uses_host_network(),
            });
        });
        host::sorting::sort_by(&mut pods, |one, other| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        pods
    }

    /// Reads the only pod at an address. `None` for an address of a node, which several pods may have.
    pub fn only_pod_at<T>(&self, address: IpAddr, read: impl Fn(NamedPod<'_>) -> T) -> Option<T> {
        let (mut found, mut is_one) = (None, true);
        self.index.pods_at(address, |pod| {
            is_one &= found.is_none() && !pod.uses_host_network();
            found = Some(read(pod));
        });
        found.filter(|_| is_one)
    }
}

impl InspectCluster for Exposed {
    fn zones(&self) -> &[Name] {
        self.zones.names()
    }

    fn has_namespace(&self, namespace: &str) -> bool {
        self.shows(namespace.as_bytes())
    }

    fn pods_at(&self, address: IpAddr) -> Vec<InspectedPod> {
        let mut pods: Vec<InspectedPod> = self.named_pods_at(address);
        self.index.services_of_endpoint(address, |service, endpoint| {
            let name = endpoint.own_label().map(|label| String::from_utf8_lossy(label).into_owned());
            let service_name = Some(service.name.to_string());
            let namespace = service.namespace.to_string();
            pods.push(InspectedPod { namespace, name, service: service_name, on_host_network: false });
        });
        self.index.namespaces_of_pod(address, |namespace| {
            let namespace = namespace.to_owned();
            pods.push(InspectedPod { namespace, name: None, service: None, on_host_network: false });
        });
        // A name is better than none, and the sort is stable: that of the pod itself comes before those of endpoints.
        host::sorting::sort_by(&mut pods, |one, other| {
            (&one.namespace, one.name.is_none()).cmp(&(&other.namespace, other.name.is_none()))
        });
        pods.dedup_by(|one, other| {
            let is_same = one.namespace == other.namespace;
            if is_same && other.service.is_none() {
                other.service = one.service.take();
            }
            is_same
        });
        pods
    }

    fn knows_pods(&self) -> bool {
        self.index.has_pod_names()
    }

    fn has_all_pods(&self, namespace: &str) -> bool {
        self.knows_pods() && self.has_namespace(namespace) && self.index.unlisted().all(|kind| kind != Kind::Pod)
    }

    fn addresses_of_pod(&self, namespace: &str, pod: &str) -> Vec<IpAddr> {
        let mut found = Vec::new();
        self.index.for_each_named_pod(|address, named| {
            if named.namespace() == namespace && named.is_named(pod) {
                found.push(address.to_canonical());
            }
        });
        self.index.for_each_service(|service| {
            if *service.namespace == *namespace {
                found.extend(service.endpoints_called(pod.as_bytes()).filter_map(
                    |endpoint| match endpoint.address() {
                        Address::Ip(address) => Some(address.to_canonical()),
                        Address::Name(_) => None,
                    },
                ));
            }
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    fn addresses_of(&self, namespace: &str, name: Option<&str>) -> Vec<IpAddr> {
        let mut addresses = Vec::new();
        self.index.for_each_named_pod(|address, pod| {
            if pod.namespace() == namespace && name.is_none_or(|name| pod.is_named(name)) {
                addresses.push(address.to_canonical());
            }
        });
        self.index.for_each_service(|service| {
            if *service.namespace != *namespace {
                return;
            }
            let is_whole = name.is_none_or(|name| *service.name == *name);
            let is_named = |label: &[u8]| name.is_some_and(|name| label == name.as_bytes());
            for endpoint in service.endpoints() {
                if let Address::Ip(address) = endpoint.address()
                    && (is_whole || endpoint.own_label().is_some_and(is_named))
                {
                    addresses.push(address.to_canonical());
                }
            }
        });
        addresses.sort_unstable();
        addresses.dedup();
        addresses
    }
}

/// Returns true if a zone is a reverse zone.
pub fn is_reverse(zone: NameRef<'_>) -> bool {
    const TREES: [&[u8]; 2] = [b"\x07in-addr\x04arpa\0", b"\x03ip6\x04arpa\0"];
    TREES.iter().any(|tree| NameRef::from_bytes(tree).is_ok_and(|tree| zone.is_within(tree)))
}

/// Returns SERVFAIL for a name that depends on objects that have not been listed yet. The cause names their kind.
pub fn not_ready(index: &Index) -> Failure {
    // Static texts avoid an allocation per query: clients retry until the cluster has been listed.
    let text = match index.unlisted().next() {
        Some(Kind::Namespace) => "Namespaces not listed yet",
        Some(Kind::Service) => "Services not listed yet",
        Some(Kind::EndpointSlice) => "EndpointSlices not listed yet",
        Some(Kind::Pod) => "Pods not listed yet",
        Some(Kind::ServiceImport | Kind::ImportedSlice) => "ServiceImports not listed yet",
        Some(Kind::ServiceEntry | Kind::WorkloadEntry | Kind::WorkloadPod) => "Hosts of the mesh not listed yet",
        Some(Kind::Node) => "Nodes not listed yet",
        None => "Not all namespaces listed yet",
    };
    Failure::servfail(EdeCode::NOT_READY, text).with_public_cause()
}
