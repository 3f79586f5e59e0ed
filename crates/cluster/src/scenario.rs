//! Scenario language for tests, here and in other crates (feature `scenario`): watch events, one per line, and checks
//! of the index. Invalid lines panic, which fails the test.
//!
//! ```text
//! at 7                                                   set the time to 7
//! open svc [NAMESPACE]        close svc NAMESPACE        watch of a kind that follows the namespaces
//! listing svc [NAMESPACE]     listed svc [NAMESPACE]     begin and end of a list, of the watch of that kind
//! restored svc [NAMESPACE]                               the source of that watch has another history
//! ns alpha[@VERSION]
//! svc alpha/web@1 ips=10.96.0.11,fd00::b ports=http:80/TCP,:53/UDP    or ips=None, external=www.example.com, no ports;
//!                                                        outside=203.0.113.5,lb.example.com
//! slice alpha/web-a@1 of=web v4=10.1.0.5#w0,10.1.0.6~pod-name,!10.1.0.7 ports=…        # hostname, ~ pod,
//!                                                        ! not ready, ? ready unset, %zone at its end
//! import alpha/web@1 ips=10.112.0.1 ports=http:80/TCP    or headless; imported alpha/web-a of=web cluster=east v4=…
//! pod alpha/p@1 ip=10.1.0.5,fd00::5 [labels=KEY:VALUE,…] [network=host] [terminating]
//! node n1@1 zone=eu-1a region=eu-1
//! ~svc alpha/web                                         exists, but cannot be decoded
//! -svc alpha/web                                         deleted; `=> added` etc. after any event checks its effect
//! ? svc alpha/web = ClusterIp 10.96.0.11,fd00::b http:80/TCP [w0=10.1.0.5 http:8080/TCP]
//! ? version alpha/web = 1              resource version of a Service; `common version` of a ServiceImport
//! ? unready alpha/web = 2 p-0=10.1.0.7 -=10.1.0.8      endpoints that are not ready: number, pods and addresses
//! ? unready alpha/web w0 = p-0=10.1.0.7                the one with this label
//! ? at 10.1.0.5 = alpha/web:w0         endpoints at an address
//! ? ip 10.96.0.11 = alpha/web          Service with a cluster IP
//! ? outside 203.0.113.5 = alpha/web    Services with an external IP
//! ? called alpha/web w0 = 10.1.0.5     ? pod alpha 10.1.0.5 = true     ? ns alpha = true
//! ? pods 10.1.0.5 = alpha              namespaces of the pods at an address
//! ? known alpha svc = true             true if objects of the kind missing in the namespace are known not to exist
//! ? location = eu-1a eu-1              zone and region of the cluster
//! ? serial = 7     ? synced = true     ? counts = 1 1 1 1 0            namespaces services slices pods, rejected
//! ```
//!
//! The syntax for a mesh is in `mesh/scenario.rs`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::missing_panics_doc, reason = "for tests alone")]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use host::FollowError;

use crate::mesh;
use crate::object::{self, AddressType, Event, Meta, Object};
use crate::snapshot::{Entry, Record, for_each_record};
use crate::{
    Address, Change, ClusterHandle, Clusters, Endpoint, Index, Kind, Kinds, NotReadyEndpoint, Port, Reducer, Request,
    Restore, Resumable, Service, ServiceKind, Spec, Watch,
};

/// Kinds that a cluster's own names and those of its ClusterSet are made from.
#[cfg(test)]
pub(crate) const ALL: [Kind; 6] =
    [Kind::Namespace, Kind::Service, Kind::EndpointSlice, Kind::Pod, Kind::ServiceImport, Kind::ImportedSlice];

/// A reducer with a clock.
pub struct Stage {
    reducer: Reducer,
    /// Index that the reducer writes.
    pub index: Arc<Index>,
    /// Log of all events. Those after a list have the versions of their objects as positions.
    pub log: Vec<u8>,
    /// Watches whose list is in progress.
    listing: BTreeSet<usize>,
    now_seconds: u32,
}

/// Fake cluster defined by script lines. Each follower sees the objects that its request covers.
#[derive(Clone, Default)]
pub struct Script(Rc<RefCell<Played>>);

