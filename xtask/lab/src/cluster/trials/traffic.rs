//! Load during a trial, and what became of its queries.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::bed::Bed;
use crate::cluster::inside::Inside;
use crate::cluster::network::{self, Node};
use crate::cluster::steps::output_of;
use xtask::Failed;

/// Names that the clients query: two of the cluster, and one that is forwarded.
const NAMES: [&str; 3] =
    ["kubernetes.default.svc.cluster.local.", "kube-dns.kube-system.svc.cluster.local.", "host.lab.internal."];
/// Queries per second from new ports.
const NEW_PORTS: u32 = 100;
/// Time of load before the change, so that all sockets have entries in the table of connections.
const WARM_UP: Duration = Duration::from_secs(2);
/// Time of load after the change.
const COOL_DOWN: Duration = Duration::from_secs(3);
/// Causes of queries that nobody answered, as the clients name them.
const UNANSWERED: [&str; 2] = ["timeout", "unreachable"];
/// Interval between looks at the table of connections.
const LOOK_AGAIN: Duration = Duration::from_millis(150);

/// Queries of one kind of client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kind {
    pub(crate) sent: u64,
    /// Number of failed queries by cause.
    pub(crate) causes: BTreeMap<String, u64>,
    /// Latency percentiles 50, 99 and 100 in microseconds.
    pub(crate) micros: [u64; 3],
    /// Number of answers by the name of their server, which is empty if it has not said it.
    pub(crate) servers: BTreeMap<String, u64>,
    /// Times of the first and of the last query that failed, in milliseconds since 1970.
    pub(crate) failing: Option<[u64; 2]>,
    /// Number of answers that say that they may be stale, and the time of the first, in milliseconds since 1970.
    pub(crate) stale: [u64; 2],
    /// What the last one said.
    pub(crate) stale_text: String,
}

impl Kind {
    pub(crate) fn failed(&self) -> u64 {
        self.causes.values().sum()
    }
}

/// Outcome of all queries, by kind of client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) kinds: BTreeMap<String, Kind>,
    /// Time at which the change began, in milliseconds since 1970.
    pub(crate) begin: u64,
}

/// Clients on a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clients {
    pub(crate) node: Node,
    pub(crate) names: &'static [&'static str],
    /// Queries per second from new ports.
    pub(crate) new_ports: u32,
}

impl Clients {
    /// Returns the usual clients of a node.
    pub(crate) fn on(node: Node) -> Clients {
        Clients { node, names: &NAMES, new_ports: NEW_PORTS }
    }
}

/// Runs a change under load from the first node on an address, and returns the outcome of the queries.
pub(crate) fn during<T>(
    bed: &Bed<'_>,
    address: &str,
    change: impl FnOnce() -> Result<T, Failed>,
) -> Result<(Outcome, T), Failed> {
    let (outcomes, changed) = during_all(bed, address, &[Clients::on(network::FIRST)], change)?;
    Ok((outcomes.into_iter().next().unwrap_or_default(), changed))
}

/// Runs a change under load of several clients on an address, and returns the outcome of the queries of each.
pub(crate) fn during_all<T>(
    bed: &Bed<'_>,
    address: &str,
    clients: &[Clients],
    change: impl FnOnce() -> Result<T, Failed>,
) -> Result<(Vec<Outcome>, T), Failed> {
    let loads = clients.iter().map(|clients| Load::start(bed, address, *clients));
    let loads = loads.collect::<Result<Vec<_>, _>>()?;
    std::thread::sleep(WARM_UP);
    let begin = now();
    let changed = change();
    std::thread::sleep(COOL_DOWN);
    let outcomes = loads.into_iter().map(|load| load.end(bed).map(|kinds| Outcome { kinds, begin }));
    Ok((outcomes.collect::<Result<_, _>>()?, changed?))
}

/// Returns the time in milliseconds since 1970.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Running clients.
struct Load {
    clients: Child,
    sampler: Sampler,
}

impl Load {
    fn start(bed: &Bed<'_>, address: &str, clients: Clients) -> Result<Load, Failed> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?.display().to_string();
        let process = bed.client(clients.node)?;
        let server = if address.contains(':') { format!("[{address}]:53") } else { format!("{address}:53") };
        let rate = clients.new_ports.to_string();
        let mut words = vec!["--target", &process, "--net", &own, "cluster", "load", "--new-ports", &rate, &server];
        words.extend(clients.names);
        let place = bed.inside.on(clients.node);
        let mut command = place.command("nsenter", &words);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let child = child.map_err(|error| format!("nsenter: {error}"))?;
        Ok(Load { clients: child, sampler: Sampler::start(&place, address) })
    }

    /// Ends the load and attributes what was lost. Returns the kinds of clients.
    fn end(mut self, bed: &Bed<'_>) -> Result<BTreeMap<String, Kind>, Failed> {
        drop(self.clients.stdin.take());
        let mut text = String::new();
        if let Some(mut output) = self.clients.stdout.take() {
            output.read_to_string(&mut text).map_err(|error| error.to_string())?;
        }
        let status = self.clients.wait().map_err(|error| error.to_string())?;
        let report: Value = serde_json::from_str(&text).map_err(|_| format!("the clients failed: {status}"))?;
        let mut kinds = read(&report);
        let samples = self.sampler.end();
        if let Some(kind) = kinds.get_mut("udp") {
            let listed = report["listed"].as_array().map_or(&[][..], Vec::as_slice);
            let causes = attribute(listed, &samples, &bed.addresses()?);
            // Answers with an error are not listed, because they say themselves who failed.
            kind.causes.retain(|cause, _| !UNANSWERED.contains(&cause.as_str()));
            kind.causes.extend(causes);
        }
        Ok(kinds)
    }
}

