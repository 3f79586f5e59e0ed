//! Objects of the simulated cluster, and how they change.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use specification::cluster::{Cluster, Endpoint, Kind as ServiceKind, Port, Service, State, ZONE};
use specification::record::Record;
use specification::{extensions, objects};

use crate::random::Generator;

/// Kinds of objects that the server watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Namespace,
    Service,
    Slice,
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::Namespace, Kind::Service, Kind::Slice];

    /// Returns the kind of a plural name.
    pub(crate) fn of_resource(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.resource() == name)
    }

    const fn resource(self) -> &'static str {
        match self {
            Kind::Namespace => "namespaces",
            Kind::Service => "services",
            Kind::Slice => "endpointslices",
        }
    }

    /// Returns the version of the API and the name of the kind.
    pub(crate) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Kind::Namespace => ("v1", "Namespace"),
            Kind::Service => ("v1", "Service"),
            Kind::Slice => ("discovery.k8s.io/v1", "EndpointSlice"),
        }
    }
}

/// Namespace and name. A namespace is in none.
pub(crate) type Key = (String, String);
pub(crate) type Objects = BTreeMap<Key, Arc<Object>>;

/// Object, as the API server sends it and as the model sees it.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) key: Key,
    /// JSON without a resource version.
    text: String,
    part: Part,
}

/// Part of a cluster that an object describes.
#[derive(Debug)]
enum Part {
    Namespace,
    Service(Service),
    /// Endpoints of the Service with this name.
    Slice(String, Vec<Endpoint>),
}

impl Object {
    /// Returns the JSON with a resource version.
    pub(crate) fn json(&self, version: u64) -> String {
        self.text.replacen(r#""metadata":{"#, &format!(r#""metadata":{{"resourceVersion":"{version}","#), 1)
    }
}

/// Returns the cluster that these objects describe.
pub(crate) fn cluster<'a>(objects: impl Iterator<Item = &'a Object> + Clone) -> Cluster {
    let mut cluster = Cluster::default();
    for object in objects.clone() {
        match &object.part {
            Part::Namespace => cluster.namespaces.push(object.key.1.clone()),
            Part::Service(service) => cluster.services.push(service.clone()),
            Part::Slice(..) => {}
        }
    }
    // A watch of namespaces may be ahead of the others: then its names are gone.
    cluster.services.retain(|service| cluster.namespaces.contains(&service.namespace));
    for object in objects {
        if let Part::Slice(name, endpoints) = &object.part {
            let is_own = |service: &&mut Service| service.namespace == object.key.0 && service.name == *name;
            let own = cluster.services.iter_mut().find(is_own);
            own.into_iter().for_each(|service| service.endpoints.extend(endpoints));
        }
    }
    cluster
}

/// Returns the PTR records of ready endpoints whose Service is not among the objects, or is an alias.
pub(crate) fn orphans<'a>(objects: &(impl Iterator<Item = &'a Object> + Clone)) -> Vec<Record> {
    let has_endpoints = |slice: &Object, name: &str| {
        objects.clone().any(|object| match &object.part {
            Part::Service(service) if object.key.0 == slice.key.0 && service.name == name => {
                !matches!(service.kind, ServiceKind::ExternalName(_))
            }
            _ => false,
        })
    };
    let mut orphans = Vec::new();
    for slice in objects.clone() {
        let Part::Slice(name, endpoints) = &slice.part else { continue };
        if has_endpoints(slice, name) {
            continue;
        }
        orphans.extend(extensions::orphans(endpoints, &format!("{name}.{}.svc.{ZONE}", slice.key.0)));
    }
    orphans
}

const NAMESPACES: [&str; 2] = ["n", "m"];
const SERVICES: [&str; 3] = ["s", "t", "u"];
/// Number of places for a Service.
pub(crate) const SLOTS: usize = NAMESPACES.len() * SERVICES.len();
/// Number of names outside of the cluster that are used.
pub(crate) const OUTSIDE: u64 = 6;

const HTTP: Port = Port { name: "http", protocol: "tcp", number: 80 };
const DNS: Port = Port { name: "dns", protocol: "udp", number: 53 };
const UNNAMED: Port = Port { name: "", protocol: "tcp", number: 8080 };
/// Ports of the Service of each place. They never change, so that a Service and its slices agree.
const PORTS: [&[Port]; SLOTS] = [&[HTTP], &[HTTP, DNS], &[UNNAMED], &[], &[DNS], &[HTTP]];
const STATES: [State; 6] =
    [State::Ready, State::Ready, State::Ready, State::Unknown, State::NotReady, State::Terminating];