#[derive(Default)]
struct Played {
    lines: Vec<String>,
    unlisted: bool,
    refusal: Option<String>,
    followed: Vec<(Request, Stage)>,
}

impl Script {
    /// Plays a line for current and future followers.
    pub fn play(&self, line: &str) {
        let played = &mut *self.0.borrow_mut();
        played.followed.iter_mut().for_each(|(_, stage)| stage.play(line));
        played.lines.push(line.to_owned());
    }

    /// Marks the initial lists as incomplete for future followers, until [`Script::list`].
    pub fn unlist(&self) {
        self.0.borrow_mut().unlisted = true;
    }

    /// Completes all lists.
    pub fn list(&self) {
        let played = &mut *self.0.borrow_mut();
        played.unlisted = false;
        played.followed.iter_mut().for_each(|(_, stage)| stage.list_all());
    }

    /// Sets the age of the data in seconds. It is stale for the present followers whose limit it exceeds.
    pub fn age(&self, seconds: u32) {
        let age = Duration::from_secs(seconds.into());
        for (request, stage) in &self.0.borrow().followed {
            let is_stale = request.stale_after.is_some_and(|limit| age >= limit);
            stage.index.set_stale_seconds(NonZeroU32::new(seconds).filter(|_| is_stale));
        }
    }

    /// Makes [`Clusters::follow`] fail with this message from now on.
    pub fn refuse(&self, reason: &str) {
        self.0.borrow_mut().refusal = Some(reason.to_owned());
    }
}

impl Clusters for Script {
    fn follow(&self, request: &Request) -> Result<Arc<dyn ClusterHandle>, FollowError> {
        let played = &mut *self.0.borrow_mut();
        if let Some(reason) = &played.refusal {
            return Err(FollowError::new(reason.as_str()));
        }
        let request = request.canonical();
        if let Some((_, stage)) = played.followed.iter().find(|(known, _)| *known == request) {
            return Ok(Arc::new(Handle(Arc::clone(&stage.index))));
        }
        let mut stage = Stage::new(&request.watches());
        played.lines.iter().for_each(|line| stage.play(line));
        if !played.unlisted {
            stage.list_all();
        }
        let index = Arc::clone(&stage.index);
        played.followed.push((request, stage));
        Ok(Arc::new(Handle(index)))
    }
}

struct Handle(Arc<Index>);

impl ClusterHandle for Handle {
    fn index(&self) -> &Arc<Index> {
        &self.0
    }
}

/// Plays a scenario in a reducer that watches all kinds in all namespaces.
#[cfg(test)]
pub(crate) fn play(text: &str) {
    Stage::new(&Spec::new(&ALL, &[])).play(text);
}

impl Stage {
    /// Creates an empty reducer.
    #[must_use]
    pub fn new(spec: &Spec) -> Stage {
        let (reducer, index) = Reducer::new(spec);
        Stage { reducer, index, log: Vec::new(), listing: BTreeSet::new(), now_seconds: 1 }
    }

