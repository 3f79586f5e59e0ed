//! The single writer of a mesh: stores entries and workloads, and updates the names that an event affects.
//!
//! Entries select workloads of their own namespace only, so state is kept per namespace. When a workload changes, the
//! reducer checks the entries of its namespace and updates the names of those that select it.

use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::HashMap;
use host::invariant::{Expected as _, holds};
use rcu::Seed;

use super::claim::{Age, Claim, Entry};
use super::read::{self, Endpoint, ErrorCollector, Host, Resolution};
use super::workload::{LABELS_MAX, Labels, Workload, WorkloadSelector};
use super::{Client, Exports, Mesh, Note};
use crate::intern::Interner;
use crate::object::Meta;
use crate::object::mesh::{Allocated, Label, ServiceEntry, WorkloadEntry, WorkloadPod};

/// Maximum number of pending notes. Further ones are dropped, to bound the log.
const NOTES_MAX: usize = 1000;

/// Single writer of a mesh.
pub(crate) struct MeshReducer {
    pub(crate) index: Arc<Mesh>,
    namespaces: HashMap<u64, NamespaceState, Seed>,
    texts: Interner<str>,
    labels: Interner<[(Arc<str>, Arc<str>)]>,
    notes: Vec<Note>,
}

/// State of a namespace.
#[derive(Default)]
struct NamespaceState {
    entries: HashMap<u64, ParsedEntry, Seed>,
    workloads: HashMap<WorkloadKey, Workload, Seed>,
}

/// Key of a workload in its namespace: true for a pod, and the key within its kind.
type WorkloadKey = (bool, u64);

/// Parsed entry, with the claims published for it.
struct ParsedEntry {
    age: Age,
    exports: Option<Exports>,
    hosts: Vec<Host>,
    addresses: Arc<[IpAddr]>,
    /// Allocated addresses, each for one host or (`None`) for all.
    allocated: Vec<(Option<Host>, IpAddr)>,
    resolution: Resolution,
    endpoints: Vec<Endpoint>,
    selector: Option<WorkloadSelector>,
    claims: Vec<(Host, Claim)>,
}

/// Key of an object's namespace, and key of the object.
pub(crate) type Keys = (u64, u64);

impl MeshReducer {
    pub(crate) fn new(index: Arc<Mesh>) -> MeshReducer {
        let (namespaces, notes) = Default::default();
        MeshReducer { index, namespaces, texts: Interner::new(), labels: Interner::new(), notes }
    }

