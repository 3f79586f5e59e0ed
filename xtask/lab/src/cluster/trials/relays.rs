//! Relays between the API server and the server on every node: installed with Helm and the commands of
//! docs/every-node.md and docs/relay.md, and ended one by one and all together. The audit log of the API server has the
//! lists and watches of each client.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bed::{Bed, Server};
use super::every_node::{LABEL, measure, usual_clients, wait_for_pods};
use super::report::Report;
use super::rollouts::patch;
use crate::cluster::components::AUDIT_LOG;
use crate::cluster::inside::wait_until;
use crate::cluster::network::DNS;
use crate::cluster::programs;
use crate::cluster::steps::output_of;
use xtask::{Failed, read_bytes};

/// Label of the pods of the relays of the chart.
const RELAYS: &str = "app.kubernetes.io/name=coredns-relay";
/// Release of the server on every node.
const RELEASE: &str = "portolan";
const DAEMON_SET: &str = "daemonset/portolan-coredns-every-node";
const DEPLOYMENT: &str = "deployment/portolan-relay";
/// Folder with the certificate.
const FOLDER: &str = "relay";
/// Time of load after relays have ended.
const OBSERVED: Duration = Duration::from_secs(10);
/// Limit for nodes that change between relays and API server: 30 s, a pause of up to 60 s, and the work.
const CHANGED: Duration = Duration::from_secs(120);
/// Service that is created while there is no relay.
const CREATED: &str = "created-without-relays";
/// Watches of a node.
const WATCHES: &str = "3";

/// Way to end relays: what it is, and how to do it.
struct End(&'static str, fn(&Bed<'_>) -> Result<(), Failed>);

const ENDS: [End; 4] = [
    End("pod of one relay deleted", |bed| delete(bed, 1, "")),
    End("pod of one relay deleted at once (`--force --grace-period=0`)", |bed| {
        delete(bed, 1, "--force --grace-period=0")
    }),
    End("kill −9 of one relay", |bed| {
        let pods = bed.pods(RELAYS)?;
        let pod = pods.first().ok_or("no relay")?;
        bed.inside.output("kill", &["-KILL", &bed.process(pod)?]).map(drop)
    }),
    End("pods of all relays deleted", |bed| delete(bed, usize::MAX, "")),
];

/// Installs relays, ends them in each way, takes them away for a time, and removes all.
pub(crate) fn run(bed: &Bed<'_>, rounds: usize, report: &mut Report) -> Result<(), Failed> {
    if bed.nodes.len() < 2 {
        report.skip("relays: the cluster has one node; start it with `--nodes 2`");
        return Ok(());
    }
    if let Some(missing) = ["helm", "openssl"].iter().find(|name| programs::find(name).is_none()) {
        report.skip(&format!("relays: `{missing}` is not on the PATH"));
        return Ok(());
    }
    bed.install(bed.servers.last().copied().unwrap_or(Server::Portolan))?;
    let done = install(bed, report).and_then(|()| (0..rounds).try_for_each(|_| round(bed, report)));
    done.and(remove(bed))
}

/// Migrates to the server on every node, and then to relays under load.
fn install(bed: &Bed<'_>, report: &mut Report) -> Result<(), Failed> {
    let name = Server::Portolan.image();
    let (repository, tag) = name.rsplit_once(':').unwrap_or((&name, ""));
    let image = format!("serviceAccount.create=true,image.repository={repository},image.tag={tag}");
    let mode = "mode=every-node,everyNode.existingServiceSelector.k8s-app=kube-dns";
    helm(bed, &format!("install {RELEASE} deploy/helm/portolan --set {mode} --set {image}"))?;
    bed.rollout(DAEMON_SET)?;
    bed.inside.kubectl("-n kube-system patch service kube-dns --type=merge --patch-file=deploy/same-node.yaml")?;
    bed.inside.kubectl("-n kube-system scale deployment coredns --replicas=0")?;
    wait_for_pods(bed, "k8s-app=kube-dns", bed.nodes.len())?;
    certify(bed)?;
    audited(bed, report, "relays installed under load", || {
        let values = "relays.enabled=true,relays.name=portolan-relay";
        helm(bed, &format!("upgrade {RELEASE} deploy/helm/portolan --reset-then-reuse-values --set {values}"))?;
        bed.rollout(DEPLOYMENT)?;
        settle(bed)
    })
}

