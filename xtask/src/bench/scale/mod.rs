//! What a cluster costs, beside what it may cost: memory by its size, the peak of a new list, and queries that are answered
//! while endpoints change. Each is measured with a server of its own.

mod churn;
mod relist;

use std::path::Path;
use std::time::{Duration, Instant};

use super::Corefile;
use super::cluster::{self, Cluster, Shape};
use super::findings::Findings;
use super::processes::{self, Pinned};
use super::report::{self, mebi};
use crate::Failed;

/// Where everything runs.
const HEADING: &str = "One core for the server, the other for the load, the API server and who asks what has changed.";
/// What the largest clusters have: 5,000 nodes of thirty pods.
const LARGEST: Shape = Shape { services: 10_000, endpoints: 25, pods: 150_000 };
/// What many clusters have.
const LARGE: Shape = Shape { services: 10_000, endpoints: 10, pods: 20_000 };
/// A shape without pods that are followed.
const SERVICES: Shape = Shape { services: 10_000, endpoints: 10, pods: 0 };

/// Measures all of it, or one part, and fails if something costs more than it may.
pub(crate) fn run(server: &Path, time: Duration, only: Option<&str>, save: bool) -> Result<(), Failed> {
    processes::stay_away()?;
    let wants = |name: &str| only.is_none_or(|only| only == name);
    let mut findings = Findings::new(HEADING);
    if wants("size") {
        sizes(server, &mut findings)?;
    }
    if wants("relist") {
        relist::measure(server, &mut findings)?;
    }
    if wants("churn") {
        churn::measure(server, time, &mut findings)?;
    }
    println!("{findings}");
    if save {
        println!("kept in {}", report::save("-cluster", &findings)?.display());
    }
    findings.verdict()
}

/// Memory by the size of a cluster, once it is known.
fn sizes(server: &Path, findings: &mut Findings) -> Result<(), Failed> {
    for (shape, pods, most) in [(LARGE, true, 40), (LARGEST, true, 80), (LARGEST, false, 56)] {
        let served = Served::start(server, shape, pods, |_| {})?;
        let (now, peak) = served.server.memory();
        let Shape { services, endpoints, pods: count } = shape;
        let followed = if pods { "verified" } else { "insecure" };
        findings.add(
            format!("memory: {services} services, {} endpoints, {count} pods, `pods {followed}`", services * endpoints),
            format!("{:.1} MiB, at most {:.1} MiB; known after {:.1?}", mebi(now), mebi(peak), served.known),
            format!("{most} MiB"),
            now <= most << 20,
        );
    }
    Ok(())
}

/// A server that knows a cluster.
struct Served {
    cluster: Cluster,
    server: Pinned,
    /// How long that took.
    known: Duration,
    _corefile: Corefile,
}

impl Served {
    /// Starts both; `prepare` may change how the API server behaves.
    fn start(server: &Path, shape: Shape, pods: bool, prepare: impl FnOnce(&Cluster)) -> Result<Served, Failed> {
        let cluster = Cluster::start(shape, pods);
        prepare(&cluster);
        let corefile = Corefile::write(&cluster::kubeadm_corefile(pods), cluster.api.url(), 9)?;
        let started = Instant::now();
        let server = Pinned::serve(server, &corefile)?;
        let known = cluster.wait_until_known(server.port, 0, 0, started)?;
        Ok(Served { cluster, server, known, _corefile: corefile })
    }
}
