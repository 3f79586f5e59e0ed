//! Restarts of one relay, and then of all of them: who lists, and how long nodes lack changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::super::processes::cpu_of;
use super::load::number;
use super::portolans::Portolans;
use super::report::{Bar, Report};
use super::{LOOK, Swarm};
use xtask::Failed;

/// Time before each restart, and after all nodes are current, in which late consequences would show.
const CALM: Duration = Duration::from_secs(10);
/// Time after which a measurement gives up.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Bar for the time from the end of all relays until all nodes are current.
const CURRENT_MAX_SECONDS: f64 = 30.0;

/// Counts of what makes simulated nodes send a request again.
struct Causes {
    refused: u64,
    expired: u64,
    ended: u64,
}

impl Causes {
    fn read(swarm: &Swarm) -> Causes {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tally = &swarm.tally;
        Causes { refused: count(&tally.refused), expired: count(&tally.expired), ended: count(&tally.ended) }
    }
}

/// Restart of some relays.
struct Round {
    name: &'static str,
    relays: usize,
    /// True if the API server forgets the changes from before the restart, so that nodes list.
    is_forgotten: bool,
    /// Bars: lists of simulated nodes, of real servers, and per kind at the API server.
    lists: [Bar; 3],
}

/// Restarts one relay and then all of them. With `is_forgotten`, the API server has none of the changes before.
pub(crate) fn measure(mut swarm: Swarm, is_forgotten: bool) -> Result<Report, Failed> {
    let mut report = swarm.shape.report();
    let portolans = Portolans::start(&swarm, swarm.shape.portolans)?;
    report.set("real_servers", swarm.shape.portolans);
    let all = swarm.relays.len();
    let lists = |servers| [Bar::AtMost(0.0), Bar::AtMost(0.0), Bar::AtMost(servers)];
    let one = Round { name: "one", relays: 1, is_forgotten: false, lists: lists(1.0) };
    let any = [Bar::None, Bar::None, Bar::AtMost(number(all as u64))];
    let lists = if is_forgotten { any } else { lists(number(all as u64)) };
    let every = Round { name: "all", relays: all, is_forgotten, lists };
    for round in [one, every] {
        round.run(&mut swarm, &portolans, &mut report)?;
    }
    Ok(report)
}

impl Round {
    fn run(&self, swarm: &mut Swarm, portolans: &Portolans, report: &mut Report) -> Result<(), Failed> {
        std::thread::sleep(CALM);
        let _ = (swarm.tally.take_stale(), portolans.take());
        let lists = |swarm: &Swarm| [swarm.tally.lists.load(Ordering::Relaxed), portolans.lists()];
        let (before, seen, start) = (lists(swarm), swarm.api.seen().len(), Instant::now());
        let (causes, own) = (Causes::read(swarm), cpu_of(std::process::id()));
        for relay in &mut swarm.relays[..self.relays] {
            relay.stop()?;
        }
        if self.is_forgotten {
            swarm.api.forget_changes();
        }
        for relay in &mut swarm.relays[..self.relays] {
            relay.start_again()?;
        }
        for relay in &swarm.relays[..self.relays] {
            relay.wait_ready()?;
        }
        let served = start.elapsed();
        wait_current(swarm, portolans)?;
        let current = start.elapsed();
        self.add_cpu(report, swarm, cpu_of(std::process::id()) - own);
        std::thread::sleep(CALM);
        let after = lists(swarm);
        self.add_times(report, served, current);
        let made = [0, 1].map(|who: usize| after[who] - before[who]);
        self.add_lists(report, made, lists_at_api(swarm, seen));
        self.add_causes(report, &causes, &Causes::read(swarm));
        self.add_nodes(report, swarm, portolans);
        Ok(())
    }