    /// Plays lines: events, times, and checks, which must hold.
    pub fn play(&mut self, text: &str) {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(check) = line.strip_prefix("? ") {
                let (question, expected) = check.split_once(" =").unwrap();
                assert_eq!(self.ask(question), expected.trim(), "{line}");
            } else if let Some(time) = line.strip_prefix("at ") {
                self.now_seconds = time.parse().unwrap();
            } else {
                let (event, expected) = line.split_once(" => ").unwrap_or((line, ""));
                let change = self.apply(event);
                let shown = change.map(|change| format!("{change:?}").to_lowercase());
                assert!(expected.is_empty() || shown.as_deref() == Some(expected), "{line}: {change:?}");
            }
        }
    }

    /// Applies an event. Does nothing if no watch covers its kind and namespace.
    pub(crate) fn apply(&mut self, line: &str) -> Option<Change> {
        let (verb, rest) = line.split_once(' ').unwrap();
        let (target, fields) = rest.split_once(' ').unwrap_or((rest, ""));
        let (name, version) = target.split_once('@').unwrap_or((target, ""));
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let meta = Meta { namespace, name, version };
        if verb == "open" {
            let namespace = (!fields.is_empty()).then(|| fields.into());
            self.reducer.open(&Watch { kind: kind_of(name), namespace });
            return None;
        }
        if verb == "restored" {
            let watch = self.watch(name, fields)?;
            self.reducer.forget_versions(watch);
            return None;
        }
        if verb == "close" {
            let number = self.watch(name, fields)?;
            let watch = Watch { kind: kind_of(name), namespace: Some(fields.into()) };
            let closed: Record<'_> = Record::of(&watch, Entry::Closed);
            closed.append_to(&mut self.log).unwrap();
            self.reducer.close(number, self.now_seconds);
            return None;
        }
        let (kind, namespace, event) = match verb {
            "listing" => (name, fields, Event::Listing),
            "listed" => (name, fields, Event::Listed),
            _ => match verb.split_at(1) {
                ("-", kind) => (kind, namespace, Event::Deleted { namespace, name }),
                ("~", kind) => (kind, namespace, Event::Unreadable { namespace, name }),
                _ => (verb, namespace, Event::Applied(object(verb, meta, fields))),
            },
        };
        let watch = self.watch(kind, if verb.ends_with("ns") { name } else { namespace })?;
        self.record(watch, &event, version);
        Some(self.reducer.apply(watch, &event, self.now_seconds))
    }

    /// Adds an event to the log.
    fn record(&mut self, watch: usize, event: &Event<'_>, version: &str) {
        // `listed svc` ends at the position 0; an event has its version as position, and none within a list.
        let position = match event {
            Event::Listed => Some("0"),
            _ if version.is_empty() || self.listing.contains(&watch) => None,
            _ => Some(version),
        };
        match event {
            Event::Listing => drop(self.listing.insert(watch)),
            Event::Listed => drop(self.listing.remove(&watch)),
            _ => {}
        }
        if let Some(record) = self.reducer.record(watch, event, position) {
            record.append_to(&mut self.log).unwrap();
        }
    }

    /// Returns the number of the watch that covers this kind and namespace.
    fn watch(&self, kind: &str, namespace: &str) -> Option<usize> {
        self.reducer.find_watch(kind_of(kind), namespace)
    }

    /// Restores a log. Returns the watches to resume, or `None` if the log ends before the first list of a watch.
    pub fn restore(&mut self, log: &[u8]) -> Option<Vec<Resumable>> {
        let mut restore = Restore::new(&mut self.reducer);
        for_each_record(log, |_, _, record| restore.apply(record, self.now_seconds));
        restore.finish()
    }

    /// Resumes all watches.
    pub fn resume_all(&mut self) {
        for (watch, _) in self.reducer.watches() {
            self.reducer.resumed(watch);
        }
    }

    /// Completes the lists of all watches.
    pub(crate) fn list_all(&mut self) {
        for (watch, _) in self.reducer.watches() {
            self.reducer.apply(watch, &Event::Listed, self.now_seconds);
        }
    }

    pub(crate) fn ask(&self, question: &str) -> String {
        let words: Vec<&str> = question.split(' ').collect();
        if let Some(answer) = self.index.mesh().and_then(|mesh| mesh::scenario::ask(mesh, &words)) {
            return answer;
        }
        let read = |path: &str, read: &dyn Fn(&Service) -> String| {
            let (namespace, name) = path.split_once('/').unwrap();
            self.index.service(namespace.as_bytes(), name.as_bytes(), read).unwrap_or_else(|| "none".into())
        };
        match words[..] {
            ["common", "version", path] => {
                let (namespace, name) = path.split_once('/').unwrap();
                let common = self.index.clusterset().unwrap();
                common.service(namespace.as_bytes(), name.as_bytes(), version).unwrap_or_else(|| "none".into())
            }
            ["svc", path] => read(path, &describe),
            ["version", path] => read(path, &version),
            ["unready", path] => read(path, &|service| {
                let shown: String = service.not_ready().map(not_ready).map(|text| format!(" {text}")).collect();
                format!("{}{shown}", service.not_ready_count())
            }),
            ["unready", path, label] => read(path, &|service| {
                joined(service.not_ready().filter(|one| one.is_called(label.as_bytes())).map(not_ready).collect())
            }),
            ["called", path, label] => read(path, &|service| {
                joined(service.endpoints_called(label.as_bytes()).map(|endpoint| address(endpoint.address())).collect())
            }),
            ["ip", ip] => {
                let found = self.index.service_of_cluster_ip(ip.parse().unwrap(), |service| Some(path(service)));
                found.unwrap_or_else(|| "none".into())
            }
            ["outside", ip] => {
                let mut found = Vec::new();
                self.index.services_of_external_ip(ip.parse().unwrap(), |service| found.push(path(service)));
                joined(found)
            }
            ["at", ip] => joined(self.at(ip.parse().unwrap())),
            ["known", name, kind] => {
                self.index.knows_in(name.as_bytes(), Kinds::of(&[Kind::Namespace, kind_of(kind)])).to_string()
            }
            ["location"] => self
                .index
                .location()
                .map_or_else(String::new, |location| format!("{} {}", location.zone, location.region)),
            ["ns", name] => self.index.namespace_exists(name.as_bytes()).to_string(),
            ["pod", namespace, ip] => self.index.pod_exists(namespace.as_bytes(), ip.parse().unwrap()).to_string(),
            ["pods", ip] => {
                let mut found = Vec::new();
                self.index.namespaces_of_pod(ip.parse().unwrap(), |namespace| found.push(namespace.to_owned()));
                joined(found)
            }
            ["named", ip] => {
                let mut found = Vec::new();
                self.index.pods_at(ip.parse().unwrap(), |pod| {
                    let mark = if pod.uses_host_network() { "!" } else { "" };
                    found.push(format!("{}/{}{mark}", pod.namespace(), pod.name()));
                });
                joined(found)
            }
            ["label", ip, at] => {
                let mut found = Vec::new();
                let at = at.parse().unwrap();
                self.index.pods_at(ip.parse().unwrap(), |pod| found.push(pod.label(at).to_owned()));
                joined(found)
            }
            ["serial"] => self.index.serial().to_string(),
            ["synced"] => self.index.is_synced().to_string(),
            ["counts"] => {
                let counts = self.index.counts();
                let crate::Counts { namespaces, services, endpoint_slices, pods, refused } = counts;
                format!("{namespaces} {services} {endpoint_slices} {pods} {refused}")
            }
            _ => panic!("{question}"),
        }
    }

    fn at(&self, ip: IpAddr) -> Vec<String> {
        let mut found = Vec::new();
        self.index.services_of_endpoint(ip, |service, endpoint| {
            assert_eq!(endpoint.address(), Address::Ip(ip));
            found.push(format!("{}:{}", path(service), label(endpoint)));
        });
        found
    }
}

