//! Cache on the node: the project's manifest, and the shape of the official one with another image.

use serde_json::{Value, json};

use super::bed::{Bed, Server};
use super::report::{Report, Row};
use super::rollouts::timed;
use super::traffic::during;
use crate::cluster::network::{DNS, DOMAIN};
use crate::cluster::{images, inside};
use xtask::image::Flavor;
use xtask::{Failed, read_bytes};

/// Address of the cache, besides that of the cluster DNS.
const LINK_LOCAL: &str = "169.254.20.10";
const DAEMON_SET: &str = "daemonset/node-local-dns";

/// Installs the cache, restarts it, kills it, and removes it, under load on the address of the cluster DNS.
pub(crate) fn run(bed: &Bed<'_>, rounds: usize, report: &mut Report) -> Result<(), Failed> {
    bed.install(Server::Portolan)?;
    let manifest = read_bytes(std::path::Path::new("deploy/node-local-dns.yaml"))?;
    let manifest = String::from_utf8_lossy(&manifest)
        .replace("__PILLAR__DNS__SERVER__", DNS)
        .replace("__PILLAR__DNS__DOMAIN__", DOMAIN)
        .replace("__PILLAR__LOCAL__DNS__", LINK_LOCAL)
        .replace("            - node\n", "")
        .replace("portolan:latest", &images::portolan(Flavor::Node));
    let own = cycle(bed, rounds, report, "deploy/node-local-dns.yaml", &manifest);
    let removed = bed.inside.kubectl_with("delete --ignore-not-found -f -", &manifest).map(drop);
    own.and(removed)?;
    // Service, account and ConfigMap are those of the project's manifest.
    let mut objects: Vec<String> = manifest.split("\n---\n").map(str::to_owned).collect();
    objects.retain(|object| !object.contains("kind: DaemonSet"));
    objects.push(official().to_string());
    let official = objects.join("\n---\n");
    let cycled = cycle(bed, rounds, report, "official manifest, other image", &official);
    let removed = bed.inside.kubectl_with("delete --ignore-not-found -f -", &official).map(drop);
    cycled.and(removed)
}

fn cycle(bed: &Bed<'_>, rounds: usize, report: &mut Report, name: &str, manifest: &str) -> Result<(), Failed> {
    let mut measure = |what: &str, change: &dyn Fn() -> Result<(), Failed>| -> Result<(), Failed> {
        let (outcome, took) = during(bed, DNS, || timed(change))?;
        report.add(Row { trial: format!("{what}, {name}"), server: "Portolan".to_owned(), outcome, took });
        Ok(())
    };
    measure("cache installed", &|| {
        bed.inside.kubectl_with("apply -f -", manifest)?;
        bed.rollout(DAEMON_SET)
    })?;
    for _ in 0..rounds {
        measure("cache restarted", &|| {
            bed.inside.kubectl(&format!("-n kube-system rollout restart {DAEMON_SET}"))?;
            bed.rollout(DAEMON_SET)
        })?;
    }
    measure("kill −9 of the cache", &|| {
        let pods = bed.pods("k8s-app=node-local-dns")?;
        bed.inside.output("kill", &["-KILL", &bed.process(pods.first().ok_or("no pod of the cache")?)?])?;
        inside::wait_until("the restart of the cache", std::time::Duration::from_secs(60), || {
            let pods = bed.pods("k8s-app=node-local-dns")?;
            let status = &pods.first().ok_or("no pod of the cache")?["status"]["containerStatuses"][0];
            let is_back = status["restartCount"].as_u64() > Some(0) && status["ready"] == true;
            if is_back { Ok(()) } else { Err(status.to_string()) }
        })
    })?;
    measure("cache removed", &|| {
        bed.inside.kubectl(&format!("-n kube-system delete {DAEMON_SET} --wait"))?;
        inside::wait_until("the end of the cache", std::time::Duration::from_secs(60), || {
            let count = bed.pods("k8s-app=node-local-dns")?.len();
            if count == 0 { Ok(()) } else { Err(format!("{count} pods")) }
        })
    })
}

/// Returns the DaemonSet of the official manifest (Kubernetes 1.28 to 1.37) with Portolan's image: the same arguments,
/// ports, probe, mounts and capabilities, and no mount of a TUN device.
fn official() -> Value {
    let port = |name: &str, number: u16, protocol: &str| json!({ "name": name, "containerPort": number, "protocol": protocol });
    let container = json!({
        "name": "node-cache",
        "image": images::portolan(Flavor::Node),
        "resources": { "requests": { "cpu": "25m", "memory": "5Mi" } },
        "args": ["-localip", format!("{LINK_LOCAL},{DNS}"), "-conf", "/etc/Corefile", "-upstreamsvc", "kube-dns-upstream"],
        "securityContext": { "capabilities": { "add": ["NET_ADMIN"] } },
        "ports": [port("dns", 53, "UDP"), port("dns-tcp", 53, "TCP"), port("metrics", 9253, "TCP")],
        "livenessProbe": {
            "httpGet": { "host": LINK_LOCAL, "path": "/health", "port": 8080 },
            "initialDelaySeconds": 60,
            "timeoutSeconds": 5,
        },
        "volumeMounts": [
            { "name": "xtables-lock", "mountPath": "/run/xtables.lock" },
            { "name": "config-volume", "mountPath": "/etc/coredns" },
            { "name": "kube-dns-config", "mountPath": "/etc/kube-dns" },
        ],
    });
    let corefile = json!([{ "key": "Corefile", "path": "Corefile.base" }]);
    let labels = json!({ "k8s-app": "node-local-dns" });
    let tolerations = json!([
        { "key": "CriticalAddonsOnly", "operator": "Exists" },
        { "effect": "NoExecute", "operator": "Exists" },
        { "effect": "NoSchedule", "operator": "Exists" },
    ]);
    let spec = json!({
        "priorityClassName": "system-node-critical",
        "serviceAccountName": "node-local-dns",
        "hostNetwork": true,
        "dnsPolicy": "Default",
        "tolerations": tolerations,
        "containers": [container],
        "volumes": [
            { "name": "xtables-lock", "hostPath": { "path": "/run/xtables.lock", "type": "FileOrCreate" } },
            { "name": "kube-dns-config", "configMap": { "name": "kube-dns", "optional": true } },
            { "name": "config-volume", "configMap": { "name": "node-local-dns", "items": corefile } },
        ],
    });
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": "node-local-dns", "namespace": "kube-system", "labels": labels },
        "spec": {
            "updateStrategy": { "rollingUpdate": { "maxUnavailable": "10%" } },
            "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": spec },
        },
    })
}