    /// Returns the notes collected since the last call.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    fn note(&mut self, note: Note) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
        holds(self.notes.len() <= NOTES_MAX, "the number of notes is bounded");
    }

    /// Parses a WorkloadEntry and notes its first error.
    pub(crate) fn workload_entry(&mut self, object: &WorkloadEntry<'_>) -> Workload {
        let mut errors = ErrorCollector::default();
        let endpoints = errors.read_all([object.address], read::endpoint).into();
        if let Some(error) = errors.0 {
            let Meta { namespace, name, .. } = object.meta;
            self.note(Note::invalid("workload", (namespace, name), error, false));
        }
        Workload { labels: self.labels(&object.labels), endpoints, is_ready: !object.unhealthy, client: None }
    }

    /// Parses a Pod in a namespace, given by its key.
    pub(crate) fn pod(&mut self, namespace: u64, object: &WorkloadPod<'_>) -> Workload {
        // The API server sets these. An address that is not assigned yet is empty and skipped.
        let endpoints =
            ErrorCollector::default().read_all(object.addresses.iter().copied(), read::static_endpoint).into();
        let client = Client { namespace, is_captured: object.captured };
        Workload {
            labels: self.labels(&object.labels),
            endpoints,
            is_ready: object.ready,
            client: (!object.on_host_network).then_some(client),
        }
    }

    /// Stores an entry. Returns `None` if it is not served in DNS, otherwise whether a name has changed.
    pub(crate) fn set_entry(&mut self, (namespace, key): Keys, object: &ServiceEntry<'_>) -> Option<bool> {
        let mut errors = ErrorCollector::default();
        let entry = self.parse_entry(object, &mut errors);
        // With addresses, sidecars resolve the hosts even if the resolution is `NONE`, the default.
        let has_targets = entry.resolution != Resolution::None || !entry.addresses.is_empty();
        let is_served = has_targets && !entry.hosts.is_empty();
        if let Some(error) = errors.0 {
            self.note(Note::invalid("service", (object.meta.namespace, object.meta.name), error, is_served));
        }
        if !is_served {
            return None;
        }
        let entries = &mut self.namespaces.entry(namespace).or_default().entries;
        let before = entries.remove(&key).map(|before| before.claims);
        entries.insert(key, ParsedEntry { claims: before.unwrap_or_default(), ..entry });
        Some(self.publish(namespace, key))
    }

    fn parse_entry(&self, object: &ServiceEntry<'_>, errors: &mut ErrorCollector) -> ParsedEntry {
        let resolution = errors.resolution(object.resolution);
        let hosts = errors.read_all(object.hosts.iter().copied(), Host::read);
        if object.hosts.is_empty() {
            errors.0.get_or_insert(read::EntryError::NoHosts);
        }
        let endpoint = if resolution == Resolution::Static { read::static_endpoint } else { read::endpoint };
        // If an entry has addresses of its own, allocated ones are left over from before it had them.
        let is_allocated = object.addresses.is_empty() && resolution != Resolution::None;
        let allocated = if is_allocated { &*object.allocated } else { &[] };
        ParsedEntry {
            age: Age {
                created: object.created.into(),
                namespace: object.meta.namespace.into(),
                name: object.meta.name.into(),
            },
            exports: self.index.exports(object.export_to.iter().copied()),
            hosts,
            addresses: errors.read_all(object.addresses.iter().copied(), read::address).into(),
            allocated: read_allocated(allocated, errors),
            resolution,
            endpoints: match resolution {
                Resolution::Static | Resolution::Dns => errors.read_all(object.endpoints.iter().copied(), endpoint),
                Resolution::None | Resolution::Dynamic => Vec::new(),
            },
            selector: object.selector.as_deref().map(WorkloadSelector::new),
            claims: Vec::new(),
        }
    }

    /// Removes an entry.
    pub(crate) fn remove_entry(&mut self, (namespace, key): Keys) {
        let known = self.namespaces.get_mut(&namespace).expected("the namespace of an entry that is removed");
        let Some(known) = known else { return };
        let claims = known.entries.remove(&key).expected("an entry that is removed").map(|entry| entry.claims);
        self.forget_if_empty(namespace);
        for (host, _) in claims.into_iter().flatten() {
            self.index.hosts.withdraw(&host, key);
            self.note(Note::unmapped(host));
        }
    }

    /// Stores a workload, or removes it if `workload` is `None`. Returns true if a name has changed.
    pub(crate) fn set_workload(&mut self, (namespace, key): Keys, is_pod: bool, workload: Option<Workload>) -> bool {
        let known = self.namespaces.entry(namespace).or_default();
        let before = match workload {
            Some(workload) => known.workloads.insert((is_pod, key), workload),
            None => known.workloads.remove(&(is_pod, key)),
        };
        let workload = known.workloads.get(&(is_pod, key)).cloned();
        holds(workload.is_some() || before.is_some(), "a workload that is removed was known");
        if before == workload {
            self.forget_if_empty(namespace);
            return false;
        }
        let selects = |selector: &WorkloadSelector| before.iter().chain(&workload).any(|one| selector.selects(one));
        let entries = known.entries.iter().filter(|(_, entry)| entry.selector.as_ref().is_some_and(selects));
        let selecting: Vec<u64> = entries.map(|(key, _)| *key).collect();
        self.move_client(before.as_ref(), workload.as_ref());
        self.forget_if_empty(namespace);
        let mut changed = false;
        for entry in selecting {
            changed |= self.publish(namespace, entry);
        }
        changed
    }

    /// Returns the interned form of labels.
    fn labels(&mut self, labels: &[Label<'_>]) -> Labels {
        let pairs = labels.iter().take(LABELS_MAX).map(|(name, value)| (self.texts.get(*name), self.texts.get(*value)));
        let pairs: Vec<_> = pairs.collect();
        self.labels.get(pairs)
    }

    fn move_client(&self, before: Option<&Workload>, after: Option<&Workload>) {
        let clients = |workload: Option<&Workload>| -> Vec<(IpAddr, Client)> {
            let Some((workload, client)) = workload.and_then(|workload| Some((workload, workload.client?))) else {
                return Vec::new();
            };
            ips(&workload.endpoints).map(|ip| (ip, client)).collect()
        };
        let (before, after) = (clients(before), clients(after));
        for (ip, client) in after.iter().filter(|one| !before.contains(one)) {
            self.index.clients.add(*ip, *client);
        }
        for (ip, client) in before.iter().filter(|one| !after.contains(one)) {
            self.index.clients.remove(*ip, *client);
        }
    }

    fn forget_if_empty(&mut self, namespace: u64) {
        if self.namespaces.get(&namespace).is_some_and(|known| known.entries.is_empty() && known.workloads.is_empty()) {
            self.namespaces.remove(&namespace);
        }
    }

    /// Publishes the hosts of an entry. Returns true if any of them changed.
    fn publish(&mut self, namespace: u64, key: u64) -> bool {
        let known = self.namespaces.get_mut(&namespace).expected("the namespace of an entry");
        let Some(known) = known else { return false };
        let Some(parsed) = known.entries.get_mut(&key).expected("an entry that is published") else { return false };
        let entry = Arc::new(parsed.entry(key, namespace, &known.workloads));
        let claim = |host: &Host| Claim { entry: Arc::clone(&entry), addresses: parsed.addresses_of(host) };
        let after: Vec<(Host, Claim)> = parsed.hosts.iter().map(|host| (host.clone(), claim(host))).collect();
        let before = std::mem::replace(&mut parsed.claims, after.clone());
        self.withdraw_gone(key, &before, &after);
        let mut changed = before.len() != after.len();
        for (host, claim) in after {
            let known = before.iter().find(|(known, _)| *known == host).map(|(_, known)| known);
            if known == Some(&claim) {
                continue;
            }
            changed = true;
            if !self.index.hosts.claim(&host, claim.clone()) {
                let Age { namespace, name, .. } = &claim.entry.age;
                self.note(Note::invalid("service", (namespace, name), read::EntryError::TooMany, true));
            } else if !known.is_some_and(|known| known.says_the_same(&claim)) && claim.says_something() {
                self.note(Note::mapped(host, claim));
            }
        }
        changed
    }

    fn withdraw_gone(&mut self, key: u64, before: &[(Host, Claim)], after: &[(Host, Claim)]) {
        for (host, _) in before.iter().filter(|(host, _)| !after.iter().any(|(known, _)| known == host)) {
            self.index.hosts.withdraw(host, key);
            self.note(Note::unmapped(host.clone()));
        }
    }
}

