//! Faults of single processes, and a changed Corefile.

use std::time::{Duration, Instant};

use super::bed::Bed;
use super::report::{Report, Row};
use super::rollouts::{patch, timed};
use super::traffic::during;
use crate::cluster::inside::wait_until;
use crate::cluster::network::DNS;
use xtask::Failed;

/// Time for which the API server is away.
const OUTAGE: Duration = Duration::from_secs(5);
/// Limit for a changed ConfigMap: the kubelet looks at it once a minute, and the server every 30 s.
const CONFIG_MAP_LIMIT: Duration = Duration::from_secs(180);

/// Kills one of the two servers. The kubelet starts it again.
pub(crate) fn kill(bed: &Bed<'_>, rounds: usize, report: &mut Report) -> Result<(), Failed> {
    for server in &bed.servers {
        bed.install(*server)?;
        for _ in 0..rounds {
            let change = || {
                let pods = bed.pods("k8s-app=kube-dns")?;
                let pod = pods.first().ok_or("no pod of the DNS")?;
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                bed.inside.output("kill", &["-KILL", &bed.process(pod)?])?;
                wait_until("the restart of the container", CONFIG_MAP_LIMIT, || {
                    let line = format!(
                        "-n kube-system get pod {name} -o=jsonpath={{.status.containerStatuses[0].restartCount}}\
                         {{.status.containerStatuses[0].ready}}"
                    );
                    let state = bed.inside.kubectl(&line)?;
                    let is_back = !state.starts_with('0') && state.ends_with("true");
                    if is_back { Ok(()) } else { Err(state) }
                })
            };
            let (outcome, took) = during(bed, DNS, || timed(change))?;
            report.add(Row {
                trial: "kill −9 of a server".to_owned(),
                server: server.name().to_owned(),
                outcome,
                took,
            });
            // After a restart, the kubelet waits longer and longer before the next.
            bed.inside.kubectl("-n kube-system rollout restart deployment/coredns")?;
            bed.settle()?;
        }
    }
    Ok(())
}

/// Kills the API server and lets it start again later.
pub(crate) fn api(bed: &Bed<'_>, _rounds: usize, report: &mut Report) -> Result<(), Failed> {
    for server in &bed.servers {
        bed.install(*server)?;
        let change = || {
            bed.hold("kube-apiserver")?;
            std::thread::sleep(OUTAGE);
            bed.release("kube-apiserver")?;
            bed.wait_for_api()
        };
        let (outcome, took) = during(bed, DNS, || timed(change))?;
        report.add(Row { trial: "API server killed".to_owned(), server: server.name().to_owned(), outcome, took });
        bed.settle()?;
        let begin = Instant::now();
        bed.inside.kubectl("-n default create service clusterip after-the-outage --tcp=80:80")?;
        let answered = wait_until("a new Service in the answers", CONFIG_MAP_LIMIT, || {
            resolve(bed, "after-the-outage.default.svc.cluster.local")
        });
        bed.inside.kubectl("-n default delete service after-the-outage")?;
        answered?;
        let took = begin.elapsed().as_secs_f64();
        report.note(format!(
            "{}: a Service that was created after the outage is answered after {took:.1} s",
            server.name()
        ));
    }
    Ok(())
}

/// Adds a host to the Corefile in the ConfigMap, and waits until it is answered.
pub(crate) fn config_map(bed: &Bed<'_>, _rounds: usize, report: &mut Report) -> Result<(), Failed> {
    for server in &bed.servers {
        bed.install(*server)?;
        let corefile = bed.inside.kubectl("-n kube-system get configmap coredns -o=jsonpath={.data.Corefile}")?;
        let edited = corefile.replacen(
            "    ready\n",
            "    ready\n    hosts {\n        192.0.2.9 edited.test\n        fallthrough\n    }\n",
            1,
        );
        let change = || {
            patch(bed, "configmap/coredns", "merge", &serde_json::json!({ "data": { "Corefile": edited } }))?;
            let addresses = bed.addresses()?;
            wait_until("the new Corefile in effect in all pods", CONFIG_MAP_LIMIT, || {
                addresses.iter().filter(|ip| !ip.contains(':')).try_for_each(|ip| resolve_at(bed, "edited.test", ip))
            })
        };
        let (outcome, took) = during(bed, DNS, || timed(change))?;
        report.add(Row { trial: "ConfigMap edited".to_owned(), server: server.name().to_owned(), outcome, took });
    }
    Ok(())
}

/// Fails if the cluster DNS has no address for a name.
pub(crate) fn resolve(bed: &Bed<'_>, name: &str) -> Result<(), Failed> {
    resolve_at(bed, name, DNS)
}

/// Fails if the server at an address has none for a name.
fn resolve_at(bed: &Bed<'_>, name: &str, server: &str) -> Result<(), Failed> {
    bed.inside.output("busybox", &["nslookup", "-type=a", name, server]).map(drop)
}
