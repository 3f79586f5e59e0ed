//! Object kinds of the cluster itself: how an object of each kind changes the index, what is stored to undo that, and
//! which changes advance the zone's serial.

pub(crate) mod mesh;

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use host::invariant::{Expected as _, holds};
use rcu::Seed;
use wire::{LABEL_MAX, NAME_MAX};

use crate::columns::{Addresses, Labels};
use crate::index::{Index, Location, Node};
use crate::intern::Interner;
use crate::ip::{read_ip, read_v6};
use crate::mesh::MeshReducer;
use crate::not_ready::{NOT_READY_MAX, NotReady};
use crate::object::{self, AddressType, Object};
use crate::pod_addresses::PodAddresses;
use crate::pod_names::{self, PodGroup};
use crate::port::Port;
use crate::service::{External, Service, ServiceKind};
use crate::slice::{Slice, Zones};
use crate::{Kind, Kinds, Spec};

/// Endpoints kept per slice. The API server accepts no more (discovery.k8s.io/v1).
pub(crate) const ENDPOINTS_MAX: usize = 1000;
// A zone has at least one endpoint, and its number has 16 bits.
const _: () = assert!(ENDPOINTS_MAX <= u16::MAX as usize);
/// Ports kept per object. The API server accepts 100 in a slice and has no limit for a Service.
pub(crate) const PORTS_MAX: usize = 1000;
/// Cluster IPs kept per Service. The API server accepts two, one per address family.
pub(crate) const CLUSTER_IPS_MAX: usize = 8;
/// External addresses kept per Service: more than fit into a response.
pub(crate) const EXTERNAL_MAX: usize = 256;

/// Record of one object of a kind: the data needed to undo its effect on the index.
pub(crate) trait ObjectState: Copy + Send {
    const KIND: Kind;

    /// Updates the index for an object that is new or has a new resource version.
    fn apply(before: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self>;

    /// Removes the object from the index.
    fn remove(self, key: u64, reducer: &mut IndexReducer);
}

/// Result of applying an object.
pub(crate) struct Effect<K> {
    /// Record to store. `None` if the object is not served (any more); a known object is then removed.
    pub(crate) state: Option<K>,
    /// True if an update of a known object advances the zone's serial.
    pub(crate) stamps: bool,
}

impl<K> Effect<K> {
    pub(crate) const NOT_SERVED: Self = Effect { state: None, stamps: false };

    /// Reports an object whose kind is not that of its records, which pass on only their own.
    #[track_caller]
    fn of_another_kind() -> Self {
        host::invariant::broken("an object has the kind of its watch");
        Effect::NOT_SERVED
    }

    pub(crate) const fn stored(state: K, stamps: bool) -> Self {
        Effect { state: Some(state), stamps }
    }
}

/// Index and the state needed to write it.
pub(crate) struct IndexReducer {
    pub(crate) index: Arc<Index>,
    pub(crate) versions: Seed,
    /// Kinds with a watch per namespace. A new namespace starts with all of them unlisted.
    pub(crate) followed: Kinds,
    names: Interner<str>,
    ports: Interner<[Port]>,
    zones: Interner<[Arc<str>]>,
    pod_groups: Interner<PodGroup>,
    /// Keys of the labels that are kept of pods.
    pod_labels: Box<[Box<str>]>,
    endpoint_pod_names: bool,
    endpoint_zones: bool,
    /// Reducer of the mesh's hosts, if they are watched.
    pub(crate) mesh: Option<MeshReducer>,
}

/// Record of a Namespace. Nothing is stored: the name is in the index.
#[derive(Clone, Copy)]
pub(crate) struct NamespaceState;

impl ObjectState for NamespaceState {
    const KIND: Kind = Kind::Namespace;

    fn apply(before: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self> {
        let name = object.meta().name;
        if before.is_none() {
            if !reducer.accepts_label(name) {
                return Effect::NOT_SERVED;
            }
            let name = reducer.names.get(name);
            reducer.index.add_namespace(key, &name, reducer.followed, reducer.followed);
        }
        Effect::stored(NamespaceState, false)
    }

    fn remove(self, key: u64, reducer: &mut IndexReducer) {
        reducer.index.remove_namespace(key);
    }
}

/// Record of a Service. Nothing is stored: the entry in the index has everything.
#[derive(Clone, Copy)]
pub(crate) struct ServiceState;

impl ObjectState for ServiceState {
    const KIND: Kind = Kind::Service;

