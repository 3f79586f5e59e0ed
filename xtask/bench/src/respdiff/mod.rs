//! Asks CoreDNS and Portolan the same random questions with the same random Corefiles, and compares the answers.
//!
//! A seed decides everything: the Corefile, its data files, the cluster, its changes and the questions. Both servers
//! run as processes with the project's own fake API server and fake upstreams. With *kubernetes*, the questions come in
//! rounds; between two rounds the cluster changes, and the next begins when both servers answer for marker objects.
//!
//! Deliberate differences are listed in `rules.txt`, by rows of docs/differences.md.

mod asking;
mod cluster;
mod compare;
mod facts;
mod grammar;
mod questions;
mod report;
mod rules;
mod seed;
mod servers;
mod upstream;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use self::report::Report;
use self::rules::Rules;
use self::seed::Bench;
pub(crate) use self::servers::guarded;
use xtask::{Failed, server};

/// Returns the command line of `respdiff`.
pub(crate) fn command() -> Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("NUMBER")
            .default_value(default)
            .value_parser(value_parser!(u64))
            .help(help)
    };
    Command::new("respdiff")
        .about("Ask CoreDNS and Portolan the same random questions; fails if a difference is not explained")
        .arg(Arg::new("coredns").value_name("COREDNS").required(true).help("Binary of CoreDNS 1.15.0"))
        .arg(Arg::new("server").long("server").value_name("BINARY").help("Ask this binary instead of a new build"))
        .arg(number("from", "1", "First seed"))
        .arg(number("seeds", "320", "Number of seeds, each of which is a Corefile"))
        .arg(number("questions", "3400", "Number of questions of a seed"))
        .arg(number("limit", "180", "Maximum time of a seed in seconds"))
        .arg(
            Arg::new("work")
                .long("work")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Folder for Corefiles and differences [default: a new one in the folder for temporary files]"),
        )
        .arg(
            Arg::new("keep")
                .long("keep")
                .action(ArgAction::SetTrue)
                .help("Keep the files of all seeds, not only of those with unexplained differences"),
        )
}

/// Returns the definition of the hidden command that starts a server so that it ends with this process.
pub(crate) fn guarded_command() -> Command {
    let words = Arg::new("command").num_args(1..).trailing_var_arg(true).allow_hyphen_values(true);
    Command::new("guarded").hide(true).arg(words)
}

/// Compares the servers with the seeds that the command line selects.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let number = |name: &str| options.get_one::<u64>(name).copied().unwrap_or_default();
    let coredns = absolute(options.get_one::<String>("coredns").map_or("", String::as_str))?;
    let portolan = match options.get_one::<String>("server") {
        Some(path) => absolute(path)?,
        None => server::build("dev")?,
    };
    let folder = match options.get_one::<PathBuf>("work") {
        Some(folder) => absolute(&folder.to_string_lossy())?,
        None => std::env::temp_dir().join(format!("portolan-respdiff-{}", std::process::id())),
    };
    let mut report = Report::new(Rules::read()?, &folder)?;
    let bench = Bench {
        binaries: [coredns, portolan],
        upstreams: upstream::Upstreams::start()?,
        runtime: seed::runtime()?,
        folder,
        questions: usize::try_from(number("questions")).unwrap_or_default(),
        limit: Duration::from_secs(number("limit")),
        keep: options.get_flag("keep"),
    };
    for seed in number("from")..number("from") + number("seeds") {
        let outcome = bench.compare(seed, &mut report)?;
        report.end_seed(seed, outcome);
    }
    report.finish()
}

fn absolute(path: &str) -> Result<PathBuf, Failed> {
    std::path::absolute(path).map_err(|error| format!("{path}: {error}"))
}