impl ParsedEntry {
    /// Builds the published form of the entry.
    fn entry(&self, key: u64, namespace: u64, workloads: &HashMap<WorkloadKey, Workload, Seed>) -> Entry {
        let mut selected: Vec<&Endpoint> = self.selected(workloads).flat_map(|workload| &workload.endpoints).collect();
        // A hash table has no stable order, but answers need one.
        selected.sort_unstable();
        let all: Vec<&Endpoint> = self.endpoints.iter().chain(selected).collect();
        let mut endpoints: Vec<IpAddr> = Vec::with_capacity(all.len());
        let mut names: Vec<Box<[u8]>> = Vec::new();
        for endpoint in all {
            match endpoint {
                Endpoint::Ip(ip) => endpoints.push(*ip),
                Endpoint::Name(name) if self.resolution == Resolution::Dns => names.push(name.clone()),
                Endpoint::Name(_) => {}
            }
        }
        Entry {
            key,
            age: self.age.clone(),
            namespace,
            exports: self.exports.clone(),
            resolves_itself: match self.resolution {
                Resolution::Dynamic => true,
                Resolution::Dns => self.endpoints.is_empty() && self.selector.is_none(),
                Resolution::None | Resolution::Static => false,
            },
            endpoints: each_once(endpoints),
            names: each_once(names),
        }
    }

    fn selected<'a>(
        &'a self,
        workloads: &'a HashMap<WorkloadKey, Workload, Seed>,
    ) -> impl Iterator<Item = &'a Workload> {
        let ready = self.selector.iter().flat_map(|_| workloads.values()).filter(|workload| workload.is_ready);
        ready.filter(|workload| self.selector.as_ref().is_some_and(|selector| selector.selects(workload)))
    }

    fn addresses_of(&self, host: &Host) -> Arc<[IpAddr]> {
        let of_host = |(known, _): &&(Option<Host>, IpAddr)| known.as_ref().is_none_or(|known| known == host);
        match &*self.allocated {
            [] => Arc::clone(&self.addresses),
            allocated => allocated.iter().filter(of_host).map(|(_, ip)| *ip).collect(),
        }
    }
}

impl Claim {
    fn says_the_same(&self, other: &Claim) -> bool {
        let of = |claim: &Claim| (claim.entry.endpoints.clone(), claim.entry.names.clone());
        self.addresses == other.addresses && (!self.addresses.is_empty() || of(self) == of(other))
    }

    fn says_something(&self) -> bool {
        !self.addresses.is_empty() || !self.entry.endpoints.is_empty() || !self.entry.names.is_empty()
    }
}

/// Parses allocated addresses, each with its host if one is given.
fn read_allocated(list: &[Allocated<'_>], errors: &mut ErrorCollector) -> Vec<(Option<Host>, IpAddr)> {
    let mut read = Vec::new();
    for Allocated { address, host } in list.iter().take(read::PARTS_MAX) {
        let of = errors.read_all(Some(*host).filter(|host| !host.is_empty()), Host::read).pop();
        let address = errors.read_all([*address], read::address).pop();
        let Some(pair) = address.map(|address| (of, address)) else { continue };
        let is_of_nobody = pair.0.is_none() && !host.is_empty();
        if !is_of_nobody && !read.contains(&pair) {
            read.push(pair);
        }
    }
    read
}

pub(crate) fn ips(endpoints: &[Endpoint]) -> impl Iterator<Item = IpAddr> {
    endpoints.iter().filter_map(|endpoint| if let Endpoint::Ip(ip) = endpoint { Some(*ip) } else { None })
}

/// Removes duplicates and keeps the order.
fn each_once<T: Clone + Eq + core::hash::Hash>(list: Vec<T>) -> Box<[T]> {
    let mut seen: hashbrown::HashSet<T, Seed> = hashbrown::HashSet::default();
    list.into_iter().filter(|one| seen.insert(one.clone())).collect()
}
