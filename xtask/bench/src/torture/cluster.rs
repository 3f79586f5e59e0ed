//! Objects of the cluster under test, and how they change.
//!
//! Every place for a Service has addresses of its own, so that a question depends on the objects of one place, or of
//! two if the Service is an alias.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use specification::cluster::{Cluster, Endpoint, Kind, Port, Service, State, ZONE, dashed, reverse_name};
use specification::record::Record;
use specification::{extensions, objects};

use super::zone;
use crate::random::Random;

const NAMESPACES: [&str; 3] = ["alpha", "beta", "gamma"];
const SERVICES: [&str; 4] = ["api", "db", "web", "out"];
/// Number of places for a Service.
pub(crate) const PLACES: usize = NAMESPACES.len() * SERVICES.len();
/// Number of addresses that endpoints of a slice may have.
const ADDRESSES: u8 = 4;
/// Number of cluster IPs that a Service may have.
const CLUSTER_IPS: u8 = 3;

const HTTP: Port = Port { name: "http", protocol: "tcp", number: 80 };
const DNS: Port = Port { name: "dns", protocol: "udp", number: 53 };
const UNNAMED: Port = Port { name: "", protocol: "tcp", number: 8080 };
/// Ports of the Services, by their names. They never change, so that a Service and its slices agree.
const PORTS: [&[Port]; SERVICES.len()] = [&[HTTP], &[HTTP, DNS], &[UNNAMED], &[HTTP]];
const STATES: [State; 6] =
    [State::Ready, State::Ready, State::Ready, State::Unknown, State::NotReady, State::Terminating];

/// Place for a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub(crate) usize);

impl Place {
    pub(crate) fn all() -> impl Iterator<Item = Place> {
        (0..PLACES).map(Place)
    }

    pub(crate) fn random(random: &mut Random) -> Place {
        Place(random.below(PLACES))
    }

    pub(crate) const fn namespace(self) -> &'static str {
        NAMESPACES[self.0 / SERVICES.len()]
    }

    const fn service(self) -> &'static str {
        SERVICES[self.0 % SERVICES.len()]
    }

    /// Returns the name of the Service in the zone of the cluster.
    pub(crate) fn name(self) -> String {
        format!("{}.{}.svc.{ZONE}", self.service(), self.namespace())
    }

    /// Returns true if the Service may be an alias.
    const fn is_alias(self) -> bool {
        self.0 % SERVICES.len() == SERVICES.len() - 1
    }

    /// Returns the place that an alias in this place may lead to: the first one of the next namespace.
    pub(crate) fn target(self) -> Option<Place> {
        self.is_alias().then(|| Place((self.0 + 1) % PLACES))
    }

    fn address(self, number: u8, is_v4: bool) -> IpAddr {
        let place = u8::try_from(self.0).unwrap_or_default();
        if is_v4 {
            return Ipv4Addr::new(10, 1, place, number + 1).into();
        }
        Ipv6Addr::new(0xfd00, 1, u16::from(place), 0, 0, 0, 0, u16::from(number + 1)).into()
    }

    /// Returns an address in the ranges of a cluster, of which the first one is that of the Service `kubernetes`.
    fn cluster_ip(self, number: u8, is_v4: bool) -> IpAddr {
        let place = u8::try_from(self.0 + 1).unwrap_or_default();
        if is_v4 {
            return Ipv4Addr::new(10, 96, place, number + 1).into();
        }
        Ipv6Addr::new(0xfd00, 0x96, 0, 0, 0, 0, u16::from(place), u16::from(number + 1)).into()
    }

    /// Returns the names that may exist because of this place, and some neighbours.
    pub(crate) fn names(self) -> Vec<String> {
        let (name, namespace) = (self.name(), self.namespace());
        let mut names = vec![name.clone(), name.clone(), name.clone()];
        names.extend(
            ["_http._tcp", "_dns._udp", "_tcp", "_none._tcp", "none", "a", "b"].map(|it| format!("{it}.{name}")),
        );
        names.extend([
            format!("none.{namespace}.svc.{ZONE}"),
            format!("{namespace}.svc.{ZONE}"),
            format!("10-1-2-3.{namespace}.pod.{ZONE}"),
            format!("{}.none.svc.{ZONE}", self.service()),
            format!("dns-version.{ZONE}"),
        ]);
        for is_v4 in [true, false] {
            for number in 0..ADDRESSES {
                let address = self.address(number, is_v4);
                names.extend([format!("{}.{name}", dashed(address)), reverse_name(address)]);
            }
            names.extend((0..CLUSTER_IPS).map(|number| reverse_name(self.cluster_ip(number, is_v4))));
        }
        names
    }
}

