//! Peak memory of new lists, after a restart of the API server and after expired watches.

use std::path::Path;
use std::time::Instant;

use fakeapi::Fault;

use super::{Findings, SERVICES, Served};
use crate::bench::cluster::Cluster;
use crate::bench::report::mebi;
use xtask::Failed;

/// Maximum peak in percent of the memory before.
const MOST: u64 = 125;
/// Number of consecutive new lists.
const ROUNDS: u8 = 3;

/// Watch event for an expired resource version.
const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"message":"expired"}}"#;

/// Name of a list method, and a function that makes the API server use it.
type Way = (&'static str, fn(&Cluster));

const WAYS: [Way; 3] = [
    ("streamed in protobuf", |_| {}),
    ("in pages of protobuf", |cluster| {
        for resource in cluster.resources() {
            cluster.api.fault(resource, Fault::NoStreamingLists);
        }
    }),
    ("streamed in JSON", |cluster| cluster.api.json_only()),
];

/// Measures each list method.
pub(super) fn measure(server: &Path, findings: &mut Findings) -> Result<(), Failed> {
    for (way, prepare) in WAYS {
        let served = Served::start(server, SERVICES, false, prepare)?;
        let before = served.server.memory().0;
        served.server.forget_peak()?;
        for round in 0..ROUNDS {
            list_anew(&served, round)?;
        }
        let (after, peak) = served.server.memory();
        findings.add(
            format!("peak of {ROUNDS} new lists, {way}: 10000 Services, 100000 endpoints"),
            format!(
                "{:.2} ({:.1} MiB before, {:.1} MiB peak, {:.1} MiB after)",
                mebi(peak) / mebi(before),
                mebi(before),
                mebi(peak),
                mebi(after),
            ),
            format!("{:.2}", mebi(MOST) / mebi(100)),
            peak * 100 <= before * MOST,
        );
    }
    Ok(())
}

/// Forces new lists of everything and waits until they are complete.
fn list_anew(served: &Served, round: u8) -> Result<(), Failed> {
    let Served { cluster, server, .. } = served;
    cluster.api.compact();
    let (started, seen) = (Instant::now(), cluster.api.seen().len());
    if round == 0 {
        cluster.api.drop_connections();
    } else {
        // Expire without breaking connections, because pauses grow with every failure.
        cluster.resources().iter().for_each(|resource| cluster.api.inject(resource, EXPIRED));
    }
    cluster.wait_until_known(server.port, seen, 1 + round, started).map(|_| ())
}
