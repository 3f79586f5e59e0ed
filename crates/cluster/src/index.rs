//! Lock-free view of the cluster that all workers read while one writer updates it.
//!
//! Labels in look-ups must be in lower case, since Kubernetes names are. Results are lent to a closure, so a look-up
//! touches no reference count that workers share.
//!
//! A look-up returns a consistent state of one Service. Two look-ups may see different states of the cluster.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};

use host::invariant::holds;
use rcu::{Entry, Seed, Shards};

use crate::addresses::AddressTable;
use crate::pod_addresses::PodAddresses;
use crate::pod_names::{NamedPod, PodGroup, PodNames};
use crate::service::{self, Service};
use crate::slice::{Endpoint, Slice};
use crate::{Kind, Kinds, Mesh};

/// Number of shards for Services. A write copies 1/256 of the Services: 40 pointers of 10,000.
const SERVICE_SHARDS: usize = 256;
/// Number of shards for namespaces, which are few and hardly change.
const NAMESPACE_SHARDS: usize = 16;
/// Number of shards for nodes, which are watched only for the location of the cluster.
const NODE_SHARDS: usize = 16;

/// Lock-free view of the cluster.
pub struct Index {
    seed: Seed,
    namespaces: Shards<Namespace>,
    services: Shards<Arc<Service>>,
    cluster_ips: AddressTable,
    endpoints: AddressTable,
    externals: AddressTable,
    pods: AddressTable,
    pod_names: Option<PodNames>,
    nodes: Shards<Node>,
    serial: AtomicU32,
    /// Kinds whose initial list has not completed.
    unlisted: AtomicU16,
    /// Kinds that have a watch per namespace, see [`Spec::followed`](crate::Spec::followed).
    followed: Kinds,
    /// Set once a snapshot of an earlier process has been restored.
    remembered: AtomicBool,
    /// Age of the data in seconds while it is stale, otherwise 0.
    stale_seconds: AtomicU32,
    /// Number of changes so far.
    changes: AtomicU64,
    clusterset: Option<Arc<Index>>,
    mesh: Option<Arc<Mesh>>,
    objects: [AtomicU32; Kind::COUNT],
    refused: AtomicU64,
}

/// Number of objects in the index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Namespaces that exist.
    pub namespaces: u32,
    /// Services that exist.
    pub services: u32,
    /// EndpointSlices that belong to a Service.
    pub endpoint_slices: u32,
    /// Pods.
    pub pods: u32,
    /// Objects and parts of objects rejected since the start because they are too large or malformed.
    pub refused: u64,
}

impl Index {
    /// Returns true if the namespace exists.
    #[must_use]
    pub fn namespace_exists(&self, namespace: &[u8]) -> bool {
        let key = self.key(b"", namespace);
        let same = |entry: &Namespace| entry.key == key && entry.name.as_bytes() == namespace;
        self.namespaces.read(key, same, |_| ()).is_some()
    }

    /// Looks up a Service by namespace and name.
    pub fn service<R>(&self, namespace: &[u8], name: &[u8], read: impl FnOnce(&Service) -> R) -> Option<R> {
        let key = self.key(namespace, name);
        let same = |entry: &Arc<Service>| {
            entry.key == key
                && entry.is_declared()
                && entry.namespace.as_bytes() == namespace
                && entry.name.as_bytes() == name
        };
        self.services.read(key, same, |service| read(service))
    }

    /// Calls `visit` for every Service, in no particular order.
    pub fn for_each_service(&self, mut visit: impl FnMut(&Service)) {
        self.services.for_each(|service| {
            if service.is_declared() {
                visit(service);
            }
        });
    }

    /// Calls `visit` with the name of every namespace, in no particular order.
    pub fn for_each_namespace(&self, mut visit: impl FnMut(&str)) {
        self.namespaces.for_each(|namespace| visit(&namespace.name));
    }