/// Place for a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(pub(crate) usize);

impl Slot {
    pub(crate) fn all() -> impl Iterator<Item = Slot> {
        (0..SLOTS).map(Slot)
    }

    pub(crate) fn random(random: &mut Generator) -> Slot {
        Slot(random.index(SLOTS))
    }

    fn namespace(self) -> &'static str {
        NAMESPACES[self.0 / SERVICES.len()]
    }

    fn service(self) -> &'static str {
        SERVICES[self.0 % SERVICES.len()]
    }

    fn key(self) -> Key {
        (self.namespace().to_owned(), self.service().to_owned())
    }

    /// Returns the name of the Service in the zone, and that of its namespace.
    pub(crate) fn names(self) -> (String, String) {
        let namespace = format!("{}.svc.{ZONE}", self.namespace());
        (format!("{}.{namespace}", self.service()), namespace)
    }

    /// Returns an address that endpoints of the Service may have. Some are those of several Services.
    pub(crate) fn address(self, number: u64, is_v4: bool) -> IpAddr {
        // A label that is made from an address ends with a digit.
        let last = 1 + u8::try_from(number % 8).expect("a byte");
        let place = if last == 8 { 99 } else { u8::try_from(self.0).expect("a byte") };
        if is_v4 {
            return Ipv4Addr::new(10, 1, place, last).into();
        }
        Ipv6Addr::new(0xfd00, 1, u16::from(place), 0, 0, 0, 0, u16::from(last)).into()
    }
}

/// Returns an address that Services may have as their cluster IP.
pub(crate) fn cluster_ip(number: u64, is_v4: bool) -> IpAddr {
    let last = 1 + u8::try_from(number % 8).expect("a byte");
    match is_v4 {
        true => Ipv4Addr::new(10, 96, 0, last).into(),
        false => Ipv6Addr::new(0xfd00, 96, 0, 0, 0, 0, 0, u16::from(last)).into(),
    }
}

/// Returns a name outside of the cluster.
pub(crate) fn outside(number: u64) -> String {
    format!("w{number}.outside.invalid.")
}

/// Change of one object; without an object, its deletion.
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) key: Key,
    pub(crate) object: Option<Object>,
}

impl Change {
    fn put(kind: Kind, key: Key, text: String, part: Part) -> Change {
        Change { kind, key: key.clone(), object: Some(Object { key, text, part }) }
    }

    fn delete(kind: Kind, key: Key) -> Change {
        Change { kind, key, object: None }
    }
}

/// Returns changes that create a cluster.
pub(crate) fn creation(random: &mut Generator) -> Vec<Change> {
    let mut changes: Vec<Change> = NAMESPACES.iter().map(|name| namespace(name)).collect();
    for slot in Slot::all().filter(|_| random.is(70)).collect::<Vec<_>>() {
        // No cluster IP is used twice at the start.
        let kind = service_kind(slot, &[u64::try_from(slot.0).expect("a number")], random);
        changes.push(service(slot, kind));
        for at in 0..SLICES.len() {
            if random.is(60) {
                changes.push(slice(slot, at, random));
            }
        }
    }
    changes
}

/// Returns the next change of a cluster, which may be several objects.
pub(crate) fn next(current: &[Objects; 3], random: &mut Generator) -> Vec<Change> {
    let [namespaces, services, slices] = current;
    let slot = Slot::random(random);
    let key = (String::new(), slot.namespace().to_owned());
    if !namespaces.contains_key(&key) {
        return vec![namespace(slot.namespace())];
    }
    match (random.below(20), services.contains_key(&slot.key())) {
        (0, _) => deletion_of(slot.namespace(), current),
        (1..3, true) => vec![Change::delete(Kind::Service, slot.key())],
        // A Service changes its kind when it is created again.
        (3..6, true) => vec![Change::delete(Kind::Service, slot.key()), new_service(slot, services, random)],
        (..10, false) => vec![new_service(slot, services, random)],
        (10..12, _) => {
            let own: Vec<Key> = (0..SLICES.len()).map(|at| slice_key(slot, at)).collect();
            let known = own.into_iter().filter(|key| slices.contains_key(key));
            known.map(|key| Change::delete(Kind::Slice, key)).collect()
        }
        _ => vec![slice(slot, random.index(SLICES.len()), random)],
    }
}

fn namespace(name: &str) -> Change {
    let cluster = Cluster { namespaces: vec![name.to_owned()], services: Vec::new() };
    let text = objects::json(&cluster).remove(0);
    Change::put(Kind::Namespace, (String::new(), name.to_owned()), text, Part::Namespace)
}