pub(crate) fn object<'a>(kind: &str, meta: Meta<'a>, fields: &'a str) -> Object<'a> {
    let field = |key: &str| fields.split(' ').find_map(|field| field.strip_prefix(key)?.strip_prefix('='));
    let list = |key: &str| field(key).unwrap_or_default().split(',').filter(|text| !text.is_empty());
    match kind {
        "ns" => Object::Namespace(meta),
        "svc" => Object::Service(object::Service {
            meta,
            service_type: if field("external").is_some() { "ExternalName" } else { "ClusterIP" },
            cluster_ips: list("ips").collect(),
            external_name: field("external").unwrap_or_default(),
            ports: list("ports").map(port).collect(),
            external: list("outside").collect(),
        }),
        "import" => Object::ServiceImport(object::ServiceImport {
            meta,
            import_type: if fields.ends_with("headless") { "Headless" } else { "ClusterSetIP" },
            ips: list("ips").collect(),
            ports: list("ports").map(port).collect(),
        }),
        "slice" | "imported" => {
            let types = [("v4", AddressType::Ipv4), ("v6", AddressType::Ipv6), ("names", AddressType::Fqdn)];
            let (key, address_type) = types.into_iter().find(|(key, _)| field(key).is_some()).unwrap_or(types[0]);
            Object::EndpointSlice(object::EndpointSlice {
                meta,
                service: field("of").unwrap_or_default(),
                source_cluster: field("cluster").unwrap_or_default(),
                address_type,
                endpoints: list(key).map(endpoint).collect(),
                ports: list("ports").map(port).collect(),
            })
        }
        "pod" => Object::Pod(object::Pod {
            meta,
            addresses: list("ip").collect(),
            terminating: fields.ends_with("terminating"),
            host_network: field("network") == Some("host"),
            labels: list("labels").filter_map(|label| label.split_once(':')).collect(),
        }),
        "node" => Object::Node(object::Node {
            meta,
            zone: field("zone").unwrap_or_default(),
            region: field("region").unwrap_or_default(),
        }),
        _ => mesh::scenario::object(kind, meta, fields).unwrap_or_else(|| panic!("{kind}")),
    }
}