    /// Looks up a Service by cluster IP. Returns the first result of `read`, which is called for each Service that has
    /// the address, in no particular order, until it returns one.
    ///
    /// Within a list, two Services have an address that was released and given away: the first of them is still there
    /// until the list ends.
    pub fn service_of_cluster_ip<R>(&self, address: IpAddr, mut read: impl FnMut(&Service) -> Option<R>) -> Option<R> {
        let mut result = None;
        self.cluster_ips.owners(address, |key| {
            // The writer removes an address from the table last, so the entry may be stale: check the Service itself.
            let same = |entry: &Arc<Service>| entry.key == key && entry.cluster_ips().contains(&address);
            self.services.read(key, same, |service| result = result.take().or_else(|| read(service)));
        });
        result
    }

    /// Calls `visit` for each Service that has the external IP.
    pub fn services_of_external_ip(&self, address: IpAddr, mut visit: impl FnMut(&Service)) {
        self.externals.owners(address, |key| {
            let same = |entry: &Arc<Service>| entry.key == key && entry.external_ips().any(|ip| ip == address);
            self.services.read(key, same, |service| visit(service));
        });
    }

    /// Calls `visit` for each endpoint at an address, with its Service. Several slices and Services may contain the
    /// address. A Service may be undeclared, that is, only named by its slices.
    pub fn services_of_endpoint(&self, address: IpAddr, mut visit: impl FnMut(&Service, Endpoint<'_>)) {
        self.endpoints.owners(address, |key| {
            self.services.read(
                key,
                |entry| entry.key == key,
                |service| service.endpoints_at(address).for_each(|endpoint| visit(service, endpoint)),
            );
        });
    }

    /// Returns true if a pod in the namespace has this primary address.
    #[must_use]
    pub fn pod_exists(&self, namespace: &[u8], address: IpAddr) -> bool {
        self.pods.contains(address, self.key(b"", namespace))
    }

    /// Returns true if the names of pods are kept.
    #[must_use]
    pub const fn has_pod_names(&self) -> bool {
        self.pod_names.is_some()
    }

    /// Calls `visit` for each pod that has this primary address. Without names, it calls nothing.
    pub fn pods_at(&self, address: IpAddr, visit: impl FnMut(NamedPod<'_>)) {
        if let Some(names) = &self.pod_names {
            names.at(address, visit);
        }
    }

    /// Calls `visit` for each named pod with its primary address, in no particular order.
    pub fn for_each_named_pod(&self, visit: impl FnMut(IpAddr, NamedPod<'_>)) {
        if let Some(names) = &self.pod_names {
            names.for_each(visit);
        }
    }

    /// Calls `visit` with the namespace of each pod that has this primary address, once per pod.
    pub fn namespaces_of_pod(&self, address: IpAddr, mut visit: impl FnMut(&str)) {
        self.pods.owners(address, |key| {
            self.namespaces.read(key, |entry| entry.key == key, |namespace| visit(&namespace.name));
        });
    }

    /// Returns the location of the cluster: zone and region of the first node, by name, that has both labels.
    #[must_use]
    pub fn location(&self) -> Option<Location> {
        let mut first: Option<Node> = None;
        self.nodes.for_each(|node| {
            if first.as_ref().is_none_or(|first| node.name < first.name) {
                first = Some(node.clone());
            }
        });
        first.map(|node| node.location)
    }

    /// Returns the time of the last zone change in Unix seconds, used as the SOA serial; 0 before the first change.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.serial.load(Ordering::Acquire)
    }

    /// Returns true once every watch has completed its initial list. Never becomes false again, even if the API
    /// server goes away.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.unlisted.load(Ordering::Acquire) == 0
    }

    /// Kinds of which not every watch has been listed yet.
    pub fn unlisted(&self) -> impl Iterator<Item = Kind> {
        let unlisted = Kinds(self.unlisted.load(Ordering::Acquire));
        Kind::ALL.into_iter().filter(move |kind| unlisted.and(Kinds::NONE.with(*kind)) != Kinds::NONE)
    }

    /// Returns true if an object of these kinds that is not in the index does not exist: their watches have completed
    /// their initial lists, or a snapshot of an earlier process was restored.
    #[must_use]
    pub fn knows(&self, kinds: Kinds) -> bool {
        self.unlisted.load(Ordering::Acquire) & kinds.0 == 0 || self.remembered.load(Ordering::Acquire)
    }

    /// Returns true if an object of these kinds in an existing namespace that is not in the index does not exist.
    #[must_use]
    pub fn knows_in(&self, namespace: &[u8], kinds: Kinds) -> bool {
        let key = self.key(b"", namespace);
        let of_namespace =
            self.namespaces.read(key, |entry| entry.key == key, |entry| entry.unknown).unwrap_or(Kinds::NONE);
        let is_known_there = of_namespace.and(kinds) == Kinds::NONE;
        is_known_there && self.knows(kinds.minus(self.followed))
    }

    /// Returns true if part of the data still comes from a snapshot of an earlier process and may be stale.
    #[must_use]
    pub fn is_remembered(&self) -> bool {
        self.remembered.load(Ordering::Acquire) && !self.is_synced()
    }

    /// Returns the age of the data in seconds if its source has confirmed it too long ago, as
    /// [`Index::set_stale_seconds`] says.
    #[must_use]
    pub fn stale_seconds(&self) -> Option<u32> {
        Some(self.stale_seconds.load(Ordering::Relaxed)).filter(|seconds| *seconds > 0)
    }

    /// Records that the data is stale, with its age in seconds, or that it is current.
    pub fn set_stale_seconds(&self, seconds: Option<NonZeroU32>) {
        self.stale_seconds.store(seconds.map_or(0, NonZeroU32::get), Ordering::Relaxed);
    }

    /// Returns a counter that every change increments.
    #[must_use]
    pub fn changes(&self) -> u64 {
        let common = self.clusterset.as_ref().map_or(0, |common| common.changes());
        self.changes.load(Ordering::Acquire).wrapping_add(common)
    }

    /// Returns the ClusterSet Services, if they are watched. Ask this index, not that one, which kinds are
    /// [known](Index::knows).
    #[must_use]
    pub fn clusterset(&self) -> Option<&Arc<Index>> {
        self.clusterset.as_ref()
    }

    /// Returns the hosts of the mesh, if they are watched.
    #[must_use]
    pub fn mesh(&self) -> Option<&Arc<Mesh>> {
        self.mesh.as_ref()
    }

    /// Returns the number of objects of a kind in the index.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u32 {
        self.objects[kind as usize].load(Ordering::Relaxed)
    }