    fn apply(_: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self> {
        let Object::Service(object) = object else { return Effect::of_another_kind() };
        let object::Meta { namespace, name, .. } = object.meta;
        if !reducer.accepts_label(namespace) || !reducer.accepts_label(name) {
            return Effect::NOT_SERVED;
        }
        let Some(kind) = reducer.service_kind(object) else { return Effect::NOT_SERVED };
        let before = reducer.entry(key, namespace, name);
        let ports = reducer.ports(&object.ports);
        let external = reducer.external(&object.external);
        let stamps = before.ports != ports || before.external != external || before.kind != kind;
        let resource_version = object.meta.resource_version();
        let after = Service { resource_version, kind, ports, external, ..before.as_ref().clone() };
        reducer.index.publish(Some(&before), after);
        Effect::stored(ServiceState, stamps)
    }

    fn remove(self, key: u64, reducer: &mut IndexReducer) {
        reducer.undeclare(key);
    }
}

/// Record of a ServiceImport, handled like a Service.
#[derive(Clone, Copy)]
pub(crate) struct ImportState;

impl ObjectState for ImportState {
    const KIND: Kind = Kind::ServiceImport;

    fn apply(_: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self> {
        let Object::ServiceImport(object) = object else { return Effect::of_another_kind() };
        let object::Meta { namespace, name, .. } = object.meta;
        if !reducer.accepts_label(namespace) || !reducer.accepts_label(name) {
            return Effect::NOT_SERVED;
        }
        let kind = if object.import_type == "Headless" {
            ServiceKind::Headless
        } else {
            ServiceKind::ClusterIp(reducer.cluster_ips(&object.ips))
        };
        let before = reducer.entry(key, namespace, name);
        let (resource_version, ports) = (object.meta.resource_version(), reducer.ports(&object.ports));
        let after = Service { resource_version, kind, ports, ..before.as_ref().clone() };
        let stamps = before.kind != after.kind || before.ports != after.ports;
        reducer.index.publish(Some(&before), after);
        Effect::stored(ImportState, stamps)
    }

    fn remove(self, key: u64, reducer: &mut IndexReducer) {
        reducer.undeclare(key);
    }
}

/// Record of an EndpointSlice: the key of its Service.
#[derive(Clone, Copy)]
pub(crate) struct SliceState {
    service: u64,
}

impl ObjectState for SliceState {
    const KIND: Kind = Kind::EndpointSlice;

    fn apply(before: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self> {
        let Object::EndpointSlice(object) = object else { return Effect::of_another_kind() };
        let (namespace, service) = (object.meta.namespace, object.service);
        // A slice without a Service has no name to be looked up by, forward or reverse.
        if service.is_empty() || !reducer.accepts_label(service) || !reducer.accepts_label(namespace) {
            return Effect::NOT_SERVED;
        }
        let owner = reducer.index.key(namespace.as_bytes(), service.as_bytes());
        let entry = reducer.entry(owner, namespace, service);
        let slice = reducer.slice(key, object);
        let known = entry.slice(key);
        let stamps = known.is_none_or(|known| !known.answers_like(&slice));
        if known.is_none_or(|known| **known != slice) {
            reducer.index.publish_slice(&entry, key, Some(Arc::new(slice)));
        }
        if let Some(before) = before.filter(|before| before.service != owner) {
            before.remove(key, reducer);
        }
        Effect::stored(SliceState { service: owner }, stamps)
    }

    fn remove(self, key: u64, reducer: &mut IndexReducer) {
        if let Some(entry) = reducer.index.entry(self.service).expected("the Service of a slice") {
            holds(entry.slice(key).is_some(), "the Service of a slice has it");
            reducer.index.publish_slice(&entry, key, None);
        }
    }
}

/// Record of a Pod: the key of its namespace, and its addresses.
#[derive(Clone, Copy)]
pub(crate) struct PodState {
    namespace: u64,
    addresses: PodAddresses,
}

impl ObjectState for PodState {
    const KIND: Kind = Kind::Pod;

    fn apply(before: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self> {
        let Object::Pod(object) = object else { return Effect::of_another_kind() };
        if object.terminating {
            // A terminating pod keeps its last state until it is deleted. One first seen while terminating is
            // ignored.
            return Effect { state: before, stamps: false };
        }
        let namespace = reducer.index.key(b"", object.meta.namespace.as_bytes());
        let addresses = reducer.pod_addresses(object);
        let old = before.map(|before| before.addresses).unwrap_or_default();
        reducer.index.move_pod(namespace, old, addresses);
        reducer.name_pod(key, object, old, addresses);
        Effect::stored(PodState { namespace, addresses }, old != addresses)
    }

    fn remove(self, key: u64, reducer: &mut IndexReducer) {
        reducer.index.move_pod(self.namespace, self.addresses, PodAddresses::default());
        self.addresses.iter().for_each(|address| reducer.index.remove_pod(address, key));
    }
}

/// Record of a Node. Nothing is stored: the location is in the index.
#[derive(Clone, Copy)]
pub(crate) struct NodeState;

impl ObjectState for NodeState {
    const KIND: Kind = Kind::Node;

