//! Long runs of the simulations of relays and of the clients that follow them: `cargo xtask schedules`.
//!
//! The simulations are tests, with few seeds. Their long form takes the seeds from the environment.

use std::process::{Child, Command, ExitStatus};
use std::thread::available_parallelism;
use std::time::Instant;

use clap::{Arg, ArgMatches};

use crate::{Failed, root};

/// Packages with a simulation, and its ignored test.
const SIMULATIONS: [(&str, &str); 2] = [("portolan-listwatch", "sources_simulation"), ("portolan-relay", "simulation")];

/// Returns the command line of `schedules`.
pub(crate) fn command() -> clap::Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(clap::value_parser!(u64)).help(help)
    };
    clap::Command::new("schedules")
        .about("Run random schedules of relays and their clients in virtual time, as many as wanted")
        .arg(number("seeds", "10000", "Number of seeds"))
        .arg(number("from", "1", "First seed"))
        .arg(
            Arg::new("only")
                .long("only")
                .value_parser(SIMULATIONS.map(|(package, _)| package))
                .help("Run the simulation of this package alone"),
        )
}

/// Runs the simulations, each on all processors.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let number = |name: &str| options.get_one::<u64>(name).copied().unwrap_or(1);
    let only = options.get_one::<String>("only");
    for (package, module) in SIMULATIONS.iter().filter(|(package, _)| only.is_none_or(|only| only == package)) {
        let (from, seeds) = (number("from"), number("seeds").max(1));
        let built = cargo_test(package).arg("--no-run").status().map_err(|error| format!("cargo test: {error}"))?;
        if !built.success() {
            return Err(format!("{package} cannot be built"));
        }
        let start = Instant::now();
        run_parts(package, module, &parts(from, seeds))?;
        let seconds = start.elapsed().as_secs_f64();
        println!("{package}: {seeds} seeds from {from} in {seconds:.1} s");
    }
    Ok(())
}

/// Divides seeds among the processors: the first seed and the number of each part.
fn parts(from: u64, seeds: u64) -> Vec<(u64, u64)> {
    let jobs = available_parallelism().map_or(1, |jobs| jobs.get() as u64).min(seeds);
    let begin = |job: u64| from + seeds * job / jobs;
    (0..jobs).map(|job| (begin(job), begin(job + 1) - begin(job))).collect()
}

fn run_parts(package: &str, module: &str, parts: &[(u64, u64)]) -> Result<(), Failed> {
    let start = |&(from, seeds): &(u64, u64)| {
        let mut command = cargo_test(package);
        command.args(["--", "--ignored", "--nocapture", &format!("{module}::many_schedules")]);
        command.env("SCHEDULES_FROM", from.to_string()).env("SCHEDULES", seeds.to_string());
        command.spawn().map_err(|error| format!("cargo test: {error}"))
    };
    let jobs = parts.iter().map(start).collect::<Result<Vec<Child>, Failed>>()?;
    // All of them end before the result is known, so that none is left behind.
    let ended: Vec<_> = jobs.into_iter().map(|mut job| job.wait()).collect();
    let failed = ended.iter().filter(|status| !status.as_ref().is_ok_and(ExitStatus::success)).count();
    if failed == 0 { Ok(()) } else { Err(format!("{package}: {failed} of {} parts have failed", parts.len())) }
}

fn cargo_test(package: &str) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["test", "--quiet", "--release", "--lib", "--package", package]).current_dir(root());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_seed_is_in_one_part() {
        for (from, seeds) in [(1, 1), (5, 3), (1, 1_000_003)] {
            let parts = parts(from, seeds);
            let last = parts.iter().fold(from, |next, (begin, count)| {
                assert!(*begin == next && *count > 0);
                begin + count
            });
            assert_eq!(last, from + seeds);
        }
    }
}
