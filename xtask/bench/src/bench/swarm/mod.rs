//! Relays with many nodes: `cargo xtask swarm`.
//!
//! A fake API server has EndpointSlices of ten endpoints, which change all the time. Relays, which are processes,
//! follow it, and simulated nodes follow the relays: each with three watches on a TLS connection with HTTP/2, as
//! Portolan has them. Most of the nodes count bytes. Some decode what they get, and measure the delay of each
//! change from its write at the API server to its receipt.
//!
//! With `--restart-relay`, relays are restarted meanwhile, and some of the nodes are real servers ([`restart`]).
//!
//! Relays are pinned to one processor, and everything else to another one. Over loopback, the sender of a segment also
//! does the work of the receiving TCP: the CPU time of a relay is more than over a network.

mod decode;
pub(crate) mod informers;
mod issuer;
mod load;
mod node;
mod nodes;
mod objects;
mod portolans;
mod random;
mod relay;
mod report;
mod restart;
mod tally;
mod times;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::{Arg, ArgAction, ArgMatches, Command};
use fakeapi::FakeApi;

use self::node::Role;
use self::nodes::{Nodes, Settings};
use self::objects::Slices;
use self::relay::Relay;
use self::report::Report;
use self::tally::Tally;
use self::times::WriteTimes;
use self::writer::{Markers, Writer};
use super::certificates::{AUTHORITY, Certificates};
use super::processes;
use xtask::{Failed, results, server};

/// Resources that relays follow.
const RESOURCES: [&str; 3] = ["namespaces", "services", "endpointslices"];
/// Time for all nodes to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(120);
/// Changes for which there is room beyond those of the measured time, as a factor: relays and nodes start meanwhile.
const ROOM: usize = 4;
/// Seconds for the start, for which there is room too.
const START_SECONDS: usize = 120;
const LOOK: Duration = Duration::from_millis(20);

/// Returns the command line of `swarm`.
pub(crate) fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(clap::value_parser!(usize)).help(help)
    };
    let flag = |name: &'static str, help: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).help(help);
    Command::new("swarm")
        .about("Measure relays with many simulated nodes")
        .arg(number("nodes", "1667", "Nodes per relay; the default is a third of 5,000"))
        .arg(number("relays", "1", "Relays"))
        .arg(number("slices", "10000", "EndpointSlices, with ten endpoints each"))
        .arg(number("changes-per-second", "500", "Changes of EndpointSlices per second"))
        .arg(number("seconds", "60", "Measured time"))
        .arg(number("decoding", "50", "Nodes that decode what they get, and measure delays"))
        .arg(number("joining", "1", "Nodes per second that list everything, in an additional measured time"))
        .arg(number("portolans", "20", "Real servers as nodes, with --restart-relay"))
        .arg(flag("restart-relay", "Restart one relay, then all of them; all nodes decode"))
        .arg(flag("forgotten", "With --restart-relay: the API server forgets all changes before the second restart"))
        .arg(Arg::new("server").long("server").help("Use this binary instead of a new release build"))
        .arg(flag("json", "Print the figures as JSON"))
        .arg(flag("save", "Save the result in benches/results"))
}

/// Measures what the command line says.
///
/// # Errors
/// A figure that misses its bar, or a problem of the measurement.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    processes::stay_away()?;
    let settings = Shape::new(options);
    let server = match options.get_one::<String>("server") {
        Some(path) => PathBuf::from(path),
        None => server::build("release")?,
    };
    let swarm = Swarm::start(settings, server)?;
    let report = if options.get_flag("restart-relay") {
        restart::measure(swarm, options.get_flag("forgotten"))?
    } else {
        load::measure(&swarm)?
    };
    if options.get_flag("json") {
        println!("{}", report.to_json());
    } else {
        println!("{report}");
    }
    if options.get_flag("save") {
        eprintln!("saved as {}", results::save("-swarm", &report)?.display());
    }
    report.verdict()
}

/// Size of a measurement.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Nodes per relay.
    nodes: usize,
    relays: usize,
    slices: usize,
    changes_per_second: usize,
    seconds: usize,
    decoding: usize,
    joining: usize,
    portolans: usize,
}