    fn apply(_: Option<Self>, object: &Object<'_>, key: u64, reducer: &mut IndexReducer) -> Effect<Self> {
        let Object::Node(object) = object else { return Effect::of_another_kind() };
        let is_somewhere = !object.zone.is_empty() && !object.region.is_empty();
        let fits = object.zone.len() <= LABEL_MAX && object.region.len() <= LABEL_MAX;
        let location = is_somewhere.then_some(()).and_then(|()| reducer.accept(fits.then_some(())));
        let node = location.map(|()| {
            let (name, zone, region) = (object.meta.name, object.zone, object.region);
            let [name, zone, region] = [name, zone, region].map(|text| reducer.names.get(text));
            Node { key, name, location: Location { zone, region } }
        });
        reducer.index.set_node(key, node);
        Effect::stored(NodeState, false)
    }

    fn remove(self, key: u64, reducer: &mut IndexReducer) {
        reducer.index.set_node(key, None);
    }
}

impl IndexReducer {
    pub(crate) fn new(index: Arc<Index>, spec: &Spec) -> IndexReducer {
        let &Spec { endpoint_pod_names, endpoint_zones, .. } = spec;
        let (names, ports, zones) = (Interner::new(), Interner::new(), Interner::new());
        let followed = Kinds::of(&spec.followed);
        let (versions, mesh) = (Seed::default(), index.mesh().cloned().map(MeshReducer::new));
        let pod_groups = Interner::new();
        IndexReducer {
            index,
            versions,
            followed,
            names,
            ports,
            zones,
            pod_groups,
            pod_labels: spec.pod_labels.as_slice().into(),
            endpoint_pod_names,
            endpoint_zones,
            mesh,
        }
    }

    /// Removes a Service but keeps the slices that name it.
    fn undeclare(&mut self, key: u64) {
        if let Some(before) = self.index.entry(key).expected("a Service that is removed") {
            holds(before.is_declared(), "a Service that is removed was declared");
            let (kind, ports, external) = (ServiceKind::Undeclared, self.ports(&[]), Box::default());
            let after = Service { resource_version: None, kind, ports, external, ..before.as_ref().clone() };
            self.index.publish(Some(&before), after);
        }
    }

    /// Returns the entry of a Service, or a new undeclared one without slices.
    fn entry(&mut self, key: u64, namespace: &str, name: &str) -> Arc<Service> {
        self.index.entry(key).unwrap_or_else(|| {
            let ports = self.ports(&[]);
            Arc::new(Service::undeclared(key, self.names.get(namespace), name, ports))
        })
    }

    fn service_kind(&self, object: &object::Service<'_>) -> Option<ServiceKind> {
        if object.service_type == "ExternalName" {
            let name = object.external_name;
            return self.accept((name.len() <= NAME_MAX).then(|| ServiceKind::ExternalName(name.into())));
        }
        if object.cluster_ips.first() == Some(&"None") {
            return Some(ServiceKind::Headless);
        }
        Some(ServiceKind::ClusterIp(self.cluster_ips(&object.cluster_ips)))
    }

    fn cluster_ips(&self, texts: &[&str]) -> Box<[IpAddr]> {
        // A Service that has no address allocated yet has the cluster IP "".
        let allocated = texts.iter().filter(|text| !text.is_empty());
        let ips = allocated.filter_map(|text| self.accept(read_ip(text)));
        self.at_most(CLUSTER_IPS_MAX, ips).collect()
    }

    fn external(&self, texts: &[&str]) -> Box<[External]> {
        let read = |text: &&str| match read_ip(text) {
            Some(ip) => Some(External::Ip(ip)),
            None => self.accept((text.len() <= NAME_MAX).then(|| External::Host((*text).into()))),
        };
        self.at_most(EXTERNAL_MAX, texts.iter().filter_map(read)).collect()
    }

