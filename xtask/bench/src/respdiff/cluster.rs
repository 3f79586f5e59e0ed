//! A random cluster, and its changes between the rounds of questions.
//!
//! Each namespace has places for Services and Pods. A change fills some places again: with an object of another kind,
//! with other addresses, or with nothing. Each round ends with marker objects, which are the last changes of all kinds:
//! a server that answers for them has seen all changes.

use std::net::IpAddr;

use fakeapi::{FakeApi, object};
use serde_json::{Value, json};

use super::grammar::{Kubernetes, reverse};
use crate::random::Random;

/// Namespaces with Services and Pods.
const NAMESPACES: [&str; 3] = ["edge", "prod", "kube"];
/// Number of places for Services in a namespace.
const SERVICES: usize = 8;
/// Number of places for Pods in a namespace.
const PODS: usize = 4;
/// Number of places that a round changes.
const CHANGES: usize = 12;
/// Kinds of what a place for a Service can have.
const KINDS: [Kind; 12] = [
    Kind::Nothing,
    Kind::ClusterIp { families: "4" },
    Kind::ClusterIp { families: "46" },
    Kind::ClusterIp { families: "64" },
    Kind::ClusterIp { families: "6" },
    Kind::Headless { not_ready: false },
    Kind::Headless { not_ready: false },
    Kind::Headless { not_ready: true },
    Kind::NoEndpoints,
    Kind::External,
    Kind::LoadBalancer,
    Kind::ExternalIps,
];
/// Targets of ExternalName Services.
const TARGETS: [&str; 12] = [
    "s0.edge.svc.cluster.local",
    "s1.prod.svc.cluster.local",
    "s2.edge.svc.cluster.local",
    "www.example.org.",
    "nx1.example.org",
    "nope.edge.svc.cluster.local",
    "S3.Edge.SVC.Cluster.Local",
    "cn1.example.org",
    "www.z1.test",
    "nd1.example.org",
    "s4.kube.svc.cluster.local",
    "h0.s5.edge.svc.cluster.local",
];

/// Kind of a place for a Service.
#[derive(Clone, Copy)]
enum Kind {
    Nothing,
    /// Address families in order.
    ClusterIp {
        families: &'static str,
    },
    /// Headless, perhaps with `publishNotReadyAddresses`.
    Headless {
        not_ready: bool,
    },
    NoEndpoints,
    External,
    LoadBalancer,
    ExternalIps,
}

/// Random cluster in an API server.
pub(crate) struct Cluster {
    api: FakeApi,
    random: Random,
    options: Kubernetes,
    round: usize,
}

impl Cluster {
    /// Starts an API server with random objects.
    pub(crate) fn start(seed: u64, options: Kubernetes) -> Cluster {
        let mut cluster = Cluster { api: FakeApi::start(), random: Random::new(!seed), options, round: 0 };
        let mut objects: Vec<Value> = ["default", "kube-system"].iter().map(|name| namespace(name)).collect();
        objects.extend(NAMESPACES.iter().map(|name| namespace(name)));
        cluster.api.put_all(objects);
        for at in 0..NAMESPACES.len() {
            (0..SERVICES).for_each(|number| cluster.fill_service(at, number));
            (0..PODS).for_each(|number| cluster.fill_pod(at, number));
        }
        cluster.put_markers();
        cluster
    }

    /// Returns the port of the API server.
    pub(crate) fn port(&self) -> &str {
        self.api.url().rsplit(':').next().unwrap_or_default()
    }

    /// Returns true if changes are visible at once.
    pub(crate) const fn churns(&self) -> bool {
        self.options.churn
    }

    /// Changes objects.
    pub(crate) fn change(&mut self) {
        self.round += 1;
        for _ in 0..CHANGES {
            let at = self.random.below(NAMESPACES.len());
            match self.random.below(10) {
                0 => self.toggle_namespace(),
                1..4 => {
                    let number = self.random.below(PODS);
                    self.fill_pod(at, number);
                }
                _ => {
                    let number = self.random.below(SERVICES);
                    self.fill_service(at, number);
                }
            }
        }
        self.put_markers();
    }

