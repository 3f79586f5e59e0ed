//! The cases of clusters: objects in a fake API server, and a server with all clusters.

use std::path::Path;

use fakeapi::{FakeApi, namespace, object};
use serde_json::{Value, json};
use specification::cluster::{Cluster, Endpoint, Kind as ServiceKind, Service, State, ZONE};
use specification::record::Type;
use specification::scope::{self, Case};
use specification::text;

use crate::programs::{Kind, Program};
use crate::report::Subject;
use crate::write;
use xtask::Failed;

/// Cluster with its cases.
pub(crate) type Numbered = (Cluster, Vec<Case>);

/// Returns all clusters, each with namespaces and addresses of its own.
pub(crate) fn all() -> Vec<Numbered> {
    scope::clusters().iter().zip(0..).map(|(block, number)| block.numbered(number)).collect()
}

/// Returns the clusters as subjects.
pub(crate) fn subjects(clusters: &[Numbered]) -> Vec<Subject> {
    clusters.iter().map(|(cluster, cases)| Subject { setting: text::cluster(cluster), cases: cases.clone() }).collect()
}

/// Starts an API server with the objects of all clusters, and writes a kubeconfig file for it.
pub(crate) fn start_api(clusters: &[Numbered], folder: &Path) -> Result<FakeApi, Failed> {
    let api = FakeApi::start();
    api.put_all(clusters.iter().flat_map(|(cluster, _)| objects(cluster)));
    let named = |key: &str, value: Value| json!([{ "name": "x", key: value }]);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": named("cluster", json!({ "server": api.url() })),
        "users": named("user", json!({})),
        "contexts": named("context", json!({ "cluster": "x", "user": "x" })),
    });
    write(&folder.join("kubeconfig"), &config.to_string())?;
    Ok(api)
}

/// Starts a server for the clusters.
pub(crate) fn start(server: (Kind, &Path), subjects: &[Subject], folder: &Path) -> Result<Program, Failed> {
    let is_address = |case: &&Case| case.question.qtype == Type::A && !case.answer.required.is_empty();
    let probe = subjects.iter().rev().flat_map(|subject| &subject.cases).find(is_address);
    let probe = probe.ok_or("no cluster has an address")?;
    let zone = ZONE.trim_end_matches('.');
    let configuration = |port| {
        format!(
            ".:{port} {{\n    bind 127.0.0.1\n    kubernetes {zone} in-addr.arpa ip6.arpa {{\n        kubeconfig {}\n        \
             pods insecure\n    }}\n}}\n",
            folder.join("kubeconfig").display()
        )
    };
    Program::start(server, configuration, &probe.question, folder)
}

/// Returns the objects of a cluster.
fn objects(cluster: &Cluster) -> Vec<Value> {
    let mut objects: Vec<Value> = cluster.namespaces.iter().map(|name| namespace(name)).collect();
    for service in &cluster.services {
        objects.push(service_object(service));
        objects.extend([("IPv4", true), ("IPv6", false)].into_iter().filter_map(|family| slice(service, family)));
    }
    objects
}

fn service_object(service: &Service) -> Value {
    let addresses = match &service.kind {
        ServiceKind::ClusterIp(addresses) => addresses.iter().map(ToString::to_string).collect(),
        _ => vec!["None".to_owned()],
    };
    let mut spec = match &service.kind {
        ServiceKind::ExternalName(target) => json!({ "type": "ExternalName", "externalName": target }),
        _ => json!({ "type": "ClusterIP", "clusterIP": addresses[0], "clusterIPs": addresses }),
    };
    spec["ports"] = ports(service);
    object("Service", &service.namespace, &service.name, json!({ "spec": spec }))
}

fn ports(service: &Service) -> Value {
    let port = |port: &specification::cluster::Port| {
        json!({ "name": port.name, "port": port.number, "protocol": port.protocol.to_ascii_uppercase() })
    };
    service.ports.iter().map(port).collect()
}

/// Returns the slice with the endpoints of a family, if there are any.
fn slice(service: &Service, (family, is_v4): (&str, bool)) -> Option<Value> {
    let own = service.endpoints.iter().filter(|endpoint| endpoint.address.is_ipv4() == is_v4);
    let endpoints: Vec<Value> = own.map(endpoint).collect();
    let rest = json!({
        "metadata": { "labels": { "kubernetes.io/service-name": service.name } },
        "addressType": family, "endpoints": endpoints, "ports": ports(service),
    });
    let name = format!("{}-{}", service.name, family.to_ascii_lowercase());
    (!endpoints.is_empty()).then(|| object("EndpointSlice", &service.namespace, &name, rest))
}

fn endpoint(endpoint: &Endpoint) -> Value {
    let mut value = json!({ "addresses": [endpoint.address.to_string()] });
    if let Some(hostname) = endpoint.hostname {
        value["hostname"] = hostname.into();
    }
    value["conditions"] = match endpoint.state {
        State::Ready => json!({ "ready": true, "serving": true, "terminating": false }),
        State::Unknown => json!({}),
        State::NotReady => json!({ "ready": false, "serving": false, "terminating": false }),
        State::Terminating => json!({ "ready": false, "serving": true, "terminating": true }),
    };
    value
}
