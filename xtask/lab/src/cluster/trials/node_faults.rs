//! Faults of one node that has its own server: its process, container and pod end, and its network is away.

use std::cell::Cell;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bed::Bed;
use super::every_node::{LABEL, installed, measure, usual_clients, wait_until_settled};
use super::report::Report;
use super::traffic::{Clients, Outcome};
use crate::cluster::inside::wait_until;
use crate::cluster::network::{DNS, OUTSIDE, SECOND};
use xtask::Failed;

/// Time of load after something has ended.
const OBSERVED: Duration = Duration::from_secs(8);
/// Time for which the network is away, for each round.
const AWAY: Duration = Duration::from_secs(150);
/// Names that the clients query while the network is away.
const CLUSTER_NAMES: [&str; 2] = ["kubernetes.default.svc.cluster.local.", "kube-dns.kube-system.svc.cluster.local."];
/// Service that is created while the network is away.
const CREATED: &str = "created-while-away";

/// Way to end a server: what it is, and how to do it to a pod.
struct End(&'static str, fn(&Bed<'_>, &Value) -> Result<(), Failed>);

/// The last two leave a new pod behind. After a second restart of the same container, the kubelet would wait.
const ENDS: [End; 4] = [
    End("kill −9 of the server in the pod, not of its keeper", kill_server),
    End("kill −9 of the container", kill_container),
    End("pod deleted", |bed, pod| delete(bed, pod, "")),
    End("pod deleted at once (`--force --grace-period=0`)", |bed, pod| delete(bed, pod, "--force --grace-period=0")),
];

/// Ends the server of the second node in each way.
pub(crate) fn ends(bed: &Bed<'_>, rounds: usize, report: &mut Report) -> Result<(), Failed> {
    installed(bed, "ends", report, |report| {
        for _ in 0..rounds {
            for End(what, end) in ENDS {
                let trial = format!("{what}, on {}", SECOND.name);
                measure(bed, report, &usual_clients(bed), &trial, || {
                    end(bed, &pod_of_second(bed)?)?;
                    std::thread::sleep(OBSERVED);
                    wait_until_settled(bed)
                })?;
            }
        }
        Ok(())
    })
}

/// Returns the pod of the server on the second node.
fn pod_of_second(bed: &Bed<'_>) -> Result<Value, Failed> {
    let pod = bed.pods(LABEL)?.into_iter().find(|pod| pod["spec"]["nodeName"] == SECOND.name);
    pod.ok_or_else(|| format!("no pod on {}", SECOND.name))
}

fn kill_container(bed: &Bed<'_>, pod: &Value) -> Result<(), Failed> {
    bed.inside.output("kill", &["-KILL", &bed.process(pod)?]).map(drop)
}

/// Kills the child of the first process.
fn kill_server(bed: &Bed<'_>, pod: &Value) -> Result<(), Failed> {
    let keeper = bed.process(pod)?;
    let children = bed.inside.output("cat", &[&format!("/proc/{keeper}/task/{keeper}/children")])?;
    let server = children.split_whitespace().next().ok_or("the keeper has no child")?;
    bed.inside.output("kill", &["-KILL", server]).map(drop)
}

fn delete(bed: &Bed<'_>, pod: &Value, options: &str) -> Result<(), Failed> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    bed.inside.kubectl(&format!("-n kube-system delete pod {name} --wait=false {options}")).map(drop)
}

/// Takes the network of the second node away, once, for a time that grows with the rounds. Only names of the cluster
/// are asked, as the upstream name servers are away too.
pub(crate) fn cut(bed: &Bed<'_>, rounds: usize, report: &mut Report) -> Result<(), Failed> {
    let away = AWAY * u32::try_from(rounds).unwrap_or(1);
    installed(bed, "cut", report, |report| {
        let clients = bed.nodes.iter().map(|node| Clients { names: &CLUSTER_NAMES, ..Clients::on(*node) });
        let clients: Vec<Clients> = clients.collect();
        let trial = format!("network of {} away for {} s, names of the cluster", SECOND.name, away.as_secs());
        let learned = Cell::new(Duration::ZERO);
        let outcomes = measure(bed, report, &clients, &trial, || {
            let done = drop_packets(bed, true).and_then(|()| while_away(bed, away));
            let back = Instant::now();
            drop_packets(bed, false)?;
            done?;
            wait_until("answers for the new Service", AWAY, || {
                let name = format!("{CREATED}.default.svc.cluster.local");
                bed.inside.on(SECOND).output("busybox", &["nslookup", "-type=a", &name, DNS]).map(drop)
            })?;
            learned.set(back.elapsed());
            bed.inside.kubectl(&format!("-n default delete service {CREATED}"))?;
            bed.inside.kubectl(&format!("wait node/{} --for=condition=Ready --timeout=90s", SECOND.name))?;
            wait_until_settled(bed)
        })?;
        for (clients, outcome) in clients.iter().zip(&outcomes) {
            report.note(format!("{trial}, clients on {}: {}", clients.node.name, stale(outcome)));
        }
        let seconds = learned.get().as_secs_f64();
        report.note(format!("{trial}: a Service of this time is answered {seconds:.1} s after the network is back"));
        Ok(())
    })
}

/// Drops all packets from and to the second node in the world outside, or lets them pass again.
fn drop_packets(bed: &Bed<'_>, drops: bool) -> Result<(), Failed> {
    let action = if drops { "-A" } else { "-D" };
    for program in ["iptables", "ip6tables"] {
        for (chain, direction) in [("PREROUTING", "-i"), ("POSTROUTING", "-o")] {
            let words = ["netns", "exec", OUTSIDE, program, "-t", "mangle", action, chain, direction, SECOND.link];
            bed.inside.output("ip", &[&words[..], &["-j", "DROP"]].concat())?;
        }
    }
    Ok(())
}

/// Waits, and creates a Service that the node does not see.
fn while_away(bed: &Bed<'_>, away: Duration) -> Result<(), Failed> {
    std::thread::sleep(away);
    bed.inside.kubectl(&format!("-n default create service clusterip {CREATED} --tcp=80:80")).map(drop)
}

/// Returns how many answers said that they may be stale, and since when.
fn stale(outcome: &Outcome) -> String {
    let Some(kind) = outcome.kinds.get("udp-port") else { return "no answers".to_owned() };
    let [count, first] = kind.stale;
    if count == 0 {
        return "no `udp-port` answer with Extended DNS Error 3".to_owned();
    }
    let milliseconds = first.saturating_sub(outcome.begin);
    let text = &kind.stale_text;
    format!(
        "{count} `udp-port` answers with Extended DNS Error 3, the first after {}.{} s; the last says “{text}”",
        milliseconds / 1000,
        milliseconds / 100 % 10,
    )
}