    /// Returns names that have an address as soon as all changes are seen.
    pub(crate) fn markers(&self) -> Vec<String> {
        let round = self.round;
        let mut names = vec![format!("cip.m{round}.svc.cluster.local.")];
        if self.options.endpoints {
            names.push(format!("hl.m{round}.svc.cluster.local."));
        }
        if self.options.verified {
            names.push(format!("172-29-0-{round}.m{round}.pod.cluster.local."));
        }
        names
    }

    fn put_markers(&self) {
        let (round, name) = (self.round, format!("m{}", self.round));
        let ports = json!([{ "name": "http", "port": 80, "protocol": "TCP" }]);
        let service = |service: &str, ip: &str| {
            let spec = json!({ "clusterIP": ip, "clusterIPs": [ip], "ports": ports });
            labelled("Service", &name, service, "marker", json!({ "spec": spec }))
        };
        let endpoints = json!([{ "addresses": [format!("172.28.0.{round}")], "conditions": { "ready": true } }]);
        self.api.put_all([
            namespace(&name),
            pod(&name, "marker", "marker", &[format!("172.29.0.{round}")], "Running"),
            service("cip", &format!("10.96.255.{round}")),
            service("hl", "None"),
            slice(&name, "cip-4", ("cip", "marker"), ("IPv4", endpoints.clone(), ports.clone())),
            slice(&name, "hl-4", ("hl", "marker"), ("IPv4", endpoints, ports.clone())),
        ]);
    }

    /// Deletes or creates the last namespace. Its objects stay.
    fn toggle_namespace(&self) {
        let name = NAMESPACES[NAMESPACES.len() - 1];
        match self.api.get("namespaces", "", name) {
            Some(_) => self.api.delete("namespaces", "", name),
            None => drop(self.api.put(namespace(name))),
        }
    }

    fn fill_service(&mut self, at: usize, number: usize) {
        let (space, name) = (NAMESPACES[at], format!("s{number}"));
        let kind = self.random.pick(&KINDS);
        let mut slices = Vec::new();
        let spec = match kind {
            Kind::Nothing => None,
            Kind::ClusterIp { families } => Some(self.cluster_ip((at, number), families)),
            Kind::Headless { not_ready } => {
                slices = self.slices(at, number);
                Some(json!({ "clusterIP": "None", "clusterIPs": ["None"], "publishNotReadyAddresses": not_ready }))
            }
            Kind::NoEndpoints => Some(json!({ "clusterIP": "None", "clusterIPs": ["None"] })),
            Kind::External => Some(json!({ "type": "ExternalName", "externalName": self.random.pick(&TARGETS) })),
            Kind::LoadBalancer => Some(self.load_balancer((at, number))),
            Kind::ExternalIps => Some(json!({
                "clusterIP": address(at, number), "clusterIPs": [address(at, number)],
                "externalIPs": [format!("198.51.100.{}", at * 16 + number), format!("2001:db8:e::{number}")],
            })),
        };
        if matches!(kind, Kind::ClusterIp { .. }) && self.random.percent(40) {
            slices = self.slices(at, number);
        }
        for family in ["4", "6"] {
            self.remove("endpointslices", space, &format!("{name}-{family}"));
        }
        let Some(mut spec) = spec else { return self.remove("services", space, &name) };
        spec["ports"] = self.ports();
        let mut service = labelled("Service", space, &name, &name, json!({ "spec": spec }));
        if matches!(kind, Kind::LoadBalancer) {
            service["status"] = self.ingress(at, number);
        }
        self.api.put_all(std::iter::once(service).chain(slices));
    }

    fn remove(&self, resource: &str, namespace: &str, name: &str) {
        if self.api.get(resource, namespace, name).is_some() {
            self.api.delete(resource, namespace, name);
        }
    }