/// Deletes a namespace after all that is in it.
fn deletion_of(namespace: &str, [_, services, slices]: &[Objects; 3]) -> Vec<Change> {
    let own = |objects: &Objects, kind| {
        let keys = objects.keys().filter(|key| key.0 == namespace).cloned();
        keys.map(move |key| Change::delete(kind, key)).collect::<Vec<_>>()
    };
    let mut changes = own(slices, Kind::Slice);
    changes.extend(own(services, Kind::Service));
    changes.push(Change::delete(Kind::Namespace, (String::new(), namespace.to_owned())));
    changes
}

fn new_service(slot: Slot, services: &Objects, random: &mut Generator) -> Change {
    let is_used = |number: &u64| {
        let uses = |object: &Arc<Object>| match &object.part {
            Part::Service(Service { kind: ServiceKind::ClusterIp(own), .. }) => {
                own.iter().any(|address| [true, false].iter().any(|v4| *address == cluster_ip(*number, *v4)))
            }
            _ => false,
        };
        services.values().any(uses)
    };
    let free: Vec<u64> = (0..8).filter(|number| !is_used(number)).collect();
    let kind = service_kind(slot, &free, random);
    service(slot, kind)
}

fn service_kind(slot: Slot, free: &[u64], random: &mut Generator) -> ServiceKind {
    match random.below(10) {
        0..5 => {
            let number = random.pick(free);
            let families = random.pick(&[&[true][..], &[false], &[true, false]]);
            ServiceKind::ClusterIp(families.iter().map(|is_v4| cluster_ip(number, *is_v4)).collect())
        }
        5..9 => ServiceKind::Headless,
        _ => {
            let (name, namespace) = Slot::random(random).names();
            let own = slot.names().0;
            let outside = outside(random.below(3));
            let target =
                random.pick(&[outside.as_str(), &outside, &name, &own, &format!("none.{namespace}")]).to_owned();
            ServiceKind::ExternalName(target.trim_end_matches('.').to_owned())
        }
    }
}

fn service(slot: Slot, kind: ServiceKind) -> Change {
    let service = described(slot, kind, Vec::new());
    let cluster = Cluster { namespaces: Vec::new(), services: vec![service.clone()] };
    let text = objects::json(&cluster).remove(0);
    Change::put(Kind::Service, slot.key(), text, Part::Service(service))
}

fn described(slot: Slot, kind: ServiceKind, endpoints: Vec<Endpoint>) -> Service {
    let (namespace, name) = slot.key();
    Service { namespace, name, kind, ports: PORTS[slot.0].to_vec(), endpoints }
}

/// Family of the addresses and first address of the slices of a Service.
const SLICES: [(bool, u64, &str); 3] = [(true, 0, "v4"), (false, 0, "v6"), (true, 4, "w4")];
/// Number of addresses of a slice.
const ADDRESSES: u64 = 4;

fn slice_key(slot: Slot, at: usize) -> Key {
    (slot.namespace().to_owned(), format!("{}-{}", slot.service(), SLICES[at].2))
}

/// Creates or replaces a slice.
fn slice(slot: Slot, at: usize, random: &mut Generator) -> Change {
    let (is_v4, first, suffix) = SLICES[at];
    let endpoints: Vec<Endpoint> = (first..first + ADDRESSES)
        .filter(|_| random.is(50))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|number| endpoint(slot, number, is_v4, random))
        .collect();
    let key = slice_key(slot, at);
    if endpoints.is_empty() {
        return Change::delete(Kind::Slice, key);
    }
    let service = described(slot, ServiceKind::Headless, endpoints.clone());
    let cluster = Cluster { namespaces: Vec::new(), services: vec![service] };
    let text = objects::json(&cluster).remove(1);
    let text = text.replacen(&format!(r#"{}-v4""#, slot.service()), &format!(r#"{}-{suffix}""#, slot.service()), 1);
    Change::put(Kind::Slice, key, text, Part::Slice(slot.service().to_owned(), endpoints))
}

fn endpoint(slot: Slot, number: u64, is_v4: bool, random: &mut Generator) -> Endpoint {
    // An address of several Services has no host name: how its name is chosen then is documented in differences.md.
    let hostname = match number {
        1 if random.is(50) => Some("a"),
        2 if random.is(50) => Some("b"),
        _ => None,
    };
    Endpoint { address: slot.address(number, is_v4), hostname, state: random.pick(&STATES) }
}
