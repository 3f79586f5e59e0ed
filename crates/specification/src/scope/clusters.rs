//! All small clusters: up to two namespaces, two Services and three endpoints of each.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Case, first_of_each};
use crate::branch::Branch;
use crate::cluster::{Cluster, Endpoint, Kind, Port, Service, State, ZONE, dashed, records, reverse_name};
use crate::record::{Question, Type, parent};

/// Number of addresses of each family that a cluster has for itself.
const ADDRESSES: u32 = 16;
/// First addresses of endpoints of the first and the second Service. Cluster IPs are before them.
const ENDPOINTS: [u32; 2] = [5, 9];
/// Address that no object has.
const UNUSED: u32 = 15;

const HTTP: Port = Port { name: "http", protocol: "tcp", number: 80 };
const DNS: Port = Port { name: "dns", protocol: "udp", number: 53 };
const DNS_TCP: Port = Port { name: "dns", protocol: "tcp", number: 53 };
const UNNAMED: Port = Port { name: "", protocol: "tcp", number: 8080 };
/// Ports of a Service.
const PORTS: [&[Port]; 5] = [&[], &[UNNAMED], &[HTTP], &[HTTP, DNS], &[DNS_TCP, DNS]];

/// Address family of a cluster IP or an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}
use Family::{V4, V6};

/// Kinds of endpoints.
const STATES: [(Family, State, Option<&str>); 11] = [
    (V4, State::Ready, None),
    (V4, State::Ready, Some("a")),
    (V4, State::Ready, Some("b")),
    (V6, State::Ready, None),
    (V6, State::Ready, Some("a")),
    (V4, State::Unknown, None),
    (V6, State::Unknown, Some("b")),
    (V4, State::NotReady, None),
    (V4, State::NotReady, Some("a")),
    (V6, State::NotReady, None),
    (V4, State::Terminating, Some("a")),
];
/// Maximum number of endpoints of a Service.
const ENDPOINTS_MAX: usize = 3;