    fn cluster_ip(&self, (at, number): (usize, usize), families: &str) -> Value {
        let addresses: Vec<String> = families
            .chars()
            .map(|family| if family == '4' { address(at, number) } else { six(0x96, at, &[number]) })
            .collect();
        json!({ "type": "ClusterIP", "clusterIP": addresses[0], "clusterIPs": addresses })
    }

    fn load_balancer(&self, (at, number): (usize, usize)) -> Value {
        json!({ "type": "LoadBalancer", "clusterIP": address(at, number), "clusterIPs": [address(at, number)] })
    }

    fn ingress(&mut self, at: usize, number: usize) -> Value {
        let ip = format!("203.0.113.{}", at * 16 + number);
        let ingress = match self.random.below(3) {
            0 => json!([{ "ip": ip }]),
            1 => json!([{ "ip": ip }, { "ip": format!("2001:db8:1::{number}") }]),
            _ => json!([{ "hostname": "www.example.org" }]),
        };
        json!({ "loadBalancer": { "ingress": ingress } })
    }

    fn ports(&mut self) -> Value {
        match self.random.below(5) {
            0 => json!([]),
            1 => json!([{ "port": 80, "protocol": "TCP" }]),
            2 => json!([
                { "name": "dns", "port": 53, "protocol": "UDP" }, { "name": "dns", "port": 53, "protocol": "TCP" },
            ]),
            3 => json!([
                { "name": "http", "port": 80, "protocol": "TCP" }, { "name": "x", "port": 7, "protocol": "SCTP" },
            ]),
            _ => json!([{ "name": "http", "port": 80, "protocol": "TCP" }]),
        }
    }

    /// Returns slices of a Service: IPv4, and often IPv6.
    fn slices(&mut self, at: usize, number: usize) -> Vec<Value> {
        let families: &[&str] = self.random.pick(&[&["4"], &["4", "6"], &["4", "6"], &["6"]]);
        let ports = self.ports();
        families
            .iter()
            .map(|&family| {
                let endpoints: Vec<Value> = (0..self.random.below(5))
                    .map(|index| {
                        let address = match family {
                            "4" => format!("172.30.{}.{index}", at * 16 + number),
                            _ => six(0x30, at, &[number, index]),
                        };
                        self.endpoint(NAMESPACES[at], &address, index)
                    })
                    .collect();
                let (name, kind) = (format!("s{number}"), format!("IPv{family}"));
                let parts = (kind.as_str(), endpoints.into(), ports.clone());
                slice(NAMESPACES[at], &format!("{name}-{family}"), (&name, &name), parts)
            })
            .collect()
    }

    fn endpoint(&mut self, space: &str, address: &str, index: usize) -> Value {
        let conditions = match self.random.below(6) {
            0 => json!({ "ready": false }),
            1 => json!({ "ready": false, "serving": true, "terminating": true }),
            2 => json!({}),
            _ => json!({ "ready": true }),
        };
        let mut endpoint = json!({ "addresses": [address], "conditions": conditions });
        match self.random.below(3) {
            0 => endpoint["hostname"] = format!("h{index}").into(),
            1 => {
                let name = format!("pod-{index}");
                endpoint["targetRef"] = json!({ "kind": "Pod", "name": name, "namespace": space });
            }
            _ => {}
        }
        endpoint
    }

    fn fill_pod(&mut self, at: usize, number: usize) {
        let (space, name) = (NAMESPACES[at], format!("p{number}"));
        let ip = format!("172.31.{at}.{number}");
        let addresses = match self.random.below(5) {
            0 => return self.remove("pods", space, &name),
            1 => vec![ip, six(0x31, at, &[number])],
            2 => vec![six(0x31, at, &[number]), ip],
            3 => vec!["172.31.9.9".to_owned()],
            _ => vec![ip],
        };
        let phase = self.random.pick(&["Running", "Running", "Running", "Succeeded", "Failed"]);
        self.api.put(pod(space, &name, "s1", &addresses, phase));
    }
}