    fn add_times(&self, report: &mut Report, served: Duration, current: Duration) {
        let name = self.name;
        let what = format!("restart of {name}: until they serve again");
        report.add(&format!("{name}_serve_s"), &what, served.as_secs_f64(), "s", &Bar::None);
        let (what, bar) = ("until all nodes are current", Bar::AtMost(CURRENT_MAX_SECONDS));
        report.add(&format!("{name}_current_s"), &format!("… {what}"), current.as_secs_f64(), "s", &bar);
    }

    fn add_lists(&self, report: &mut Report, [nodes, servers]: [u64; 2], at_api: u64) {
        let name = self.name;
        let figures = [
            ("node_lists", "requests for lists of simulated nodes", nodes),
            ("server_lists", "lists of real servers", servers),
            ("api_lists", "lists per kind at the API server", at_api),
        ];
        for ((key, what, lists), bar) in figures.iter().zip(&self.lists) {
            report.add(&format!("{name}_{key}"), &format!("… {what}"), number(*lists), "", bar);
        }
    }

    /// Adds the CPU time until all nodes were current.
    fn add_cpu(&self, report: &mut Report, swarm: &Swarm, own: Duration) {
        let relays: Duration = swarm.relays[..self.relays].iter().map(super::relay::Relay::cpu).sum();
        let figures = [("relays", "of the restarted relays", relays), ("load", "of nodes and API server", own)];
        for (key, whose, time) in figures {
            let what = format!("… CPU time {whose} until then");
            report.add(&format!("{}_{key}_cpu_s", self.name), &what, time.as_secs_f64(), "s", &Bar::None);
        }
    }

    /// Adds the reasons why nodes have sent requests again.
    fn add_causes(&self, report: &mut Report, before: &Causes, after: &Causes) {
        let figures = [
            ("refused", "refused requests of simulated nodes", after.refused - before.refused),
            ("expired", "their watches that ended with 410", after.expired - before.expired),
            ("ended", "their connections that ended", after.ended - before.ended),
        ];
        for (key, what, count) in figures {
            report.add(&format!("{}_{key}", self.name), &format!("… {what}"), number(count), "", &Bar::None);
        }
    }

    fn add_nodes(&self, report: &mut Report, swarm: &Swarm, portolans: &Portolans) {
        let (name, answered) = (self.name, portolans.take());
        let figures = [
            (
                "node_stale_ms",
                "longest time for which a simulated node lacked a change",
                swarm.tally.take_stale().into(),
            ),
            ("server_stale_ms", "longest time for which a real server lacked one", answered.stale_ms),
        ];
        for (key, what, millis) in figures {
            report.add(&format!("{name}_{key}"), &format!("… {what}"), number(millis), "ms", &Bar::None);
        }
        let what = format!("… queries without an answer of {}", answered.asked);
        report.add(&format!("{name}_lost_queries"), &what, number(answered.lost), "", &Bar::AtMost(0.0));
    }
}

/// Waits until all nodes have what the API server had when this was called.
fn wait_current(swarm: &Swarm, portolans: &Portolans) -> Result<(), Failed> {
    let (start, version) = (Instant::now(), swarm.tally.times.last());
    while swarm.tally.have(version) < swarm.shape.decoding || !portolans.are_current() {
        if start.elapsed() > TIMEOUT {
            let (have, all) = (swarm.tally.have(version), swarm.shape.decoding);
            return Err(format!("{have} of {all} nodes are current after {TIMEOUT:?}"));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Returns the largest number of lists of a kind that the API server has seen after the first `seen` requests.
fn lists_at_api(swarm: &Swarm, seen: usize) -> u64 {
    let mut lists: BTreeMap<String, u64> = BTreeMap::new();
    for request in swarm.api.seen().into_iter().skip(seen) {
        let is_first_page = !request.is_watch() && !request.is_proof() && request.parameter("limit") != "1";
        if request.is_streaming_list() || is_first_page && request.parameter("continue").is_empty() {
            *lists.entry(request.resource).or_default() += 1;
        }
    }
    lists.into_values().max().unwrap_or(0)
}
