//! `cargo xtask cluster test`: changes of a real cluster under load, with each lost query and its cause.
//!
//! Each trial does what an operator does, while clients in a pod query the address of the cluster DNS ([`mod@load`]). A
//! trial that compares servers needs the image of CoreDNS (`cluster up --coredns`), and runs for each of both.

mod bed;
mod every_node;
mod faults;
mod helm;
mod load;
mod node_cache;
mod node_faults;
mod programs;
mod relays;
mod report;
mod rollouts;
mod traffic;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

pub(crate) use self::load::{command as load_command, main as load};

use self::bed::Bed;
use self::report::Report;
use super::home::Home;
use super::inside::Inside;
use xtask::{Failed, results};

/// Trial: its name, what it does, and its function.
struct Trial(&'static str, &'static str, fn(&Bed<'_>, usize, &mut Report) -> Result<(), Failed>);

const TRIALS: [Trial; 14] = [
    Trial("conformance", "the specification, checked from a pod", programs::conformance),
    Trial("e2e", "Kubernetes' own end-to-end specs of DNS", programs::e2e),
    Trial("swap", "another image in the Deployment, and back", rollouts::swap),
    Trial("rolling", "rolling restarts", rollouts::rolling),
    Trial("kill", "kill -9 of one of two servers", faults::kill),
    Trial("api", "kill -9 of the API server, which is away for 5 s", faults::api),
    Trial("configmap", "a new Corefile in the ConfigMap", faults::config_map),
    Trial("helm", "install, upgrade and rollback with Helm", helm::run),
    Trial("node", "rollouts of the cache on the node", node_cache::run),
    Trial("migration", "to the server on every node and back, with two nodes", every_node::migration),
    Trial("update", "rolling updates of the server on every node, with two nodes", every_node::update),
    Trial("ends", "the server of a node ends in several ways, with two nodes", node_faults::ends),
    Trial("relays", "relays in front of the server on every node, with two nodes", relays::run),
    Trial("cut", "the network of a node is away for 150 s times the rounds, with two nodes", node_faults::cut),
];

/// Returns the definition of the command line.
pub(crate) fn command() -> Command {
    let names = TRIALS.map(|Trial(name, what, _)| format!("{name}: {what}")).join("; ");
    Command::new("test")
        .about("Change the cluster under load and report each lost query with its cause")
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("TRIAL")
                .action(ArgAction::Append)
                .value_parser(TRIALS.map(|Trial(name, ..)| name))
                .help("Run only this trial")
                .long_help(format!("Run only this trial. {names}")),
        )
        .arg(
            Arg::new("rounds")
                .long("rounds")
                .default_value("4")
                .value_parser(value_parser!(usize))
                .help("Rounds of each rollout"),
        )
        .arg(Arg::new("save").long("save").action(ArgAction::SetTrue).help("Save the result in benches/results"))
}

/// Runs the trials and prints the report. Fails if a trial could not run, or if Portolan failed a check or spec.
pub(crate) fn run(home: &Home, options: &ArgMatches) -> Result<(), Failed> {
    let only: Vec<&String> = options.get_many("only").into_iter().flatten().collect();
    let rounds = options.get_one::<usize>("rounds").copied().unwrap_or(1);
    let bed = Bed::new(Inside::find(home)?)?;
    let before = bed.installed();
    let mut report = Report::new(&bed);
    for Trial(name, what, function) in &TRIALS {
        if !only.is_empty() && !only.iter().any(|only| only == name) {
            continue;
        }
        eprintln!("{name}: {what}");
        if let Err(error) = function(&bed, rounds, &mut report) {
            eprintln!("{name}: {error}");
            report.failed.push(format!("{name}: {error}"));
        }
    }
    if let Some(server) = before {
        bed.install(server)?;
    }
    println!("{report}");
    if options.get_flag("save") {
        println!("saved as {}", results::save("-real-cluster", &report)?.display());
    }
    if report.failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", report.failed.join("; "))) }
}