/// Returns the cluster IP of a place.
fn address(at: usize, number: usize) -> String {
    format!("10.96.{at}.{number}")
}

/// Returns an IPv6 address of a namespace in its canonical text, as API servers store it.
fn six(network: u16, at: usize, numbers: &[usize]) -> String {
    let mut groups = [0; 8];
    (groups[0], groups[1], groups[4]) = (0xfd00, network, u16::try_from(at + 1).unwrap_or_default());
    groups[5..].iter_mut().zip(numbers).for_each(|(group, number)| *group = u16::try_from(number + 1).unwrap_or(1));
    std::net::Ipv6Addr::from(groups).to_string()
}

fn labelled(kind: &str, namespace: &str, name: &str, app: &str, mut rest: Value) -> Value {
    rest["metadata"] = json!({ "labels": { "app": app } });
    object(kind, namespace, name, rest)
}

fn namespace(name: &str) -> Value {
    let env = if name == "prod" { "test" } else { "prod" };
    object("Namespace", "", name, json!({ "metadata": { "labels": { "env": env } } }))
}

fn pod(namespace: &str, name: &str, app: &str, addresses: &[String], phase: &str) -> Value {
    let ips: Vec<Value> = addresses.iter().map(|ip| json!({ "ip": ip })).collect();
    let status = json!({ "phase": phase, "podIP": addresses[0], "podIPs": ips });
    let rest = json!({ "spec": { "containers": [{ "name": "c", "image": "x" }] }, "status": status });
    labelled("Pod", namespace, name, app, rest)
}

/// Returns an EndpointSlice of a Service, with the label `app`.
fn slice(
    namespace: &str,
    name: &str,
    (service, app): (&str, &str),
    (kind, endpoints, ports): (&str, Value, Value),
) -> Value {
    let labels = json!({ "kubernetes.io/service-name": service, "app": app });
    let rest = json!({
        "metadata": { "labels": labels }, "addressType": kind, "endpoints": endpoints, "ports": ports,
    });
    object("EndpointSlice", namespace, name, rest)
}

/// Returns the names of all places, whether they have objects or not.
pub(crate) fn names() -> Vec<String> {
    let mut names = Vec::new();
    for (at, space) in NAMESPACES.iter().enumerate() {
        names.extend([format!("{space}.svc.cluster.local."), format!("{space}.pod.cluster.local.")]);
        for number in 0..SERVICES {
            let service = format!("s{number}.{space}.svc.cluster.local.");
            let first = ["_http._tcp", "_dns._udp", "_tcp", "h0", "h1", "pod-1", "nope", "_x._sctp", "*"];
            names.extend(first.map(|first| format!("{first}.{service}")));
            let place = at * 16 + number;
            names.extend((0..3).map(|index| format!("172-30-{place}-{index}.{service}")));
            names.push(format!("{}.{service}", six(0x30, at, &[number, 1]).replace(':', "-")));
            names.push(format!("s{number}.{space}.lb.test."));
            names.push(format!("_http._tcp.s{number}.{space}.lb.test."));
            names.push(service);
            let addresses = [
                address(at, number),
                six(0x96, at, &[number]),
                format!("172.30.{place}.0"),
                format!("172.30.{place}.1"),
                six(0x30, at, &[number, 1]),
                format!("203.0.113.{place}"),
            ];
            names.extend(addresses.iter().filter_map(|address| address.parse::<IpAddr>().ok()).map(reverse));
        }
        for number in 0..PODS {
            names.push(format!("172-31-{at}-{number}.{space}.pod.cluster.local."));
            let label = six(0x31, at, &[number]).replace(':', "-");
            names.push(format!("{label}.{space}.pod.cluster.local."));
        }
        names.push(format!("172-31-9-9.{space}.pod.cluster.local."));
    }
    names
}