    fn ports(&mut self, ports: &[object::Port<'_>]) -> Arc<[Port]> {
        let none = [object::Port::default()];
        let ports = if ports.is_empty() { &none } else { ports };
        let ports: Vec<Port> = self
            .at_most(PORTS_MAX, ports.iter())
            .map(|port| Port { name: port.name.into(), protocol: port.protocol.into(), number: port.number })
            .collect();
        holds((1..=PORTS_MAX).contains(&ports.len()), "a list of ports has at least one");
        self.ports.get(ports)
    }

    fn slice(&mut self, key: u64, object: &object::EndpointSlice<'_>) -> Slice {
        let ready = object.endpoints.iter().filter(|endpoint| endpoint.ready.unwrap_or(true));
        let (addresses, endpoints) = match object.address_type {
            AddressType::Ipv4 => self.gather(ready, read_v4, Addresses::V4),
            AddressType::Ipv6 => self.gather(ready, read_v6, Addresses::V6),
            AddressType::Fqdn => self.gather(ready, read_host, Addresses::Names),
        };
        let labels: Vec<_> = endpoints.iter().map(|endpoint| self.own_label(endpoint, object.address_type)).collect();
        let source = object.source_cluster;
        let slice = Slice {
            key,
            ports: self.ports(&object.ports),
            addresses,
            labels: Labels::join(&labels),
            zones: self.zones(&endpoints),
            not_ready: self.not_ready(object),
            cluster: (!source.is_empty()).then(|| self.names.get(&*source.to_ascii_lowercase())),
        };
        holds(slice.len() <= ENDPOINTS_MAX, "the endpoints of a slice are bounded");
        slice.check();
        slice
    }

    /// Returns the endpoints that are not ready; `None` if all are. An invalid address is left out and not counted as
    /// rejected, since no answer could have it.
    fn not_ready(&self, object: &object::EndpointSlice<'_>) -> Option<Box<NotReady>> {
        let all = || object.endpoints.iter().filter(|endpoint| endpoint.ready == Some(false));
        let total = u32::try_from(all().count()).unwrap_or(u32::MAX);
        if total == 0 {
            return None;
        }
        let (addresses, endpoints) = match object.address_type {
            AddressType::Ipv4 => first_of(all(), read_v4, Addresses::V4),
            AddressType::Ipv6 => first_of(all(), read_v6, Addresses::V6),
            AddressType::Fqdn => first_of(all(), read_host, Addresses::Names),
        };
        let labels: Vec<_> = endpoints.iter().map(|endpoint| self.own_label(endpoint, object.address_type)).collect();
        let pods: Vec<_> = endpoints.iter().map(|endpoint| pod_of(endpoint)).collect();
        let list = NotReady { total, addresses, pods: Labels::join(&pods), labels: Labels::join(&labels) };
        list.check();
        Some(Box::new(list))
    }

    /// Parses the addresses of endpoints. Returns those that are valid, and their endpoints in the same order.
    fn gather<'o, A>(
        &self,
        endpoints: impl Iterator<Item = &'o object::Endpoint<'o>>,
        read: impl Fn(&str) -> Option<A>,
        addresses: impl FnOnce(Box<[A]>) -> Addresses,
    ) -> (Addresses, Vec<&'o object::Endpoint<'o>>) {
        let pairs = endpoints.filter_map(|endpoint| Some((self.accept(read(endpoint.address))?, endpoint)));
        let (list, endpoints): (Vec<A>, Vec<_>) = self.at_most(ENDPOINTS_MAX, pairs).unzip();
        (addresses(list.into()), endpoints)
    }

    /// Returns the topology zones of endpoints, or `None` if zones are not kept or no endpoint has one.
    fn zones(&mut self, endpoints: &[&object::Endpoint<'_>]) -> Option<Box<Zones>> {
        if !self.endpoint_zones || endpoints.iter().all(|endpoint| endpoint.zone.is_empty()) {
            return None;
        }
        let mut names: Vec<Arc<str>> = Vec::new();
        let number = |endpoint: &&object::Endpoint<'_>| {
            let zone = if endpoint.zone.len() <= NAME_MAX { endpoint.zone } else { "" };
            let known = names.iter().position(|known| known.eq_ignore_ascii_case(zone));
            let at = known.unwrap_or_else(|| {
                names.push(self.names.get(&*zone.to_ascii_lowercase()));
                names.len() - 1
            });
            u16::try_from(at).ok().expected("the number of a zone").unwrap_or(u16::MAX)
        };
        let numbers = endpoints.iter().map(number).collect();
        Some(Box::new(Zones { names: self.zones.get(names), numbers }))
    }