/// Makes the certificate by the commands of the documentation, and the objects that hold it.
fn certify(bed: &Bed<'_>) -> Result<(), Failed> {
    let page = read_bytes(Path::new("docs/relay.md"))?;
    let page = String::from_utf8_lossy(&page).into_owned();
    let commands = page.split("```sh\n").find(|block| block.starts_with("openssl")).unwrap_or_default();
    let commands = commands.split("```").next().unwrap_or_default();
    let folder = bed.inside.home.make_folder(FOLDER)?;
    output_of(Command::new("sh").args(["-ec", commands]).current_dir(&folder))?;
    let [certificate, key, authority] =
        ["relay.crt", "relay.key", "ca.crt"].map(|name| bed.inside.home.text(&format!("{FOLDER}/{name}")));
    let secret = format!("create secret tls portolan-relay --cert={certificate} --key={key}");
    bed.inside.kubectl(&format!("-n kube-system {secret}"))?;
    bed.inside.kubectl(&format!("-n kube-system create configmap portolan-relay-ca --from-file={authority}")).map(drop)
}

fn round(bed: &Bed<'_>, report: &mut Report) -> Result<(), Failed> {
    for End(what, end) in ENDS {
        audited(bed, report, what, || {
            end(bed)?;
            std::thread::sleep(OBSERVED);
            bed.rollout(DEPLOYMENT)?;
            settle(bed)
        })?;
    }
    let mut times = Vec::new();
    audited(bed, report, "no relay until all nodes watch the API server", || {
        let begin = Instant::now();
        scale(bed, 0)?;
        wait_for_source(bed, "server")?;
        times.push(("all nodes asked the API server after", begin.elapsed()));
        create_and_resolve(bed)?;
        times.push(("a new Service was answered on all nodes after", begin.elapsed()));
        let begin = Instant::now();
        scale(bed, 3)?;
        bed.rollout(DEPLOYMENT)?;
        times.push(("three relays were ready after", begin.elapsed()));
        settle(bed)?;
        times.push(("and all nodes watched them after", begin.elapsed()));
        Ok(())
    })?;
    let times = times.iter().map(|(what, time)| format!("{what} {:.1} s", time.as_secs_f64()));
    report.note(format!("no relay: {}", times.collect::<Vec<_>>().join(", ")));
    Ok(())
}

/// Creates a Service, waits until all nodes answer its name, and deletes it.
fn create_and_resolve(bed: &Bed<'_>) -> Result<(), Failed> {
    bed.inside.kubectl(&format!("-n default create service clusterip {CREATED} --tcp=80:80"))?;
    let name = format!("{CREATED}.default.svc.cluster.local");
    for node in bed.nodes {
        wait_until("answers for the new Service", CHANGED, || {
            bed.inside.on(*node).output("busybox", &["nslookup", "-type=a", &name, DNS]).map(drop)
        })?;
    }
    bed.inside.kubectl(&format!("-n default delete service {CREATED}")).map(drop)
}

/// Measures a change under load, and notes who has listed and watched at the API server meanwhile.
fn audited(
    bed: &Bed<'_>,
    report: &mut Report,
    trial: &str,
    change: impl FnOnce() -> Result<(), Failed>,
) -> Result<(), Failed> {
    let before = bed.inside.home.read(AUDIT_LOG)?.len();
    measure(bed, report, &usual_clients(bed), trial, change)?;
    let log = bed.inside.home.read(AUDIT_LOG)?;
    let counts = requests(log.get(before..).unwrap_or_default());
    let counts: Vec<String> = counts.iter().map(|(what, count)| format!("{count} {what}")).collect();
    report.note(format!("{trial}: requests at the API server: {}", counts.join(", ")));
    Ok(())
}