/// Object of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// Namespace of this number.
    Namespace(usize),
    Service(Place),
    /// Slice of IPv4 addresses, or of IPv6 addresses.
    Slice(Place, bool),
}

impl Key {
    /// Returns all objects that decide about the names of a place.
    pub(crate) fn of(place: Place) -> [Key; 4] {
        let namespace = Key::Namespace(place.0 / SERVICES.len());
        [namespace, Key::Service(place), Key::Slice(place, true), Key::Slice(place, false)]
    }

    /// Returns the resource, the namespace and the name.
    pub(crate) fn path(self) -> (&'static str, &'static str, String) {
        match self {
            Key::Namespace(at) => ("namespaces", "", NAMESPACES[at].to_owned()),
            Key::Service(place) => ("services", place.namespace(), place.service().to_owned()),
            Key::Slice(place, is_v4) => {
                let family = if is_v4 { "v4" } else { "v6" };
                ("endpointslices", place.namespace(), format!("{}-{family}", place.service()))
            }
        }
    }
}

/// Content of an object, as the model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Namespace,
    Service(Kind),
    Slice(Vec<Endpoint>),
}

impl Part {
    /// Returns the object as JSON; `None` if the key is one of another kind.
    pub(crate) fn json(&self, key: Key) -> Option<String> {
        let cluster = match (self, key) {
            (Part::Namespace, Key::Namespace(at)) => {
                Cluster { namespaces: vec![NAMESPACES[at].to_owned()], services: Vec::new() }
            }
            (Part::Service(kind), Key::Service(place)) => of_one(described(place, kind.clone(), Vec::new())),
            (Part::Slice(endpoints), Key::Slice(place, _)) => {
                of_one(described(place, Kind::Headless, endpoints.clone()))
            }
            _ => return None,
        };
        objects::json(&cluster).pop()
    }
}

fn of_one(service: Service) -> Cluster {
    Cluster { namespaces: Vec::new(), services: vec![service] }
}

fn described(place: Place, kind: Kind, endpoints: Vec<Endpoint>) -> Service {
    let ports = PORTS[place.0 % SERVICES.len()].to_vec();
    Service { namespace: place.namespace().to_owned(), name: place.service().to_owned(), kind, ports, endpoints }
}

/// Returns the model of the objects of these places, and the PTR records of ready endpoints without a Service
/// ([`extensions::orphans`]).
pub(crate) fn model(places: &[Place], object: impl Fn(Key) -> Option<Arc<Part>>) -> (Cluster, Vec<Record>) {
    let (mut cluster, mut orphans) = (Cluster::default(), Vec::new());
    for place in places {
        let [namespace, service, slices @ ..] = Key::of(*place);
        if object(namespace).is_some() && !cluster.namespaces.iter().any(|known| known == place.namespace()) {
            cluster.namespaces.push(place.namespace().to_owned());
        }
        let mut endpoints = Vec::new();
        for slice in slices {
            if let Some(Part::Slice(own)) = object(slice).as_deref() {
                endpoints.extend(own);
            }
        }
        match object(service).as_deref() {
            Some(Part::Service(kind)) => {
                if matches!(kind, Kind::ExternalName(_)) {
                    orphans.extend(extensions::orphans(&endpoints, &place.name()));
                }
                if object(namespace).is_some() {
                    cluster.services.push(described(*place, kind.clone(), endpoints));
                }
            }
            _ => orphans.extend(extensions::orphans(&endpoints, &place.name())),
        }
    }
    (cluster, orphans)
}

/// Current objects.
pub(crate) type Objects = BTreeMap<Key, Part>;

/// Change of one object; without content, its deletion.
pub(crate) type Change = (Key, Option<Part>);

