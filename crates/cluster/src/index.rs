//! What answers are made from: read by all answer threads without locks while the world writes it.
//!
//! Questions are asked with lower-case labels; Kubernetes has names in lower case only. What is found is lent to a
//! closure, so that no count is touched that answer threads share. One look-up sees one state of one Service; between
//! two look-ups the world may have changed.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};

use rcu::{Entry, Seed, Shards};

use crate::addresses::AddressTable;
use crate::service::{self, Service};
use crate::slice::{Endpoint, Slice};
use crate::{Kind, Kinds, Mesh};

/// A write copies 1/256 of the Services: 40 pointers of 10,000.
const SERVICE_SHARDS: usize = 256;
/// Namespaces are few and hardly change.
const NAMESPACE_SHARDS: usize = 16;
/// Nodes are followed only where somebody wants to know where the cluster is.
const NODE_SHARDS: usize = 16;

/// The cluster as answers see it.
pub struct Index {
    seed: Seed,
    namespaces: Shards<Namespace>,
    services: Shards<Arc<Service>>,
    cluster_ips: AddressTable,
    endpoints: AddressTable,
    externals: AddressTable,
    pods: AddressTable,
    nodes: Shards<Node>,
    serial: AtomicU32,
    /// The kinds of which there was no moment yet when all of their watches had been listed.
    unlisted: AtomicU16,
    /// The kinds of which each namespace has watches of its own, as [`Spec::followed`](crate::Spec::followed) says.
    followed: Kinds,
    /// What is known beyond that was remembered from an earlier process.
    remembered: AtomicBool,
    /// How often anything changed.
    changes: AtomicU64,
    clusterset: Option<Arc<Index>>,
    mesh: Option<Arc<Mesh>>,
    objects: [AtomicU32; Kind::COUNT],
    refused: AtomicU64,
}

/// How much of the cluster is known.
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
    /// Objects, or parts of them, that were left out because they break a bound or cannot be read, since the start.
    pub refused: u64,
}

impl Index {
    /// Whether the namespace exists.
    #[must_use]
    pub fn namespace_exists(&self, namespace: &[u8]) -> bool {
        let key = self.key(b"", namespace);
        let same = |kept: &Namespace| kept.key == key && kept.name.as_bytes() == namespace;
        self.namespaces.read(key, same, |_| ()).is_some()
    }

    /// Reads a Service by its name.
    pub fn service<R>(&self, namespace: &[u8], name: &[u8], read: impl FnOnce(&Service) -> R) -> Option<R> {
        let key = self.key(namespace, name);
        let same = |kept: &Arc<Service>| {
            kept.key == key
                && kept.is_declared()
                && kept.namespace.as_bytes() == namespace
                && kept.name.as_bytes() == name
        };
        self.services.read(key, same, |service| read(service))
    }

    /// Visits every Service, in no order.
    pub fn for_each_service(&self, mut visit: impl FnMut(&Service)) {
        self.services.for_each(|service| {
            if service.is_declared() {
                visit(service);
            }
        });
    }

    /// Visits every Service, and what slices say about those that do not exist, in no order.
    pub(crate) fn for_each_entry(&self, mut visit: impl FnMut(&Service)) {
        self.services.for_each(|service| visit(service));
    }

    /// Visits the name of every namespace, in no order.
    pub fn for_each_namespace(&self, mut visit: impl FnMut(&str)) {
        self.namespaces.for_each(|namespace| visit(&namespace.name));
    }

    /// Visits every pod in a namespace that exists: its namespace and its address.
    pub(crate) fn for_each_pod(&self, mut visit: impl FnMut(&str, IpAddr)) {
        self.pods.for_each(|address, namespace| {
            self.namespaces.read(namespace, |kept| kept.key == namespace, |kept| visit(&kept.name, address));
        });
    }

    /// Reads the Service that has a cluster IP; any one of them if there are several.
    pub fn service_of_cluster_ip<R>(&self, address: IpAddr, read: impl FnOnce(&Service) -> R) -> Option<R> {
        let (mut read, mut result) = (Some(read), None);
        self.cluster_ips.owners(address, |key| {
            // A service that gave the address away a moment ago does not have it, whatever the table says.
            let same = |kept: &Arc<Service>| kept.key == key && kept.cluster_ips().contains(&address);
            self.services.read(key, same, |service| result = result.take().or_else(|| Some(read.take()?(service))));
        });
        result
    }

    /// Visits the Services that are reached from outside the cluster at an address.
    pub fn services_of_external_ip(&self, address: IpAddr, mut visit: impl FnMut(&Service)) {
        self.externals.owners(address, |key| {
            let same = |kept: &Arc<Service>| kept.key == key && kept.external_ips().any(|ip| ip == address);
            self.services.read(key, same, |service| visit(service));
        });
    }