    /// Returns the number of objects in the index.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            namespaces: self.count(Kind::Namespace),
            services: self.count(Kind::Service),
            endpoint_slices: self.count(Kind::EndpointSlice),
            pods: self.count(Kind::Pod),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

/// Methods for the writer.
impl Index {
    pub(crate) fn new(clusterset: Option<Arc<Index>>, mesh: Option<Arc<Mesh>>, followed: Kinds) -> Index {
        Index {
            seed: Seed::default(),
            namespaces: Shards::new(NAMESPACE_SHARDS),
            services: Shards::new(SERVICE_SHARDS),
            cluster_ips: AddressTable::new(),
            endpoints: AddressTable::new(),
            externals: AddressTable::new(),
            pods: AddressTable::new(),
            pod_names: None,
            nodes: Shards::new(NODE_SHARDS),
            serial: AtomicU32::new(0),
            unlisted: AtomicU16::new(u16::MAX),
            followed,
            remembered: AtomicBool::new(false),
            stale_seconds: AtomicU32::new(0),
            changes: AtomicU64::new(0),
            clusterset,
            mesh,
            objects: Default::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns the key of an object within its kind. For a namespace, `namespace` is empty.
    pub(crate) fn key(&self, namespace: &[u8], name: &[u8]) -> u64 {
        service::key(&self.seed, namespace, name)
    }

    /// Adds a namespace. `unlisted` are the kinds not listed in it yet. `unknown` are those of them without a complete
    /// list in a snapshot.
    pub(crate) fn add_namespace(&self, key: u64, name: &Arc<str>, unlisted: Kinds, unknown: Kinds) {
        holds(unknown.minus(unlisted) == Kinds::NONE, "what was listed is known");
        let namespace = Namespace { key, name: Arc::clone(name), unlisted, unknown };
        let before = self.namespaces.replace(namespace, |entry| entry.key == key);
        holds(before.is_none_or(|before| before.name == *name), "a namespace keeps its name");
    }

    pub(crate) fn remove_namespace(&self, key: u64) {
        let removed = self.namespaces.remove(key, |entry| entry.key == key);
        holds(removed.is_some(), "a namespace that is removed was known");
    }

    /// Returns the entry with this key, declared or not.
    pub(crate) fn entry(&self, key: u64) -> Option<Arc<Service>> {
        self.services.read(key, |entry| entry.key == key, Arc::clone)
    }

    /// Replaces `before` with `after`.
    ///
    /// An address is in its table for as long as readers may see it in a Service, so new addresses are inserted
    /// before the Service is published and old ones are removed after.
    pub(crate) fn publish(&self, before: Option<&Service>, after: Service) {
        let (key, after) = (after.key, Arc::new(after));
        holds(before.is_none_or(|before| before.key == key), "a Service replaces the one of its key");
        let has_addresses = !after.cluster_ips().is_empty() || !after.external.is_empty();
        holds(after.is_declared() || !has_addresses, "only a declared Service has addresses");
        for &address in after.cluster_ips() {
            self.cluster_ips.insert_once(address, key);
        }
        for address in after.external_ips() {
            self.externals.insert_once(address, key);
        }
        if after.is_declared() || !after.slices.is_empty() {
            self.services.replace(Arc::clone(&after), |entry| entry.key == key);
        } else {
            self.services.remove(key, |entry| entry.key == key);
        }
        for address in before.map_or(&[][..], |before| before.cluster_ips()) {
            if !after.cluster_ips().contains(address) {
                self.cluster_ips.remove(*address, key);
            }
        }
        for address in before.into_iter().flat_map(Service::external_ips) {
            if !after.external_ips().any(|ip| ip == address) {
                self.externals.remove(address, key);
            }
        }
        self.check_addresses(&after, before);
    }

    /// Checks that the addresses of a Service lead to it, and those that it has lost do not. Debug builds only: the
    /// lists of external addresses are long.
    fn check_addresses(&self, after: &Service, before: Option<&Service>) {
        let (key, own, external) = (after.key, after.cluster_ips(), || after.external_ips());
        debug_assert!(own.iter().all(|ip| self.cluster_ips.contains(*ip, key)), "a cluster IP leads to its Service");
        debug_assert!(external().all(|ip| self.externals.contains(ip, key)), "an external IP leads to its Service");
        let is_left = |ip: &IpAddr| !own.contains(ip) && self.cluster_ips.contains(*ip, key);
        let stays = before.is_some_and(|before| before.cluster_ips().iter().any(is_left));
        debug_assert!(!stays, "a cluster IP that a Service has lost does not lead to it");
    }

    /// Adds, replaces or (with `None`) removes a slice of a Service.
    pub(crate) fn publish_slice(&self, before: &Service, slice_key: u64, slice: Option<Arc<Slice>>) {
        holds(slice.as_ref().is_none_or(|slice| slice.key == slice_key), "a slice is stored under its key");
        for address in slice.iter().flat_map(|slice| slice.addresses.ips()) {
            self.endpoints.insert_once(address, before.key);
        }
        let after = before.with_slice(slice_key, slice);
        let gone = before.slice(slice_key).into_iter().flat_map(|slice| slice.addresses.ips());
        let gone: Vec<IpAddr> = gone.filter(|&address| !after.has_endpoint_at(address)).collect();
        self.publish(Some(before), after);
        for address in gone {
            self.endpoints.remove(address, before.key);
        }
    }

    /// Sets the location of a node. `None` removes it, for a node without zone or region labels.
    pub(crate) fn set_node(&self, key: u64, node: Option<Node>) {
        match node {
            Some(node) => drop(self.nodes.replace(node, |entry| entry.key == key)),
            None => drop(self.nodes.remove(key, |entry| entry.key == key)),
        }
    }

    /// Changes the addresses of a pod.
    ///
    /// The table stores the pod's namespace, once per pod: pods on the host network share the addresses of their node.
    pub(crate) fn move_pod(&self, namespace: u64, before: PodAddresses, after: PodAddresses) {
        for new in after.iter().filter(|address| !before.contain(*address)) {
            self.pods.insert(new, namespace);
        }
        for gone in before.iter().filter(|address| !after.contain(*address)) {
            holds(self.pods.remove(gone, namespace), "an address that a pod has lost was in the table");
        }
        debug_assert!(after.iter().all(|own| self.pods.contains(own, namespace)), "the addresses of a pod are known");
    }

    /// Keeps the names of pods from now on.
    pub(crate) fn keep_pod_names(&mut self) {
        self.pod_names = Some(PodNames::new());
    }

    /// Adds a named pod.
    pub(crate) fn put_pod(&self, address: IpAddr, group: &Arc<PodGroup>, end: &str) {
        if let Some(names) = &self.pod_names {
            names.put(address, group, end);
        }
    }

    /// Removes the pod with a key from an address.
    pub(crate) fn remove_pod(&self, address: IpAddr, key: u64) {
        let is_it = |pod: NamedPod<'_>| self.key(pod.namespace().as_bytes(), pod.name().as_bytes()) == key;
        if let Some(names) = &self.pod_names {
            names.remove(address, is_it);
        }
    }

    pub(crate) fn remember(&self) {
        self.remembered.store(true, Ordering::Release);
    }

    pub(crate) fn count_change(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Advances the serial after a zone change. If the clock was set back, the serial still increases, because
    /// secondaries ignore a zone with an older serial (RFC 1982).
    pub(crate) fn stamp(&self, now_seconds: u32) {
        let serial = self.serial();
        let next = if now_seconds >= serial { now_seconds } else { serial.wrapping_add(1) };
        holds(next >= serial || serial == u32::MAX, "the serial of a zone does not go back");
        self.serial.store(next, Ordering::Release);
    }

    /// Clears the kinds that are not in `kinds`. A kind that has been listed once stays listed; namespaces created
    /// later have their own state.
    pub(crate) fn note_unlisted(&self, kinds: Kinds) {
        self.unlisted.fetch_and(kinds.0, Ordering::AcqRel);
    }

    /// Returns the kinds that have not been listed yet in some namespace.
    pub(crate) fn unlisted_in_namespaces(&self) -> Kinds {
        let mut unlisted = Kinds::NONE;
        self.namespaces.for_each(|namespace| unlisted = unlisted.or(namespace.unlisted));
        unlisted
    }

    /// Sets the kinds that have not been listed yet in an existing namespace, and those that are unknown.
    pub(crate) fn note_unlisted_in(&self, namespace: &str, unlisted: Kinds, unknown: Kinds) {
        let key = self.key(b"", namespace.as_bytes());
        let entry = self.namespaces.read(key, |entry| entry.key == key, Namespace::clone);
        if let Some(entry) = entry.filter(|entry| (entry.unlisted, entry.unknown) != (unlisted, unknown)) {
            self.add_namespace(key, &entry.name, unlisted, unknown);
        }
    }

    pub(crate) fn count_added(&self, kind: Kind) {
        self.objects[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_removed(&self, kind: Kind, objects: u32) {
        let known = self.objects[kind as usize].fetch_sub(objects, Ordering::Relaxed);
        holds(objects <= known, "the objects that are removed were counted");
    }

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Location of a node.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) key: u64,
    pub(crate) name: Arc<str>,
    pub(crate) location: Location,
}

/// Topology zone and region, as in the labels of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Zone (`topology.kubernetes.io/zone`).
    pub zone: Arc<str>,
    /// Region (`topology.kubernetes.io/region`).
    pub region: Arc<str>,
}

impl Entry for Node {
    fn hash(&self, _: &Seed) -> u64 {
        self.key
    }
}

#[derive(Clone)]
struct Namespace {
    key: u64,
    name: Arc<str>,
    /// Kinds that have not been listed yet in this namespace.
    unlisted: Kinds,
    /// Kinds without a complete list in this namespace, neither from the source nor from a snapshot.
    unknown: Kinds,
}

impl Entry for Namespace {
    fn hash(&self, _: &Seed) -> u64 {
        self.key
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
