//! The cases of a cluster that exists: its objects as `kubectl get -o json` prints them, and a server at an address.
//!
//! The objects are those of one moment. Questions are left out whose answers depend on more than them: names that a
//! server may forward, the endpoints of Services with cluster IPs, for which the specification has no names, and SRV of
//! pods.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use serde_json::Value;
use specification::cluster::{Cluster, Endpoint, Kind, Port, Records, Service, State, ZONE, records, reverse_name};
use specification::record::{Data, Question, Type, is_within};
use specification::scope::{Case, TYPES, service_names};
use specification::text;

use crate::report::{self, Subject};
use xtask::Failed;

/// Label of a slice with the name of its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";
/// Names at the top of the zone that are asked.
const TOP: [&str; 5] = ["", "svc.", "pod.", "none.", "dns-version."];

/// Asks a server the questions to the objects of a file, and prints what differs.
pub(crate) fn run(server: SocketAddr, file: &Path, examples: usize) -> Result<(), Failed> {
    let fail = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let bytes = std::fs::read(file).map_err(|error| fail(&error))?;
    let objects: Value = serde_json::from_slice(&bytes).map_err(|error| fail(&error))?;
    let cluster = read(&objects).map_err(|error| fail(&error))?;
    let (namespaces, services) = (cluster.namespaces.len(), cluster.services.len());
    println!("{namespaces} namespaces, {services} Services");
    let subjects = subjects(&cluster);
    let verdicts = report::verdicts(server, &subjects)?;
    report::print(&server.to_string(), "cluster", &verdicts, examples);
    match verdicts.iter().filter(|verdict| verdict.differs()).count() {
        0 => Ok(()),
        count => Err(format!("{count} answers differ; if the objects have changed since, read them again")),
    }
}

