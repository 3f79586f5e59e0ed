//! The server on every node: the migration to it and back, as docs/every-node.md has it, and its updates, with clients
//! on both nodes.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::bed::{Bed, Server};
use super::report::{Report, Row};
use super::rollouts::{patch, timed};
use super::traffic::{Clients, Outcome, during_all};
use crate::cluster::inside::wait_until;
use crate::cluster::network::DNS;
use xtask::{Failed, read_bytes};

const DAEMON_SET: &str = "daemonset/portolan-every-node";
/// Label of the pods of the DaemonSet.
pub(crate) const LABEL: &str = "app.kubernetes.io/component=every-node";
/// Limit for pods that start or end.
const LIMIT: Duration = Duration::from_secs(60);
/// Queries per second from new ports, from each node, during updates.
const UPDATE_RATE: u32 = 500;

/// Migrates and goes back, several times.
pub(crate) fn migration(bed: &Bed<'_>, rounds: usize, report: &mut Report) -> Result<(), Failed> {
    let Some(manifest) = prepare(bed, "migration", report)? else { return Ok(()) };
    let clients = usual_clients(bed);
    for _ in 0..rounds {
        measure(bed, report, &clients, "migration to the server on every node", || forward(bed, &manifest))?;
        measure(bed, report, &clients, "no change, server on every node", || Ok(()))?;
        measure(bed, report, &clients, "migration back", || back(bed, &manifest))?;
    }
    Ok(())
}

/// Updates all pods of the server on every node, several times.
pub(crate) fn update(bed: &Bed<'_>, rounds: usize, report: &mut Report) -> Result<(), Failed> {
    let clients: Vec<Clients> =
        bed.nodes.iter().map(|node| Clients { new_ports: UPDATE_RATE, ..Clients::on(*node) }).collect();
    let trial = format!("rolling update of the server on every node ({UPDATE_RATE} `udp-port`/s)");
    installed(bed, "update", report, |report| {
        let (mut sent, mut lost) = (0, 0);
        for _ in 0..rounds {
            let outcomes = measure(bed, report, &clients, &trial, || {
                bed.inside.kubectl(&format!("-n kube-system rollout restart {DAEMON_SET}"))?;
                wait_until_settled(bed)
            })?;
            for kind in outcomes.iter().filter_map(|outcome| outcome.kinds.get("udp-port")) {
                sent += kind.sent;
                lost += kind.failed();
            }
        }
        report.note(format!("update: {lost} of {sent} `udp-port` lost in {rounds} updates"));
        Ok(())
    })
}

/// Runs a trial while the server on every node has taken over.
pub(crate) fn installed(
    bed: &Bed<'_>,
    name: &str,
    report: &mut Report,
    trial: impl FnOnce(&mut Report) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let Some(manifest) = prepare(bed, name, report)? else { return Ok(()) };
    forward(bed, &manifest)?;
    let done = trial(report);
    done.and(back(bed, &manifest))
}

/// Installs the Deployment only, and returns the manifest of the server on every node. Returns none if the cluster has
/// too few nodes.
fn prepare(bed: &Bed<'_>, name: &str, report: &mut Report) -> Result<Option<String>, Failed> {
    if bed.nodes.len() < 2 {
        report.skip(&format!("{name}: the cluster has one node; start it with `--nodes 2`"));
        return Ok(None);
    }
    let manifest = read_bytes(Path::new("deploy/every-node.yaml"))?;
    let manifest = String::from_utf8_lossy(&manifest).replace("portolan:latest", &Server::Portolan.image());
    bed.inside.kubectl_with("delete --ignore-not-found -f -", &manifest)?;
    wait_for_pods(bed, LABEL, 0)?;
    bed.install(bed.servers.last().copied().unwrap_or(Server::Portolan))?;
    Ok(Some(manifest))
}

fn forward(bed: &Bed<'_>, manifest: &str) -> Result<(), Failed> {
    bed.inside.kubectl_with("apply -f -", manifest)?;
    bed.rollout(DAEMON_SET)?;
    bed.inside.kubectl("-n kube-system patch service kube-dns --type=merge --patch-file=deploy/same-node.yaml")?;
    bed.inside.kubectl("-n kube-system scale deployment coredns --replicas=0")?;
    wait_for_pods(bed, "k8s-app=kube-dns", bed.nodes.len())
}

fn back(bed: &Bed<'_>, manifest: &str) -> Result<(), Failed> {
    bed.inside.kubectl("-n kube-system scale deployment coredns --replicas=2")?;
    bed.rollout("deployment/coredns")?;
    let field = serde_json::json!({ "spec": { "trafficDistribution": null } });
    patch(bed, "service/kube-dns", "merge", &field)?;
    bed.inside.kubectl_with("delete -f -", manifest)?;
    bed.settle()
}

/// Waits until each node has one pod of the DaemonSet, which is ready.
pub(crate) fn wait_until_settled(bed: &Bed<'_>) -> Result<(), Failed> {
    bed.rollout(DAEMON_SET)?;
    wait_for_pods(bed, LABEL, bed.nodes.len())
}

pub(crate) fn wait_for_pods(bed: &Bed<'_>, label: &str, expected: usize) -> Result<(), Failed> {
    wait_until("the end of other pods", LIMIT, || {
        let count = bed.pods(label)?.len();
        if count == expected { Ok(()) } else { Err(format!("{count} pods")) }
    })
}

/// Returns the usual clients on all nodes.
pub(crate) fn usual_clients(bed: &Bed<'_>) -> Vec<Clients> {
    bed.nodes.iter().map(|node| Clients::on(*node)).collect()
}

/// Runs a change under load, adds a row for the clients of each node, and returns their outcomes.
pub(crate) fn measure(
    bed: &Bed<'_>,
    report: &mut Report,
    clients: &[Clients],
    trial: &str,
    change: impl FnOnce() -> Result<(), Failed>,
) -> Result<Vec<Outcome>, Failed> {
    let mut nodes = nodes_of_pods(bed)?;
    let (outcomes, took) = during_all(bed, DNS, clients, || timed(change))?;
    nodes.extend(nodes_of_pods(bed)?);
    for (clients, outcome) in clients.iter().zip(&outcomes) {
        let name = clients.node.name;
        report.note(format!("{trial}, clients on {name}: answers by {}", shares(outcome, &nodes)));
        let server = format!("clients on {name}");
        report.add(Row { trial: trial.to_owned(), server, outcome: outcome.clone(), took });
    }
    Ok(outcomes)
}

/// Returns the nodes of the pods of the DNS, by the names of the pods.
fn nodes_of_pods(bed: &Bed<'_>) -> Result<BTreeMap<String, String>, Failed> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let pods = bed.pods("k8s-app=kube-dns")?;
    Ok(pods.iter().map(|pod| (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"]))).collect())
}

/// Returns how many answers each server has given, by its name. Servers of the Deployment do not say theirs.
fn shares(outcome: &Outcome, nodes: &BTreeMap<String, String>) -> String {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for (name, count) in outcome.kinds.values().flat_map(|kind| &kind.servers) {
        let server = match nodes.get(name) {
            Some(node) => format!("{name} ({node})"),
            None if name.is_empty() => "servers without a name".to_owned(),
            None => name.clone(),
        };
        *counts.entry(server).or_default() += count;
    }
    counts.iter().map(|(server, count)| format!("{server} {count}")).collect::<Vec<_>>().join(", ")
}