/// Recipe of a Service.
#[derive(Clone, Debug)]
enum Recipe {
    /// Cluster IPs of these families, ports, and endpoints by their number in [`STATES`].
    ClusterIp(&'static [Family], &'static [Port], Vec<usize>),
    Headless(&'static [Port], Vec<usize>),
    ExternalName(Target),
}

/// Target of an alias.
#[derive(Clone, Copy, Debug)]
enum Target {
    Outside,
    /// The other Service, which may be missing.
    Other,
    Itself,
    Missing,
}

/// Recipe of a cluster.
#[derive(Clone, Debug, Default)]
struct Plan {
    services: Vec<Recipe>,
    /// True if the second Service is in a namespace of its own, with the name of the first.
    is_apart: bool,
    /// True if both Services have the same endpoints.
    is_shared: bool,
}

/// Small cluster, and the questions that are kept for it.
#[derive(Clone, Debug)]
pub struct ClusterBlock {
    plan: Plan,
    /// Places of the questions in the list of all.
    kept: Vec<usize>,
}

impl ClusterBlock {
    /// Returns the cluster and its cases. Clusters with different numbers have different namespaces and addresses, so
    /// that a server can have many.
    #[must_use]
    pub fn numbered(&self, number: u32) -> (Cluster, Vec<Case>) {
        let cluster = cluster(&self.plan, number);
        let (records, questions) = (records(&cluster), questions(&cluster, number));
        let cases = self.kept.iter().map(|at| {
            let question = questions[*at].clone();
            let (answer, branches) = records.answer(&cluster, &question);
            Case { question, answer, branches }
        });
        let cases = cases.collect();
        (cluster, cases)
    }
}

/// Returns a cluster for each set of ways through the model that the questions to a cluster take, with a case for each.
#[must_use]
pub fn clusters() -> Vec<ClusterBlock> {
    let mut seen = HashSet::new();
    let blocks = plans().into_iter().filter_map(|plan| {
        let cluster = cluster(&plan, 0);
        let records = records(&cluster);
        let cases = questions(&cluster, 0).into_iter().enumerate().map(|(at, question)| {
            let (answer, branches) = records.answer(&cluster, &question);
            (at, Case { question, answer, branches })
        });
        // Servers have code for each type.
        let cases = first_of_each(cases, |(_, case)| (case.way(), case.question.qtype));
        let mut ways: Vec<_> = cases.iter().map(|(_, case)| case.way()).collect();
        ways.sort_unstable();
        let mut absent: Vec<Branch> = records.absent.clone();
        absent.sort_unstable();
        absent.dedup();
        let kept = cases.into_iter().map(|(at, _)| at).collect();
        seen.insert((ways, absent)).then_some(ClusterBlock { plan, kept })
    });
    blocks.collect()
}

/// Returns the branches without records of all clusters.
#[must_use]
pub fn absent() -> HashSet<Branch> {
    plans().iter().flat_map(|plan| records(&cluster(plan, 0)).absent).collect()
}

/// Returns all plans: each Service alone, and pairs of some Services.
fn plans() -> Vec<Plan> {
    let mut plans = vec![Plan::default()];
    plans.extend(all_recipes().into_iter().map(|recipe| Plan { services: vec![recipe], ..Plan::default() }));
    let some = some_recipes();
    for first in &some {
        for second in &some {
            for (is_apart, is_shared) in [(false, false), (true, false), (false, true), (true, true)] {
                plans.push(Plan { services: vec![first.clone(), second.clone()], is_apart, is_shared });
            }
        }
    }
    plans
}

const FAMILIES: [&[Family]; 3] = [&[V4], &[V6], &[V4, V6]];
const TARGETS: [Target; 4] = [Target::Outside, Target::Other, Target::Itself, Target::Missing];

fn all_recipes() -> Vec<Recipe> {
    let mut all: Vec<Recipe> = TARGETS.into_iter().map(Recipe::ExternalName).collect();
    let endpoints = super::multisets(STATES.len(), ENDPOINTS_MAX);
    for ports in PORTS {
        for families in FAMILIES {
            for few in [&[][..], &[1], &[3], &[7]] {
                all.push(Recipe::ClusterIp(families, ports, few.to_vec()));
            }
        }
        all.extend(endpoints.iter().map(|endpoints| Recipe::Headless(ports, endpoints.clone())));
    }
    all
}

/// Services of pairs: each kind, with endpoints that another Service may have under another name.
fn some_recipes() -> Vec<Recipe> {
    let mut some: Vec<Recipe> = TARGETS.into_iter().map(Recipe::ExternalName).collect();
    for ports in [PORTS[1], PORTS[3]] {
        some.extend(FAMILIES.map(|families| Recipe::ClusterIp(families, ports, vec![1])));
        let endpoints: [&[usize]; 6] = [&[], &[0], &[1], &[2, 4], &[0, 8], &[10]];
        some.extend(endpoints.map(|endpoints| Recipe::Headless(ports, endpoints.to_vec())));
    }
    some
}

fn cluster(plan: &Plan, number: u32) -> Cluster {
    let [first, second] = ["n", "m"].map(|name| format!("{name}{number}"));
    let mut namespaces = vec![first.clone()];
    if plan.is_apart {
        namespaces.push(second.clone());
    }
    let place = |at: usize| match (at, plan.is_apart) {
        (0, _) => (first.clone(), "s"),
        (_, true) => (second.clone(), "s"),
        (_, false) => (first.clone(), "t"),
    };
    let services = plan.services.iter().enumerate().map(|(at, recipe)| {
        let ((namespace, name), other) = (place(at), place(1 - at));
        let from = if plan.is_shared { ENDPOINTS[0] } else { ENDPOINTS[at] };
        let addresses = [u32::try_from(at).unwrap_or_default() + 1, from].map(|from| number * ADDRESSES + from);
        service(recipe, (namespace, name), &other, addresses)
    });
    let services = services.collect();
    Cluster { namespaces, services }
}

fn service(
    recipe: &Recipe,
    (namespace, name): (String, &str),
    (other_namespace, other): &(String, &str),
    [own, first]: [u32; 2],
) -> Service {
    let endpoints = |numbers: &[usize]| {
        let numbers = numbers.iter().map(|number| STATES[*number]).zip(first..);
        numbers
            .map(|((family, state, hostname), at)| Endpoint { address: address(family, at), hostname, state })
            .collect()
    };
    let suffix = ZONE.trim_end_matches('.');
    let (kind, ports, endpoints) = match recipe {
        Recipe::ClusterIp(families, ports, numbers) => {
            let addresses = families.iter().map(|family| address(*family, own)).collect();
            (Kind::ClusterIp(addresses), *ports, endpoints(numbers))
        }
        Recipe::Headless(ports, numbers) => (Kind::Headless, *ports, endpoints(numbers)),
        Recipe::ExternalName(target) => {
            let target = match target {
                Target::Outside => "www.outside.invalid".to_owned(),
                Target::Other => format!("{other}.{other_namespace}.svc.{suffix}"),
                Target::Itself => format!("{name}.{namespace}.svc.{suffix}"),
                Target::Missing => format!("none.{namespace}.svc.{suffix}"),
            };
            (Kind::ExternalName(target), &[][..], Vec::new())
        }
    };
    Service { namespace, name: name.to_owned(), kind, ports: ports.to_vec(), endpoints }
}

fn address(family: Family, at: u32) -> IpAddr {
    match family {
        V4 => Ipv4Addr::from_bits(10 << 24 | at).into(),
        V6 => Ipv6Addr::from_bits(0xfd00 << 112 | u128::from(at)).into(),
    }
}

/// Types that are asked.
pub const TYPES: [Type; 9] =
    [Type::A, Type::Aaaa, Type::Srv, Type::Txt, Type::Ptr, Type::Cname, Type::Ns, Type::Soa, Type::Any];

fn questions(cluster: &Cluster, number: u32) -> Vec<Question> {
    let names = names(cluster, number);
    let all = names.iter().flat_map(|name| TYPES.iter().map(|qtype| Question { name: name.clone(), qtype: *qtype }));
    all.collect()
}

/// Returns the names that are asked: each level of the tree, neighbours, and other letters.
fn names(cluster: &Cluster, number: u32) -> Vec<String> {
    let mut names: Vec<String> = ["", "svc.", "pod.", "none.", "dns-version.", "x.dns-version."]
        .iter()
        .map(|above| format!("{above}{ZONE}"))
        .collect();
    let unused = [V4, V6].map(|family| address(family, number * ADDRESSES + UNUSED));
    for namespace in cluster.namespaces.iter().map(String::as_str).chain(["none"]) {
        names.extend(["svc", "pod"].map(|kind| format!("{namespace}.{kind}.{ZONE}")));
        names.push(format!("none.{namespace}.svc.{ZONE}"));
        let pods = unused.map(dashed).into_iter().chain(["1-2-3".to_owned(), "x".to_owned()]);
        names.extend(pods.map(|label| format!("{label}.{namespace}.pod.{ZONE}")));
    }
    cluster.services.iter().for_each(|service| names.extend(service_names(service)));
    let addresses = cluster.services.iter().flat_map(service_addresses).chain(unused);
    for name in addresses.map(reverse_name) {
        names.extend([parent(&name).to_owned(), format!("1.{name}"), name]);
    }
    names.extend(["in-addr.arpa.".to_owned(), "ip6.arpa.".to_owned(), "11.in-addr.arpa.".to_owned()]);
    names
}

/// Returns the names that are asked about a Service, below its own and with other letters.
#[must_use]
pub fn service_names(service: &Service) -> Vec<String> {
    let name = format!("{}.{}.svc.{ZONE}", service.name, service.namespace);
    let mut names = vec![name.clone(), name.to_ascii_uppercase()];
    let labels =
        ["none", "_tcp", "_udp", "_http", "_http._tcp", "_dns._udp", "_dns._tcp", "_none._tcp", "x._http._tcp"];
    names.extend(labels.map(|label| format!("{label}.{name}")));
    names.push(format!("_HTTP._tcp.{name}"));
    for endpoint in &service.endpoints {
        let label = endpoint.hostname.map_or_else(|| dashed(endpoint.address), str::to_owned);
        names.extend([format!("{label}.{name}"), format!("x.{label}.{name}")]);
        // An address is a name only of an endpoint without a host name.
        names.push(format!("{}.{name}", dashed(endpoint.address)));
    }
    names
}

fn service_addresses(service: &Service) -> Vec<IpAddr> {
    let own = if let Kind::ClusterIp(addresses) = &service.kind { addresses.as_slice() } else { &[] };
    own.iter().copied().chain(service.endpoints.iter().map(|endpoint| endpoint.address)).collect()
}