impl Shape {
    fn new(options: &ArgMatches) -> Shape {
        let number = |name: &str| options.get_one::<usize>(name).copied().unwrap_or(0);
        let relays = number("relays").max(1);
        let all = number("nodes") * relays;
        let decoding = if options.get_flag("restart-relay") { all } else { number("decoding").min(all) };
        Shape {
            nodes: number("nodes"),
            relays,
            slices: number("slices").max(1),
            changes_per_second: number("changes-per-second").max(1),
            seconds: number("seconds").max(1),
            decoding,
            joining: number("joining"),
            portolans: number("portolans"),
        }
    }

    /// Returns the number of all nodes.
    fn all(&self) -> usize {
        self.nodes * self.relays
    }

    /// Returns the role of a node. Relays write to their subscribers in a fixed order, in which decoding nodes are
    /// spread evenly.
    fn role(&self, number: usize, base: u64) -> Role {
        let before = |number: usize| number * self.decoding / self.all();
        if before(number + 1) > before(number) { Role::Decoding } else { Role::Counting(base) }
    }

    /// Returns a report with these settings.
    fn report(&self) -> Report {
        let mut report = Report::new();
        for (name, value) in [
            ("nodes_per_relay", self.nodes),
            ("relays", self.relays),
            ("slices", self.slices),
            ("changes_per_second", self.changes_per_second),
            ("seconds", self.seconds),
            ("decoding_nodes", self.decoding),
        ] {
            report.set(name, value);
        }
        report
    }
}

/// API server, relays and nodes, all connected.
struct Swarm {
    shape: Shape,
    // Dropped first: nodes do not report the end of the relays.
    nodes: Nodes,
    _writer: Writer,
    markers: Arc<Markers>,
    relays: Vec<Relay>,
    tally: Arc<Tally>,
    api: Arc<FakeApi>,
    certificates: Certificates,
    token: String,
    server: PathBuf,
}

impl Swarm {
    fn start(shape: Shape, server: PathBuf) -> Result<Swarm, Failed> {
        let (api, certificates) = (Arc::new(FakeApi::start()), Certificates::make()?);
        let token = issuer::token(&api)?;
        let slices = Slices::new(shape.slices);
        let base = slices.fill(&api);
        let relay = |_| Relay::start(&server, api.url(), &certificates);
        let relays: Vec<Relay> = (0..shape.relays).map(relay).collect::<Result<_, _>>()?;
        let room = (ROOM * shape.seconds + START_SECONDS) * shape.changes_per_second;
        let tally = Arc::new(Tally::new(WriteTimes::new(base, room), shape.all()));
        let ports = relays.iter().map(|relay| relay.port).collect();
        let settings = Settings::new(Arc::clone(&tally), &token, ports, &certificates.path(AUTHORITY))?;
        let nodes = Nodes::run(settings)?;
        for number in 0..shape.all() {
            nodes.start((number, shape.role(number, base)));
        }
        wait_connected(&tally, &shape, base)?;
        let markers = Arc::<Markers>::default();
        let writer = Writer::start(&api, slices, &tally, &markers, shape.changes_per_second);
        Ok(Swarm { shape, nodes, _writer: writer, markers, relays, tally, api, certificates, token, server })
    }

    /// Returns the largest number of watches of a kind at the API server.
    fn api_watches(&self) -> usize {
        RESOURCES.iter().map(|resource| self.api.watches(resource)).max().unwrap_or(0)
    }
}

/// Waits until all watches are open, and all decoding nodes have a version.
fn wait_connected(tally: &Tally, shape: &Shape, version: u64) -> Result<(), Failed> {
    let start = Instant::now();
    let watches = (shape.all() * RESOURCES.len()) as u64;
    let open = || tally.open.load(Ordering::Relaxed);
    while open() < watches || tally.have(version) < shape.decoding {
        if start.elapsed() > CONNECT_TIMEOUT {
            return Err(format!("{} of {watches} watches are open after {CONNECT_TIMEOUT:?}", open()));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_nodes_are_spread_evenly() {
        let shape = Shape {
            nodes: 7,
            relays: 3,
            slices: 1,
            changes_per_second: 1,
            seconds: 1,
            decoding: 4,
            joining: 0,
            portolans: 0,
        };
        let decoding = (0..shape.all()).filter(|number| shape.role(*number, 1) == Role::Decoding);
        assert_eq!(decoding.collect::<Vec<_>>(), [5, 10, 15, 20]);
    }
}