    /// Visits the endpoints at an address, with the Service of each: every Service that has it, in every slice that
    /// has it. The Service need not exist; its slices name it.
    pub fn services_of_endpoint(&self, address: IpAddr, mut visit: impl FnMut(&Service, Endpoint<'_>)) {
        self.endpoints.owners(address, |key| {
            self.services.read(
                key,
                |kept| kept.key == key,
                |service| service.endpoints_at(address).for_each(|endpoint| visit(service, endpoint)),
            );
        });
    }

    /// Whether a pod in this namespace has this primary address.
    #[must_use]
    pub fn pod_exists(&self, namespace: &[u8], address: IpAddr) -> bool {
        self.pods.contains(address, self.key(b"", namespace))
    }

    /// Visits the namespaces of the pods that have this primary address, once for each of them.
    pub fn namespaces_of_pod(&self, address: IpAddr, mut visit: impl FnMut(&str)) {
        self.pods.owners(address, |key| {
            self.namespaces.read(key, |kept| kept.key == key, |namespace| visit(&namespace.name));
        });
    }

    /// Where the cluster is: the place of the first node, by name, that says its zone and its region.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        let mut first: Option<Node> = None;
        self.nodes.for_each(|node| {
            if first.as_ref().is_none_or(|first| node.name < first.name) {
                first = Some(node.clone());
            }
        });
        first.map(|node| node.place)
    }

    /// When the zone changed last, in Unix seconds: the serial of its SOA. 0 before the first change.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.serial.load(Ordering::Acquire)
    }

    /// Whether there was a moment when every watch had been listed. It stays so, whatever becomes of the API server.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.unlisted.load(Ordering::Acquire) == 0
    }

    /// Whether what is not known of these kinds does not exist: every watch of theirs has been listed once, or what an
    /// earlier process knew is remembered.
    #[must_use]
    pub fn knows(&self, kinds: Kinds) -> bool {
        self.unlisted.load(Ordering::Acquire) & kinds.0 == 0 || self.remembered.load(Ordering::Acquire)
    }

    /// Whether what is not known of these kinds in a namespace that exists does not exist there.
    #[must_use]
    pub fn knows_in(&self, namespace: &[u8], kinds: Kinds) -> bool {
        let key = self.key(b"", namespace);
        let of_place = self.namespaces.read(key, |kept| kept.key == key, |kept| kept.unlisted).unwrap_or(Kinds::NONE);
        let everywhere = Kinds(self.unlisted.load(Ordering::Acquire)).minus(self.followed);
        of_place.or(everywhere).and(kinds) == Kinds::NONE || self.is_remembered()
    }

    /// Whether part of what is known is only remembered from an earlier process: it may be old.
    #[must_use]
    pub fn is_remembered(&self) -> bool {
        self.remembered.load(Ordering::Acquire) && !self.is_synced()
    }

    /// A number that is another one after each change.
    #[must_use]
    pub fn changes(&self) -> u64 {
        let common = self.clusterset.as_ref().map_or(0, |common| common.changes());
        self.changes.load(Ordering::Acquire).wrapping_add(common)
    }

    /// The services that this cluster has in common with others, if they are watched; which of its kinds are known is
    /// asked here and not there.
    #[must_use]
    pub fn clusterset(&self) -> Option<&Arc<Index>> {
        self.clusterset.as_ref()
    }

    /// The hosts of the mesh, if they are watched.
    #[must_use]
    pub fn mesh(&self) -> Option<&Arc<Mesh>> {
        self.mesh.as_ref()
    }

    /// How many objects of a kind are known that matter to answers.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u32 {
        self.objects[kind as usize].load(Ordering::Relaxed)
    }

    /// How much of the cluster is known.
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