fn kind_of(word: &str) -> Kind {
    match word {
        "ns" => Kind::Namespace,
        "svc" => Kind::Service,
        "slice" => Kind::EndpointSlice,
        "pod" => Kind::Pod,
        "import" => Kind::ServiceImport,
        "imported" => Kind::ImportedSlice,
        "node" => Kind::Node,
        "entry" => Kind::ServiceEntry,
        "workload" => Kind::WorkloadEntry,
        "meshpod" => Kind::WorkloadPod,
        _ => panic!("{word}"),
    }
}

fn port(text: &str) -> object::Port<'_> {
    let (name, rest) = text.split_once(':').unwrap();
    let (number, protocol) = rest.split_once('/').unwrap();
    object::Port { name, protocol, number: number.parse().ok() }
}

fn endpoint(text: &str) -> object::Endpoint<'_> {
    let ready = match text.as_bytes()[0] {
        b'!' => Some(false),
        b'?' => None,
        _ => Some(true),
    };
    let text = text.trim_start_matches(['!', '?']);
    let (text, zone) = text.split_once('%').unwrap_or((text, ""));
    let (text, target) = text.split_once('~').unwrap_or((text, ""));
    let (address, hostname) = text.split_once('#').unwrap_or((text, ""));
    object::Endpoint { address, ready, hostname, target, is_pod: !target.is_empty(), zone }
}

fn describe(service: &Service) -> String {
    let kind = match &service.kind {
        ServiceKind::ClusterIp(ips) => {
            format!("ClusterIp {}", ips.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(","))
        }
        ServiceKind::ExternalName(name) => format!("ExternalName {name}"),
        kind => format!("{kind:?}"),
    };
    let mut slices: Vec<String> = service
        .slices
        .iter()
        .map(|slice| {
            let endpoints =
                slice.endpoints().map(|endpoint| format!("{}={} ", label(endpoint), address(endpoint.address())));
            format!(" [{}{}]", endpoints.collect::<String>(), ports(&slice.ports))
        })
        .collect();
    slices.sort_unstable();
    format!("{kind} {}{}", ports(&service.ports), slices.concat())
}

fn not_ready(endpoint: NotReadyEndpoint<'_>) -> String {
    format!("{}={}", endpoint.pod().unwrap_or("-"), address(endpoint.address()))
}

fn version(service: &Service) -> String {
    service.resource_version.map_or_else(|| "-".into(), |version| version.to_string())
}

fn ports(ports: &[Port]) -> String {
    let port = |port: &Port| {
        let number = port.number.map_or("-".into(), |number| number.to_string());
        format!("{}:{number}/{}", port.name, port.protocol)
    };
    ports.iter().map(port).collect::<Vec<_>>().join(",")
}

pub(crate) fn joined(mut texts: Vec<String>) -> String {
    texts.sort_unstable();
    texts.join(" ")
}

fn path(service: &Service) -> String {
    format!("{}/{}", service.namespace, service.name)
}

fn label(endpoint: Endpoint<'_>) -> String {
    String::from_utf8(endpoint.label(&mut [0; wire::LABEL_MAX]).to_vec()).unwrap()
}

fn address(address: Address<'_>) -> String {
    match address {
        Address::Ip(ip) => ip.to_string(),
        Address::Name(name) => name.to_owned(),
    }
}
