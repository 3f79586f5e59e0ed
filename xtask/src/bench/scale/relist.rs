//! The peak of a new list: an API server that was started anew, and watches that expired.

use std::path::Path;
use std::time::Instant;

use fakeapi::Fault;

use super::{Findings, SERVICES, Served};
use crate::Failed;
use crate::bench::cluster::Cluster;
use crate::bench::report::mebi;

/// What the peak may be, in hundredths of the memory before.
const MOST: u64 = 125;
/// New lists, one after the other.
const ROUNDS: u8 = 3;

/// What a watch says that cannot go on.
const EXPIRED: &str = r#"{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","code":410,"message":"expired"}}"#;

/// A way in which lists come: its name, and what makes the API server do so.
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

/// Measures each way.
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
            format!("peak of {ROUNDS} new lists, {way}: 10000 services, 100000 endpoints"),
            format!(
                "{:.2} ({:.1} MiB before, {:.1} MiB at most, {:.1} MiB after)",
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

/// Lets everything be listed anew, and waits until all of it is.
fn list_anew(served: &Served, round: u8) -> Result<(), Failed> {
    let Served { cluster, server, .. } = served;
    cluster.api.compact();
    let (started, seen) = (Instant::now(), cluster.api.seen().len());
    if round == 0 {
        cluster.api.drop_connections();
    } else {
        // Gone without a broken connection: pauses grow with every failure.
        cluster.resources().iter().for_each(|resource| cluster.api.inject(resource, EXPIRED));
    }
    cluster.wait_until_known(server.port, seen, 1 + round, started).map(|_| ())
}