/// Returns changes that create a cluster.
pub(crate) fn creation(random: &mut Random) -> Vec<Change> {
    let mut changes: Vec<Change> =
        (0..NAMESPACES.len()).map(|at| (Key::Namespace(at), Some(Part::Namespace))).collect();
    for place in Place::all() {
        if random.percent(75) {
            changes.push((Key::Service(place), Some(service(place, random))));
        }
        for is_v4 in [true, false] {
            changes.extend(random.percent(60).then(|| slice(place, is_v4, random)));
        }
    }
    changes
}

/// Returns the next change of a cluster, which may be several objects.
pub(crate) fn next(current: &Objects, random: &mut Random) -> Vec<Change> {
    let place = Place::random(random);
    let [namespace, key, slices @ ..] = Key::of(place);
    if !current.contains_key(&namespace) {
        return vec![(namespace, Some(Part::Namespace))];
    }
    match (random.below(20), current.contains_key(&key)) {
        (0, _) => deletion_of(namespace, current),
        (1..3, true) => vec![(key, None)],
        // A Service changes its kind when it is created again.
        (3..6, true) => vec![(key, None), (key, Some(service(place, random)))],
        (..10, false) => vec![(key, Some(service(place, random)))],
        (10..12, _) => {
            slices.into_iter().filter(|slice| current.contains_key(slice)).map(|slice| (slice, None)).collect()
        }
        _ => vec![slice(place, random.percent(60), random)],
    }
}

/// Deletes a namespace after all that is in it.
fn deletion_of(namespace: Key, current: &Objects) -> Vec<Change> {
    let inside = Place::all().map(Key::of).filter(|keys| keys[0] == namespace);
    let mut all: Vec<Key> = inside.flat_map(|keys| keys.into_iter().skip(1).rev()).collect();
    all.push(namespace);
    all.into_iter().filter(|key| current.contains_key(key)).map(|key| (key, None)).collect()
}

fn service(place: Place, random: &mut Random) -> Part {
    if let Some(target) = place.target()
        && random.percent(60)
    {
        let outside = zone::name(random.below(zone::NAMES));
        let target =
            [target.name(), format!("none.{}", target.name()), outside.clone(), outside][random.below(4)].clone();
        return Part::Service(Kind::ExternalName(target.trim_end_matches('.').to_owned()));
    }
    if random.percent(45) {
        return Part::Service(Kind::Headless);
    }
    let families = random.pick(&[&[true][..], &[true], &[false], &[true, false]]);
    let number = u8::try_from(random.below(usize::from(CLUSTER_IPS))).unwrap_or_default();
    Part::Service(Kind::ClusterIp(families.iter().map(|is_v4| place.cluster_ip(number, *is_v4)).collect()))
}

/// Creates, replaces or, without endpoints, deletes a slice.
fn slice(place: Place, is_v4: bool, random: &mut Random) -> Change {
    let mut endpoints = Vec::new();
    for number in 0..ADDRESSES {
        if random.percent(50) {
            let hostname = match number {
                1 if random.percent(50) => Some("a"),
                2 if random.percent(50) => Some("b"),
                _ => None,
            };
            endpoints.push(Endpoint { address: place.address(number, is_v4), hostname, state: random.pick(&STATES) });
        }
    }
    (Key::Slice(place, is_v4), (!endpoints.is_empty()).then_some(Part::Slice(endpoints)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_of_an_object_has_its_name() {
        let mut random = Random::new(1);
        let mut seen = 0;
        for (key, part) in creation(&mut random) {
            let Some(part) = part else { continue };
            let (_, namespace, name) = key.path();
            let json: serde_json::Value = serde_json::from_str(&part.json(key).unwrap()).unwrap();
            assert_eq!(json["metadata"]["name"], name);
            assert_eq!(json["metadata"]["namespace"].as_str().unwrap_or_default(), namespace);
            seen += 1;
        }
        assert!(seen > PLACES);
    }

    #[test]
    fn endpoints_without_a_service_are_orphans() {
        let place = Place(0);
        let endpoint = Endpoint { address: place.address(0, true), hostname: None, state: State::Ready };
        let object = |key| match key {
            Key::Namespace(0) => Some(Arc::new(Part::Namespace)),
            Key::Slice(Place(0), true) => Some(Arc::new(Part::Slice(vec![endpoint]))),
            _ => None,
        };
        let (cluster, orphans) = model(&[place], object);
        assert_eq!((cluster.namespaces.len(), cluster.services.len(), orphans.len()), (1, 0, 1));
    }
}