/// Counts lists and watches by account. Reads of one object, by which a server proves that it is current, are no lists.
fn requests(log: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for event in log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let url = event["requestURI"].as_str().unwrap_or_default();
        let is_watch = event["verb"] == "watch";
        let is_of_one = url.split(['?', '&']).any(|word| word == "limit=1" || word.starts_with("fieldSelector="));
        if is_of_one || is_watch && event["stage"] != "ResponseStarted" {
            continue;
        }
        let what = if is_watch && !url.contains("sendInitialEvents") { "watches" } else { "lists" };
        let account = event["user"]["username"].as_str().unwrap_or_default();
        let account = account.rsplit(':').next().unwrap_or_default();
        *counts.entry(format!("{what} by {account}")).or_default() += 1;
    }
    counts
}

/// Waits until each node has one pod and all watches are those of relays.
fn settle(bed: &Bed<'_>) -> Result<(), Failed> {
    bed.rollout(DAEMON_SET)?;
    wait_for_pods(bed, LABEL, bed.nodes.len())?;
    wait_for_source(bed, "relay")
}

/// Waits until all watches of all nodes are those of relays or of the API server, as the metrics say.
fn wait_for_source(bed: &Bed<'_>, source: &str) -> Result<(), Failed> {
    wait_until("the watches", CHANGED, || {
        for pod in bed.pods(LABEL)? {
            let address = pod["status"]["podIP"].as_str().unwrap_or_default();
            let page = bed.inside.output("busybox", &["wget", "-qO-", &format!("http://{address}:9153/metrics")])?;
            let line = format!("portolan_kubernetes_watches{{server=\"{source}\"}} {WATCHES}");
            if !page.lines().any(|known| known == line) {
                return Err(format!("{address} has other watches"));
            }
        }
        Ok(())
    })
}

fn delete(bed: &Bed<'_>, number: usize, options: &str) -> Result<(), Failed> {
    let pods = bed.pods(RELAYS)?;
    let names = pods.iter().filter_map(|pod| pod["metadata"]["name"].as_str()).take(number);
    let names = names.collect::<Vec<_>>().join(" ");
    bed.inside.kubectl(&format!("-n kube-system delete pod {names} --wait=false {options}")).map(drop)
}

fn scale(bed: &Bed<'_>, replicas: u8) -> Result<(), Failed> {
    bed.inside.kubectl(&format!("-n kube-system scale {DEPLOYMENT} --replicas={replicas}")).map(drop)
}

/// Goes back to the Deployment.
fn remove(bed: &Bed<'_>) -> Result<(), Failed> {
    bed.inside.kubectl("-n kube-system scale deployment coredns --replicas=2")?;
    bed.rollout("deployment/coredns")?;
    patch(bed, "service/kube-dns", "merge", &serde_json::json!({ "spec": { "trafficDistribution": null } }))?;
    helm(bed, &format!("uninstall {RELEASE} --wait"))?;
    let objects = "secret/portolan-relay configmap/portolan-relay-ca";
    bed.inside.kubectl(&format!("-n kube-system delete --ignore-not-found {objects}"))?;
    bed.settle()
}

fn helm(bed: &Bed<'_>, line: &str) -> Result<(), Failed> {
    let words: Vec<&str> = ["-n", "kube-system"].into_iter().chain(line.split_whitespace()).collect();
    bed.inside.output("helm", &words).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lists_and_watches_by_account() {
        let line = |verb: &str, stage: &str, url: &str| {
            let user = serde_json::json!({ "username": "system:serviceaccount:kube-system:relay" });
            serde_json::json!({ "verb": verb, "stage": stage, "requestURI": url, "user": user }).to_string()
        };
        let log = [
            line("list", "ResponseComplete", "/api/v1/services?limit=500"),
            line("list", "ResponseComplete", "/api/v1/services?limit=1&resourceVersion=3"),
            line("list", "ResponseComplete", "/api/v1/services?fieldSelector=metadata.name%3Dportolan"),
            line("watch", "ResponseStarted", "/api/v1/services?watch=1&sendInitialEvents=true"),
            line("watch", "ResponseStarted", "/api/v1/services?watch=1&resourceVersion=3"),
            line("watch", "ResponseComplete", "/api/v1/services?watch=1&resourceVersion=3"),
            "half".to_owned(),
        ];
        let expected = [("lists by relay".to_owned(), 2), ("watches by relay".to_owned(), 1)];
        assert_eq!(requests(&log.join("\n")), expected.into());
    }
}
