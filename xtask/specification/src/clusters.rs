//! The cases of clusters: objects in a fake API server, and a server with all clusters.

use std::path::Path;

use fakeapi::FakeApi;
use serde_json::{Value, json};
use specification::Branch;
use specification::cluster::{Cluster, ZONE};
use specification::record::Type;
use specification::scope::{self, Case};
use specification::text;

use crate::programs::{KUBECONFIG, Kind, Program};
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
    let all = |cluster| [specification::objects::json(cluster), specification::objects::endpoints(cluster)].concat();
    let objects = clusters.iter().flat_map(|(cluster, _)| all(cluster));
    let objects: Result<Vec<Value>, _> = objects.map(|text| serde_json::from_str(&text)).collect();
    api.put_all(objects.map_err(|error| format!("an object: {error}"))?);
    let named = |key: &str, value: Value| json!([{ "name": "x", key: value }]);
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": named("cluster", json!({ "server": api.url() })),
        "users": named("user", json!({})),
        "contexts": named("context", json!({ "cluster": "x", "user": "x" })),
    });
    write(&folder.join(KUBECONFIG), &config.to_string())?;
    Ok(api)
}

/// Starts a server for the clusters.
pub(crate) fn start(server: (Kind, &Path), subjects: &[Subject], folder: &Path) -> Result<Program, Failed> {
    // Slices are the last objects that a server learns.
    let is_endpoint = |case: &&Case| case.question.qtype == Type::A && case.branches.contains(&Branch::HeadlessA);
    let probe = subjects.iter().rev().flat_map(|subject| &subject.cases).find(is_endpoint);
    let probe = probe.ok_or("no cluster has an endpoint")?;
    let zone = ZONE.trim_end_matches('.');
    let file = folder.join(KUBECONFIG).display().to_string();
    let configuration = |port| {
        let kubernetes = format!("kubernetes {zone} in-addr.arpa ip6.arpa {{\n kubeconfig {file}\n pods insecure\n}}");
        format!(".:{port} {{\nbind 127.0.0.1\n{kubernetes}\n}}\n")
    };
    Program::start(server, configuration, &probe.question, folder)
}