    /// Returns the label of an endpoint if it cannot be derived from its IP address, otherwise "". Ignores a hostname
    /// or pod name that is too long for a label.
    fn own_label<'a>(&self, endpoint: &object::Endpoint<'a>, address_type: AddressType) -> Cow<'a, str> {
        let target = if self.endpoint_pod_names { endpoint.target } else { "" };
        match [endpoint.hostname, target].into_iter().find(|text| is_label(text)) {
            Some(own) => Cow::Borrowed(own),
            None if address_type == AddressType::Fqdn => Cow::Owned(endpoint.address.replace('.', "-")),
            None => Cow::Borrowed(""),
        }
    }

    /// Returns the addresses of a pod. An empty one is not assigned yet.
    fn pod_addresses(&self, pod: &object::Pod<'_>) -> PodAddresses {
        let mut addresses = PodAddresses::default();
        for text in pod.addresses.iter().filter(|text| !text.is_empty()) {
            self.accept(read_ip(text).and_then(|address| addresses.push(address)));
        }
        addresses
    }

    /// Moves a pod in the table of named pods, if there is one.
    fn name_pod(&mut self, key: u64, pod: &object::Pod<'_>, before: PodAddresses, after: PodAddresses) {
        // A pod from a snapshot has no name.
        if !self.index.has_pod_names() || pod.meta.version.is_empty() && pod.meta.name.starts_with(' ') {
            return;
        }
        before.iter().filter(|address| !after.contain(*address)).for_each(|gone| self.index.remove_pod(gone, key));
        let name = self.accept((pod.meta.name.len() <= NAME_MAX).then_some(pod.meta.name));
        let Some(name) = name.filter(|_| after != PodAddresses::default()) else { return };
        let (start, end) = pod_names::split(name);
        let namespace = self.names.get(pod.meta.namespace);
        let (start, labels) = (start.into(), self.labels_of(pod));
        let group = self.pod_groups.get(PodGroup { namespace, start, host_network: pod.host_network, labels });
        after.iter().for_each(|address| self.index.put_pod(address, &group, end));
    }

    /// Returns the values of the labels that are kept. One that the pod does not have is empty.
    fn labels_of(&mut self, pod: &object::Pod<'_>) -> Box<[Arc<str>]> {
        let value = |key: &str| {
            let found = pod.labels.iter().find(|(known, _)| *known == key).map_or("", |(_, value)| value);
            self.accept((found.len() <= LABEL_MAX).then_some(found)).unwrap_or_default()
        };
        let values: Vec<&str> = self.pod_labels.iter().map(|key| value(key)).collect();
        values.into_iter().map(|value| self.names.get(value)).collect()
    }

    /// Counts a part that is malformed or exceeds a limit (`None`) as rejected.
    fn accept<T>(&self, part: Option<T>) -> Option<T> {
        if part.is_none() {
            self.index.refuse();
        }
        part
    }

    fn accepts_label(&self, text: &str) -> bool {
        self.accept(is_label(text).then_some(())).is_some()
    }

    fn at_most<T>(&self, most: usize, parts: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
        parts.enumerate().filter_map(move |(at, part)| self.accept((at < most).then_some(part)))
    }
}

/// Parses the addresses of the first endpoints that have a valid one. Returns them and their endpoints.
fn first_of<'o, A>(
    endpoints: impl Iterator<Item = &'o object::Endpoint<'o>>,
    read: impl Fn(&str) -> Option<A>,
    addresses: impl FnOnce(Box<[A]>) -> Addresses,
) -> (Addresses, Vec<&'o object::Endpoint<'o>>) {
    let pairs = endpoints.filter_map(|endpoint| Some((read(endpoint.address)?, endpoint)));
    let (list, endpoints): (Vec<A>, Vec<_>) = pairs.take(NOT_READY_MAX).unzip();
    (addresses(list.into()), endpoints)
}

/// Returns the name of the pod of an endpoint, or else its hostname, if that is no longer than a name may be.
fn pod_of<'o>(endpoint: &object::Endpoint<'o>) -> &'o str {
    let pod = if endpoint.is_pod { endpoint.target } else { "" };
    let name = if pod.is_empty() { endpoint.hostname } else { pod };
    if name.len() <= NAME_MAX { name } else { "" }
}

fn read_v4(text: &str) -> Option<Ipv4Addr> {
    text.parse().ok()
}

fn is_label(text: &str) -> bool {
    (1..=LABEL_MAX).contains(&text.len())
}

/// Accepts the host name of an endpoint of type `FQDN` if it is short enough for a label.
fn read_host(text: &str) -> Option<Box<str>> {
    is_label(text).then(|| text.into())
}
