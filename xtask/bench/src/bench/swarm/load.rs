//! Relays under constant change: CPU, memory, bytes and delays. Afterwards the same while nodes join.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::super::processes::cpu_of;
use super::super::report::mebi;
use super::node::Role;
use super::report::{Bar, Report};
use super::times::Summary;
use super::{LOOK, Swarm};
use xtask::Failed;

/// Time with changes before the measured time.
const WARM_UP: Duration = Duration::from_secs(5);
/// Bars of the design: CPU and memory of a relay, delay, bytes per event and node, watches per kind at the API server.
const CORES_MAX: f64 = 1.0;
const MEMORY_MAX_MIB: f64 = 256.0;
const DELAY_MAX_MS: f64 = 100.0;
const BYTES_MAX: f64 = 150.0;

/// Counters at a time.
struct Reading {
    at: Instant,
    cpu: Duration,
    /// CPU time of this process: nodes, API server and writer.
    own: Duration,
    version: u64,
    body: u64,
    wire: u64,
    ended: u64,
}

impl Reading {
    fn take(swarm: &Swarm) -> Reading {
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let tally = &swarm.tally;
        Reading {
            at: Instant::now(),
            // All relays do the same work.
            cpu: swarm.relays.iter().map(super::relay::Relay::cpu).sum(),
            own: cpu_of(std::process::id()),
            version: tally.times.last(),
            body: count(&tally.body),
            wire: count(&tally.wire),
            ended: count(&tally.ended),
        }
    }
}

/// Measures for the given time, and then for as long with joining nodes.
pub(crate) fn measure(swarm: &Swarm) -> Result<Report, Failed> {
    let mut report = swarm.shape.report();
    let time = Duration::from_secs(swarm.shape.seconds as u64);
    std::thread::sleep(WARM_UP);
    let _ = swarm.tally.delays.take();
    let before = Reading::take(swarm);
    std::thread::sleep(time);
    let after = Reading::take(swarm);
    add_load(&mut report, swarm, (&before, &after), &swarm.tally.delays.take());
    add_state(&mut report, swarm);
    if swarm.shape.joining > 0 {
        add_joining(&mut report, swarm, time);
    }
    let ended = swarm.tally.ended.load(Ordering::Relaxed) + slow(swarm);
    report.add("lost_connections", "connections that ended", number(ended), "", &Bar::AtMost(0.0));
    Ok(report)
}

fn add_load(report: &mut Report, swarm: &Swarm, (before, after): (&Reading, &Reading), delays: &Summary) {
    let seconds = (after.at - before.at).as_secs_f64();
    let cores = (after.cpu - before.cpu).as_secs_f64() / seconds / number(swarm.relays.len() as u64);
    let events = number(after.version - before.version);
    let received = events * number(swarm.shape.all() as u64);
    report.add("cpu_cores", "CPU of a relay", cores, "cores", &Bar::AtMost(CORES_MAX));
    let own = (after.own - before.own).as_secs_f64() / seconds;
    report.add("load_cores", "CPU of the nodes and the API server", own, "cores", &Bar::None);
    report.add("events_per_second", "changes", events / seconds, "1/s", &Bar::None);
    let body = number(after.body - before.body) / received;
    report.add("body_bytes", "bytes per event and node: body", body, "B", &Bar::AtMost(BYTES_MAX));
    let wire = number(after.wire - before.wire) / received;
    report.add("wire_bytes", "with frames, TLS and bookmarks", wire, "B", &Bar::None);
    add_delays(report, ["p50_ms", "p99_ms", "max_ms"], "delay", delays);
    report.add("ended", "connections that ended meanwhile", number(after.ended - before.ended), "", &Bar::None);
}

fn add_delays(report: &mut Report, keys: [&str; 3], what: &str, delays: &Summary) {
    let Summary { count, half, most, all } = *delays;
    let bars = [Bar::None, Bar::AtMost(DELAY_MAX_MS), Bar::None];
    for (((key, name), delay), bar) in keys.iter().zip(["p50", "p99", "maximum"]).zip([half, most, all]).zip(&bars) {
        let what = format!("{what}: {name} of {count}");
        report.add(key, &what, delay.as_secs_f64() * 1e3, "ms", bar);
    }
}

fn add_state(report: &mut Report, swarm: &Swarm) {
    let memory: Vec<_> = swarm.relays.iter().map(super::relay::Relay::memory).collect();
    let most = |of: fn(&super::relay::Memory) -> u64| mebi(memory.iter().map(of).max().unwrap_or(0));
    let bar = Bar::AtMost(MEMORY_MAX_MIB);
    report.add("peak_mib", "memory of a relay: peak", most(|memory| memory.peak), "MiB", &bar);
    report.add("resident_mib", "memory of a relay: resident", most(|memory| memory.resident), "MiB", &Bar::None);
    report.add("anonymous_mib", "memory of a relay: anonymous", most(|memory| memory.anonymous), "MiB", &Bar::None);
    // A watch whose client has left counts until something is sent on it.
    swarm.api.bookmark();
    std::thread::sleep(LOOK);
    let watches = number(swarm.api_watches() as u64);
    let most = number(swarm.relays.len() as u64);
    report.add("api_watches", "watches per kind at the API server", watches, "", &Bar::AtMost(most));
}

/// Measures delays while nodes list everything.
fn add_joining(report: &mut Report, swarm: &Swarm, time: Duration) {
    let start = Instant::now();
    let interval = Duration::from_secs(1) / u32::try_from(swarm.shape.joining).unwrap_or(u32::MAX);
    let mut number_of_node = swarm.shape.all();
    let before = Reading::take(swarm);
    let _ = swarm.tally.delays.take();
    while start.elapsed() < time {
        swarm.nodes.start((number_of_node, Role::Joining));
        number_of_node += 1;
        std::thread::sleep(interval);
    }
    let after = Reading::take(swarm);
    let seconds = (after.at - before.at).as_secs_f64();
    let cores = (after.cpu - before.cpu).as_secs_f64() / seconds / number(swarm.relays.len() as u64);
    let joined = swarm.tally.joined.load(Ordering::Relaxed);
    report.add("joined", "nodes that joined and listed all kinds", number(joined), "", &Bar::None);
    report.add("joining_cpu_cores", "CPU of a relay meanwhile", cores, "cores", &Bar::None);
    let delays = swarm.tally.delays.take();
    add_delays(report, ["joining_p50_ms", "joining_p99_ms", "joining_max_ms"], "delay meanwhile", &delays);
    let peak = swarm.relays.iter().map(|relay| relay.memory().peak).max().unwrap_or(0);
    report.add("joining_peak_mib", "memory of a relay: peak", mebi(peak), "MiB", &Bar::AtMost(MEMORY_MAX_MIB));
}

/// Returns the number of subscribers that relays closed because they were slow.
fn slow(swarm: &Swarm) -> u64 {
    let slow =
        swarm.relays.iter().filter_map(|relay| relay.metric("portolan_relay_slow_subscribers_total")).sum::<f64>();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    let slow = slow as u64;
    slow
}

#[allow(clippy::cast_precision_loss, reason = "figures for people")]
pub(crate) fn number(count: u64) -> f64 {
    count as f64
}