/// What the world does to the index.
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
            nodes: Shards::new(NODE_SHARDS),
            serial: AtomicU32::new(0),
            unlisted: AtomicU16::new(u16::MAX),
            followed,
            remembered: AtomicBool::new(false),
            changes: AtomicU64::new(0),
            clusterset,
            mesh,
            objects: Default::default(),
            refused: AtomicU64::new(0),
        }
    }

    /// The key of an object among those of its kind; a namespace is in no namespace.
    pub(crate) fn key(&self, namespace: &[u8], name: &[u8]) -> u64 {
        service::key(&self.seed, namespace, name)
    }

    /// Adds a namespace in which nothing is known of these kinds.
    pub(crate) fn add_namespace(&self, key: u64, name: Arc<str>, unlisted: Kinds) {
        self.namespaces.replace(Namespace { key, name, unlisted }, |kept| kept.key == key);
    }

    pub(crate) fn remove_namespace(&self, key: u64) {
        self.namespaces.remove(key, |kept| kept.key == key);
    }

    /// The entry under this key, declared or not.
    pub(crate) fn entry(&self, key: u64) -> Option<Arc<Service>> {
        self.services.read(key, |kept| kept.key == key, Arc::clone)
    }

    /// Puts `after` in the place of `before`. An address is in its table as long as readers may see it in a Service:
    /// added before, removed after.
    pub(crate) fn publish(&self, before: Option<&Service>, after: Service) {
        let (key, after) = (after.key, Arc::new(after));
        for &address in after.cluster_ips() {
            self.cluster_ips.insert_once(address, key);
        }
        for address in after.external_ips() {
            self.externals.insert_once(address, key);
        }
        if after.is_declared() || !after.slices.is_empty() {
            self.services.replace(Arc::clone(&after), |kept| kept.key == key);
        } else {
            self.services.remove(key, |kept| kept.key == key);
        }
        for address in before.map_or(&[][..], |before| before.cluster_ips()) {
            if !after.cluster_ips().contains(address) {
                self.cluster_ips.remove(*address, key);
            }
        }
        for address in before.into_iter().flat_map(Service::external_ips) {
            if !after.external_ips().any(|kept| kept == address) {
                self.externals.remove(address, key);
            }
        }
    }

    /// Gives a Service one slice more, another, or one less.
    pub(crate) fn publish_slice(&self, before: &Service, slice_key: u64, slice: Option<Arc<Slice>>) {
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

    /// Says where a node is; nowhere if it does not say that itself.
    pub(crate) fn set_node(&self, key: u64, node: Option<Node>) {
        match node {
            Some(node) => drop(self.nodes.replace(node, |kept| kept.key == key)),
            None => drop(self.nodes.remove(key, |kept| kept.key == key)),
        }
    }

    /// Gives a pod another address, its first or none. The owner of the address is the pod's namespace, once for each
    /// pod: pods on the network of their node share its address.
    pub(crate) fn move_pod(&self, namespace: u64, before: Option<IpAddr>, after: Option<IpAddr>) {
        if before == after {
            return;
        }
        if let Some(address) = after {
            self.pods.insert(address, namespace);
        }
        if let Some(address) = before {
            self.pods.remove(address, namespace);
        }
    }

    pub(crate) fn remember(&self) {
        self.remembered.store(true, Ordering::Release);
    }

    pub(crate) fn count_change(&self) {
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The zone is another one now. A clock that is put back must not put back the serial: secondaries would not take what
    /// is older than what they have (RFC 1982).
    pub(crate) fn stamp(&self, now_seconds: u32) {
        let serial = self.serial();
        let next = if now_seconds >= serial { now_seconds } else { serial.wrapping_add(1) };
        self.serial.store(next, Ordering::Release);
    }

    /// Says of which kinds something is not known now. What was known once stays so: of a namespace that comes later its
    /// own entry tells.
    pub(crate) fn note_unlisted(&self, kinds: Kinds) {
        self.unlisted.fetch_and(kinds.0, Ordering::AcqRel);
    }

    /// The kinds of which nothing is known in some namespace.
    pub(crate) fn unlisted_in_namespaces(&self) -> Kinds {
        let mut unlisted = Kinds::NONE;
        self.namespaces.for_each(|namespace| unlisted = unlisted.or(namespace.unlisted));
        unlisted
    }

    /// Says anew of which kinds nothing is known in a namespace that exists.
    pub(crate) fn note_unlisted_in(&self, namespace: &str, unlisted: Kinds) {
        let key = self.key(b"", namespace.as_bytes());
        let kept = self.namespaces.read(key, |kept| kept.key == key, Namespace::clone);
        if let Some(kept) = kept.filter(|kept| kept.unlisted != unlisted) {
            self.add_namespace(key, kept.name, unlisted);
        }
    }

    pub(crate) fn count_added(&self, kind: Kind) {
        self.objects[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_removed(&self, kind: Kind, objects: u32) {
        self.objects[kind as usize].fetch_sub(objects, Ordering::Relaxed);
    }

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// Where a node is.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) key: u64,
    pub(crate) name: Arc<str>,
    pub(crate) place: Place,
}

/// A topology zone and the region that it is in, each a text as in the labels of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The zone.
    pub zone: Arc<str>,
    /// The region.
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
    /// The kinds of which it is not known what of them is in it.
    unlisted: Kinds,
}

impl Entry for Namespace {
    fn hash(&self, _: &Seed) -> u64 {
        self.key
    }
}
