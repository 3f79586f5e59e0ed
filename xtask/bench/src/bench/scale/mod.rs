//! Cost of a large cluster, compared with limits: memory by size, peak memory of new lists, and queries during changes
//! of endpoints. Each is measured with its own server.

mod churn;
mod relist;

use std::path::Path;
use std::time::{Duration, Instant};

use super::Corefile;
use super::cluster::{self, Cluster, Shape};
use super::findings::Findings;
use super::processes::{self, Pinned};
use super::report::mebi;
use xtask::{Failed, results};

/// Description of the setup.
const HEADING: &str = "One core is for the server, the other for the load, the API server and the queries for changes.";
/// Shape of the largest clusters: 5,000 nodes with thirty Pods each.
const LARGEST: Shape = Shape { services: 10_000, endpoints: 25, pods: 150_000 };
/// Shape of many large clusters.
const LARGE: Shape = Shape { services: 10_000, endpoints: 10, pods: 20_000 };
/// Shape without watched Pods.
const SERVICES: Shape = Shape { services: 10_000, endpoints: 10, pods: 0 };

/// Measures all parts, or only one. Fails if a result exceeds its limit.
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
        println!("saved as {}", results::save("-cluster", &findings)?.display());
    }
    findings.verdict()
}

/// Measures the memory for several cluster sizes.
fn sizes(server: &Path, findings: &mut Findings) -> Result<(), Failed> {
    for (shape, pods, most) in [(LARGE, true, 40), (LARGEST, true, 80), (LARGEST, false, 56)] {
        let served = Served::start(server, shape, pods, |_| {})?;
        let (now, peak) = served.server.memory();
        let Shape { services, endpoints, pods: count } = shape;
        let followed = if pods { "verified" } else { "insecure" };
        findings.add(
            format!("memory: {services} Services, {} endpoints, {count} Pods, `pods {followed}`", services * endpoints),
            format!("{:.1} MiB, peak {:.1} MiB; cluster known after {:.1?}", mebi(now), mebi(peak), served.known),
            format!("{most} MiB"),
            now <= most << 20,
        );
    }
    Ok(())
}

/// Server that knows a cluster.
struct Served {
    cluster: Cluster,
    server: Pinned,
    /// Time until it knew the cluster.
    known: Duration,
    _corefile: Corefile,
}

impl Served {
    /// Starts a cluster and a server. `prepare` may change the behaviour of the API server.
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