/// Reads the objects of a list.
fn read(list: &Value) -> Result<Cluster, Failed> {
    let items = list["items"].as_array().ok_or("the file has no list `items`; use `kubectl get -o json`")?;
    let of_kind = |kind: &'static str| items.iter().filter(move |item| item["kind"] == kind);
    let mut slices: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for slice in of_kind("EndpointSlice") {
        let metadata = &slice["metadata"];
        slices
            .entry((text_of(&metadata["namespace"]), text_of(&metadata["labels"][SERVICE_NAME])))
            .or_default()
            .push(slice);
    }
    let namespaces = of_kind("Namespace").map(|item| text_of(&item["metadata"]["name"]).to_owned()).collect();
    let services = of_kind("Service").filter_map(|item| {
        let (namespace, name) = (text_of(&item["metadata"]["namespace"]), text_of(&item["metadata"]["name"]));
        service(item, slices.get(&(namespace, name)).map_or(&[][..], Vec::as_slice))
    });
    Ok(Cluster { namespaces, services: services.collect() })
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns items of a list; none if there is no list.
fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Returns a Service with the endpoints of its slices; `None` if it has no address yet.
fn service(object: &Value, slices: &[&Value]) -> Option<Service> {
    let spec = &object["spec"];
    let kind = match (text_of(&spec["type"]), text_of(&spec["clusterIP"])) {
        ("ExternalName", _) => Kind::ExternalName(text_of(&spec["externalName"]).trim_end_matches('.').to_lowercase()),
        (_, "None") => Kind::Headless,
        (_, first) => {
            let all = items(&spec["clusterIPs"]).iter().map(text_of);
            let mut addresses: Vec<IpAddr> = all.filter_map(|text| text.parse().ok()).collect();
            if addresses.is_empty() {
                addresses.extend(first.parse::<IpAddr>());
            }
            if addresses.is_empty() {
                return None;
            }
            Kind::ClusterIp(addresses)
        }
    };
    // The ports of a headless Service are those of its endpoints, which may have other numbers.
    let of_slices = slices.iter().find(|slice| !items(&slice["endpoints"]).is_empty());
    let from = of_slices.filter(|_| kind == Kind::Headless).map_or(&spec["ports"], |slice| &slice["ports"]);
    Some(Service {
        namespace: text_of(&object["metadata"]["namespace"]).to_owned(),
        name: text_of(&object["metadata"]["name"]).to_owned(),
        ports: items(from).iter().filter_map(port).collect(),
        endpoints: slices.iter().flat_map(|slice| items(&slice["endpoints"])).filter_map(endpoint).collect(),
        kind,
    })
}

fn port(object: &Value) -> Option<Port> {
    let number = object["port"].as_u64().and_then(|number| u16::try_from(number).ok())?;
    let protocol = object["protocol"].as_str().unwrap_or("TCP").to_lowercase();
    Some(Port { name: kept(text_of(&object["name"])), protocol: kept(&protocol), number })
}

/// Returns an endpoint. All addresses of an endpoint are the same one to clients, which use the first (EndpointSlice
/// API); those of type FQDN are none.
fn endpoint(object: &Value) -> Option<Endpoint> {
    let address = text_of(items(&object["addresses"]).first()?).parse().ok()?;
    let conditions = &object["conditions"];
    let state = match (conditions["ready"].as_bool(), conditions["terminating"].as_bool()) {
        (Some(true), _) => State::Ready,
        (None, _) => State::Unknown,
        (_, Some(true)) => State::Terminating,
        _ => State::NotReady,
    };
    Some(Endpoint { address, hostname: object["hostname"].as_str().filter(|name| !name.is_empty()).map(kept), state })
}

/// Keeps a text until the command ends, because the model takes texts of the program.
fn kept(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

/// Returns the questions to the whole, to each namespace, and to each Service, with the expected answers.
fn subjects(cluster: &Cluster) -> Vec<Subject> {
    let records = records(cluster);
    let subject = |part: &Cluster, names: Vec<String>| {
        let cases = names.iter().flat_map(|name| cases(cluster, &records, name)).collect();
        Subject { setting: text::cluster(part), cases }
    };
    let mut subjects = vec![subject(&Cluster::default(), TOP.map(|above| format!("{above}{ZONE}")).into())];
    for namespace in &cluster.namespaces {
        let labels = ["svc", "none.svc", "pod", "192-0-2-1.pod", "2001-db8--1.pod", "1-2-3.pod", "x.pod"];
        let name = |label: &str| match label.split_once('.') {
            Some((above, kind)) => format!("{above}.{namespace}.{kind}.{ZONE}"),
            None => format!("{namespace}.{label}.{ZONE}"),
        };
        let part = Cluster { namespaces: vec![namespace.clone()], services: Vec::new() };
        subjects.push(subject(&part, labels.map(name).into()));
    }
    for service in &cluster.services {
        let part = Cluster { namespaces: Vec::new(), services: vec![service.clone()] };
        subjects.push(subject(&part, names(service)));
    }
    subjects
}

/// Returns the names that are asked about a Service.
fn names(service: &Service) -> Vec<String> {
    let mut asked = service.clone();
    if service.kind != Kind::Headless {
        asked.endpoints.clear();
    }
    let mut names = service_names(&asked);
    let own = format!("{}.{}.svc.{ZONE}", service.name, service.namespace);
    let ports = service.ports.iter().filter(|port| !port.name.is_empty());
    names.extend(ports.map(|port| format!("_{}._{}.{own}", port.name, port.protocol)));
    let addresses = if let Kind::ClusterIp(addresses) = &service.kind { addresses.as_slice() } else { &[] };
    let ready = asked.endpoints.iter().filter(|endpoint| matches!(endpoint.state, State::Ready | State::Unknown));
    names.extend(addresses.iter().copied().chain(ready.map(|endpoint| endpoint.address)).map(reverse_name));
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the cases of a name, without those that a server may forward. A pod has no SRV record in the specification,
/// but CoreDNS and Portolan have one with port 0, which KDNS §3 permits.
fn cases(cluster: &Cluster, records: &Records, name: &str) -> Vec<Case> {
    let is_outside = |data: &Data| matches!(data, Data::Cname(target) if !is_within(target, ZONE));
    let cases = TYPES.iter().map(|qtype| {
        let question = Question { name: name.to_owned(), qtype: *qtype };
        let (answer, branches) = records.answer(cluster, &question);
        Case { question, answer, branches }
    });
    let leads_outside =
        |case: &Case| case.question.qtype != Type::Cname && case.answer.required.iter().any(|it| is_outside(&it.data));
    let is_pod = is_within(name, &format!("pod.{ZONE}"));
    let is_location = |case: &Case| is_pod && matches!(case.question.qtype, Type::Srv | Type::Any);
    cases.filter(|case| !leads_outside(case) && !is_location(case)).collect()
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use serde_json::json;

    use super::*;

    #[test]
    fn reads_the_objects_that_the_model_writes() {
        let port = |name, protocol, number| Port { name, protocol, number };
        let endpoint = |address: &str, hostname, state| Endpoint { address: address.parse().unwrap(), hostname, state };
        let endpoints = vec![
            endpoint("10.0.0.1", None, State::Ready),
            endpoint("10.0.0.2", Some("a"), State::Unknown),
            endpoint("10.0.0.3", Some("b"), State::NotReady),
            endpoint("10.0.0.4", None, State::Terminating),
            endpoint("fd00::1", Some("a"), State::Ready),
        ];
        let addresses = ["10.96.0.1", "fd00:96::1"].map(|address| address.parse().unwrap()).to_vec();
        let ports = vec![port("", "tcp", 80), port("dns", "udp", 53)];
        let kinds = [Kind::ClusterIp(addresses), Kind::Headless, Kind::ExternalName("www.example.org".to_owned())];
        let services = kinds.into_iter().zip(["one", "two", "three"]).map(|(kind, name)| {
            let is_alias = matches!(kind, Kind::ExternalName(_));
            let (ports, endpoints) = if is_alias { Default::default() } else { (ports.clone(), endpoints.clone()) };
            Service { namespace: "shop".to_owned(), name: name.to_owned(), kind, ports, endpoints }
        });
        let idle = Service { name: "idle".to_owned(), endpoints: Vec::new(), ..services.clone().nth(1).unwrap() };
        let services = services.chain([idle]).collect();
        let cluster = Cluster { namespaces: vec!["shop".to_owned(), "empty".to_owned()], services };
        let objects = specification::objects::json(&cluster);
        let objects: Vec<Value> = objects.iter().map(|object| serde_json::from_str(object).unwrap()).collect();
        assert_eq!(read(&json!({ "items": objects })).unwrap(), cluster);
    }

    #[test]
    fn takes_the_ports_of_endpoints_only_for_headless_services() {
        let metadata = json!({ "namespace": "shop", "name": "web" });
        let port = |number: u16| json!([{ "name": "http", "port": number, "protocol": "TCP" }]);
        let labels = json!({ "namespace": "shop", "name": "web-1", "labels": { SERVICE_NAME: "web" } });
        let endpoints = json!([{ "addresses": ["10.0.0.1", "10.0.0.2"], "hostname": "" }]);
        let slice = json!({ "kind": "EndpointSlice", "metadata": labels, "endpoints": endpoints, "ports": port(8080) });
        for (address, number) in [("None", 8080), ("10.96.0.1", 80)] {
            let spec = json!({ "clusterIP": address, "ports": port(80) });
            let service = json!({ "kind": "Service", "metadata": metadata, "spec": spec });
            let cluster = read(&json!({ "items": [service, slice] })).unwrap();
            let [service] = cluster.services.as_slice() else { panic!("{cluster:?}") };
            assert_eq!(service.ports, [Port { name: "http", protocol: "tcp", number }]);
            let address = "10.0.0.1".parse().unwrap();
            assert_eq!(service.endpoints, [Endpoint { address, hostname: None, state: State::Unknown }]);
        }
        let pending = json!({ "kind": "Service", "metadata": metadata, "spec": { "clusterIP": "" } });
        assert!(read(&json!({ "items": [pending] })).unwrap().services.is_empty());
        assert!(read(&json!([])).unwrap_err().contains("kubectl get -o json"));
    }

    #[test]
    fn asks_each_port_and_no_name_that_a_server_forwards() {
        let service = |name: &str, kind: Kind| Service {
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            kind,
            ports: vec![Port { name: "grpc", protocol: "sctp", number: 7 }],
            endpoints: vec![Endpoint { address: "10.0.0.1".parse().unwrap(), hostname: None, state: State::Ready }],
        };
        let services = vec![
            service("web", Kind::ClusterIp(vec!["10.96.0.1".parse().unwrap()])),
            service("db", Kind::Headless),
            service("out", Kind::ExternalName("www.example.org".to_owned())),
        ];
        let subjects = subjects(&Cluster { namespaces: vec!["shop".to_owned()], services });
        let has = |name: &str, qtype: Type| {
            let cases = subjects.iter().flat_map(|subject| &subject.cases);
            cases.filter(|case| case.question.name == name && case.question.qtype == qtype).count()
        };
        for (name, qtype, count) in [
            ("_grpc._sctp.web.shop.svc.cluster.local.", Type::Srv, 1),
            ("_grpc._sctp.db.shop.svc.cluster.local.", Type::Srv, 1),
            ("10-0-0-1.db.shop.svc.cluster.local.", Type::A, 1),
            ("10-0-0-1.web.shop.svc.cluster.local.", Type::A, 0),
            ("1.0.96.10.in-addr.arpa.", Type::Ptr, 1),
            ("1.0.0.10.in-addr.arpa.", Type::Ptr, 1),
            ("2.0.0.10.in-addr.arpa.", Type::Ptr, 0),
            ("out.shop.svc.cluster.local.", Type::Cname, 1),
            ("out.shop.svc.cluster.local.", Type::A, 0),
            ("none.shop.svc.cluster.local.", Type::A, 1),
            ("192-0-2-1.shop.pod.cluster.local.", Type::A, 1),
            ("192-0-2-1.shop.pod.cluster.local.", Type::Srv, 0),
        ] {
            assert_eq!(has(name, qtype), count, "{name} {qtype}");
        }
    }

    /// Answers that the name does not exist, to `count` queries.
    fn deny(socket: &UdpSocket, count: usize) {
        for _ in 0..count {
            let mut buffer = [0; 512];
            let (length, client) = socket.recv_from(&mut buffer).unwrap();
            // Flags QR, AA and NXDOMAIN.
            buffer[2..4].copy_from_slice(&[0x84, 3]);
            socket.send_to(&buffer[..length], client).unwrap();
        }
    }

    #[test]
    fn fails_if_a_server_denies_what_the_cluster_has() {
        let service = json!({
            "kind": "Service",
            "metadata": { "namespace": "shop", "name": "web" },
            "spec": { "clusterIP": "10.96.0.1", "ports": [{ "name": "http", "port": 80, "protocol": "TCP" }] },
        });
        let namespace = json!({ "kind": "Namespace", "metadata": { "name": "shop" } });
        let list = json!({ "items": [namespace, service] });
        let asked = subjects(&read(&list).unwrap()).iter().map(|subject| subject.cases.len()).sum();
        let file = std::env::temp_dir().join(format!("portolan-objects-{}.json", std::process::id()));
        std::fs::write(&file, list.to_string()).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let result = std::thread::scope(|scope| {
            scope.spawn(|| deny(&socket, asked));
            run(address, &file, 0)
        });
        std::fs::remove_file(&file).unwrap();
        assert!(result.as_ref().is_err_and(|error| error.contains(" answers differ; ")), "{result:?}");
        let missing = run(address, &file, 0).unwrap_err();
        assert!(missing.starts_with(&file.display().to_string()), "{missing}");
    }
}