fn read(report: &Value) -> BTreeMap<String, Kind> {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let kinds = report["kinds"].as_object().into_iter().flatten().map(|(name, kind)| {
        let causes = kind["causes"].as_object().into_iter().flatten();
        let causes = causes.map(|(cause, count)| (cause.clone(), number(count))).collect();
        let micros = [0, 1, 2].map(|at| number(&kind["micros"][at]));
        let servers = kind["servers"].as_object().into_iter().flatten();
        let servers = servers.map(|(server, count)| (server.clone(), number(count))).collect();
        let failing = kind["failing"].as_array().map(|times| [0, 1].map(|at| times.get(at).map_or(0, number)));
        let stale_text = kind["stale_text"].as_str().unwrap_or_default().to_owned();
        let stale = [0, 1].map(|at| number(&kind["stale"][at]));
        (name.clone(), Kind { sent: number(&kind["sent"]), causes, micros, servers, failing, stale, stale_text })
    });
    kinds.collect()
}

/// Entries of the table of connections: for each source port the pods to which it belonged, with times in milliseconds
/// since 1970.
type Samples = BTreeMap<u16, Vec<(u64, String)>>;

/// Counts failures by cause. A timeout says to which pod the kernel sent the query.
fn attribute(listed: &[Value], samples: &Samples, serving: &BTreeSet<String>) -> BTreeMap<String, u64> {
    let mut causes = BTreeMap::new();
    for failure in listed {
        let time = failure[0].as_u64().unwrap_or(0);
        let port = failure[1].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or(0);
        let cause = failure[2].as_str().unwrap_or_default();
        let seen = samples.get(&port).map_or(&[][..], Vec::as_slice);
        // A later look may show the entry that replaced the one of this query.
        let entry = seen.iter().rfind(|(at, _)| *at <= time).or(seen.first());
        let place = match entry {
            Some((_, pod)) if serving.contains(pod) => "pod that serves after the change",
            Some(_) => "pod that has ended or is ending",
            None => "no entry in the table of connections",
        };
        *causes.entry(format!("{cause}: {place}")).or_default() += 1;
    }
    causes
}

/// Thread that looks at the table of connections.
struct Sampler {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Samples>,
}

impl Sampler {
    fn start(place: &Inside<'_>, address: &str) -> Sampler {
        let ends = Arc::new(AtomicBool::new(false));
        let words = ["-L", "-p", "udp", "--orig-dst", address, "--orig-port-dst", "53"];
        let mut command = place.command("conntrack", &words);
        let has_ended = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let mut samples = Samples::new();
            while !has_ended.load(Ordering::Relaxed) {
                let now = now();
                for (port, pod) in output_of(&mut command).unwrap_or_default().lines().filter_map(entry) {
                    let seen = samples.entry(port).or_default();
                    seen.push((now, pod));
                }
                std::thread::sleep(LOOK_AGAIN);
            }
            samples
        });
        Sampler { ends, thread }
    }

    fn end(self) -> Samples {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

/// Returns the source port of an entry and the address of its pod.
fn entry(line: &str) -> Option<(u16, String)> {
    let values = |key: &str| {
        let key = format!("{key}=");
        line.split_whitespace().filter_map(move |word| word.strip_prefix(&key).map(str::to_owned)).collect::<Vec<_>>()
    };
    let port = values("sport").first()?.parse().ok()?;
    Some((port, values("src").get(1)?.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const LINE: &str = "udp      17 29 src=10.244.0.5 dst=10.96.0.10 sport=40000 dport=53 src=10.244.0.3 \
                        dst=10.244.0.5 sport=53 dport=40000 [ASSURED] mark=0 use=1";

    #[test]
    fn reads_entries_of_connections() {
        assert_eq!(entry(LINE), Some((40000, "10.244.0.3".to_owned())));
        assert_eq!(entry("conntrack v1.4.7 (conntrack-tools): 2 flow entries have been shown."), None);
    }

    #[test]
    fn attributes_failures_to_pods() {
        let samples = Samples::from([(7, vec![(100, "10.0.0.1".to_owned()), (300, "10.0.0.2".to_owned())])]);
        let serving = BTreeSet::from(["10.0.0.2".to_owned()]);
        let listed = [json!([290, 7, "timeout"]), json!([310, 7, "timeout"]), json!([290, 8, "unreachable"])];
        let expected = [
            ("timeout: pod that has ended or is ending", 1),
            ("timeout: pod that serves after the change", 1),
            ("unreachable: no entry in the table of connections", 1),
        ];
        let expected: BTreeMap<String, u64> = expected.map(|(cause, count)| (cause.to_owned(), count)).into();
        assert_eq!(attribute(&listed, &samples, &serving), expected);
    }
}
