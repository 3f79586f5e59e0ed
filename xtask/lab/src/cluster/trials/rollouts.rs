//! Other images and restarts of the pods of the DNS.

use std::time::{Duration, Instant};

use super::bed::{Bed, Server};
use super::report::{Report, Row};
use super::traffic::during;
use crate::cluster::network::DNS;
use xtask::Failed;

/// Replaces the image of one server by that of the other, and back, as docs/deploy.md says.
pub(crate) fn swap(bed: &Bed<'_>, rounds: usize, report: &mut Report) -> Result<(), Failed> {
    if bed.servers.len() < 2 {
        report.skip("swap: no image of CoreDNS; start the cluster with `--coredns FILE`");
        return Ok(());
    }
    bed.install(Server::CoreDns)?;
    apply(bed, &MANIFESTS[0])?;
    for _ in 0..rounds {
        let image = Server::Portolan.image();
        measure(bed, report, "another image in kubeadm's manifest", "CoreDNS → Portolan", &|| {
            bed.inside.kubectl(&format!("-n kube-system set image deployment/coredns coredns={image}")).map(drop)
        })?;
        measure(bed, report, "`rollout undo`", "Portolan → CoreDNS", &|| {
            bed.inside.kubectl("-n kube-system rollout undo deployment/coredns").map(drop)
        })?;
    }
    Ok(())
}

/// Manifest whose pods are restarted.
struct Manifest {
    name: &'static str,
    lameduck: &'static str,
    /// Interval of the readiness probe in seconds.
    period: u32,
}

/// Settings of kubeadm, and those of `deploy/new-cluster.yaml`.
const MANIFESTS: [Manifest; 2] = [
    Manifest { name: "`lameduck 5s`, readiness probe every 10 s (kubeadm)", lameduck: "5s", period: 10 },
    Manifest { name: "`lameduck 12s`, readiness probe every 2 s", lameduck: "12s", period: 2 },
];

/// Restarts the pods one after the other.
pub(crate) fn rolling(bed: &Bed<'_>, rounds: usize, report: &mut Report) -> Result<(), Failed> {
    for manifest in &MANIFESTS {
        for server in &bed.servers {
            bed.install(*server)?;
            apply(bed, manifest)?;
            for _ in 0..rounds {
                measure(bed, report, &format!("rolling restart, {}", manifest.name), server.name(), &|| {
                    bed.inside.kubectl("-n kube-system rollout restart deployment/coredns").map(drop)
                })?;
            }
        }
    }
    Ok(())
}

/// Changes lameduck and probe of the installed server.
fn apply(bed: &Bed<'_>, manifest: &Manifest) -> Result<(), Failed> {
    let corefile = bed.inside.kubectl("-n kube-system get configmap coredns -o=jsonpath={.data.Corefile}")?;
    let lameduck = |line: &str| match line.trim_start().strip_prefix("lameduck ") {
        Some(_) => format!("           lameduck {}", manifest.lameduck),
        None => line.to_owned(),
    };
    let corefile: Vec<String> = corefile.lines().map(lameduck).collect();
    let data = serde_json::json!({ "data": { "Corefile": corefile.join("\n") } });
    patch(bed, "configmap/coredns", "merge", &data)?;
    let probe = serde_json::json!({ "name": "coredns", "readinessProbe": { "periodSeconds": manifest.period } });
    let spec = serde_json::json!({ "spec": { "template": { "spec": { "containers": [probe] } } } });
    patch(bed, "deployment/coredns", "strategic", &spec)?;
    bed.inside.kubectl("-n kube-system rollout restart deployment/coredns")?;
    bed.settle()
}

/// Patches an object in kube-system.
pub(crate) fn patch(bed: &Bed<'_>, what: &str, kind: &str, patch: &serde_json::Value) -> Result<(), Failed> {
    let kind = format!("--type={kind}");
    bed.inside.output("kubectl", &["-n", "kube-system", "patch", what, &kind, "--patch", &patch.to_string()]).map(drop)
}

/// Measures a change of the Deployment, until all its old pods have ended.
fn measure(
    bed: &Bed<'_>,
    report: &mut Report,
    trial: &str,
    server: &str,
    change: &dyn Fn() -> Result<(), Failed>,
) -> Result<(), Failed> {
    let (outcome, took) = during(bed, DNS, || timed(|| change().and_then(|()| bed.settle())))?;
    report.add(Row { trial: trial.to_owned(), server: server.to_owned(), outcome, took });
    Ok(())
}

/// Returns how long something takes.
pub(crate) fn timed(change: impl FnOnce() -> Result<(), Failed>) -> Result<Duration, Failed> {
    let begin = Instant::now();
    change().map(|()| begin.elapsed())
}
