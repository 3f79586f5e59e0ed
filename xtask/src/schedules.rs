//! Long runs of simulations: `cargo xtask schedules` for relays and the clients that follow them, `cargo xtask
//! simulate` for the whole answer path.
//!
//! The simulations are tests, with few seeds. Their long form takes the seeds from the environment.

use std::process::{Child, Command, ExitStatus};
use std::thread::available_parallelism;
use std::time::Instant;

use clap::{Arg, ArgAction, ArgMatches};

use crate::{Failed, root};

/// Packages with a simulation, and its ignored test.
const SIMULATIONS: [(&str, &str); 2] =
    [("portolan-listwatch", "sources_simulation::many_schedules"), ("portolan-relay", "simulation::many_schedules")];
/// Simulation of the whole answer path.
const WHOLE: (&str, &str) = ("portolan-simulation", "tests::many_seeds");
/// Test that looks for the planted bugs, and the feature of the package that has them.
const PLANTED: (&str, &str) = ("tests::finds_the_planted_bugs", "planted");

/// Returns the command lines of `schedules` and `simulate`.
pub(crate) fn commands() -> [clap::Command; 2] {
    [
        schedules(),
        with_seeds(clap::Command::new("simulate"), "2000")
            .about("Run the simulation of the whole answer path in virtual time, with as many seeds as wanted")
            .arg(
                Arg::new("planted")
                    .long("planted")
                    .action(ArgAction::SetTrue)
                    .help("Look for the planted bugs instead, and print the first seed that finds each of them"),
            ),
    ]
}

fn with_seeds(command: clap::Command, default: &'static str) -> clap::Command {
    let number = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name).long(name).default_value(default).value_parser(clap::value_parser!(u64)).help(help)
    };
    command.arg(number("seeds", default, "Number of seeds")).arg(number("from", "1", "First seed"))
}

fn schedules() -> clap::Command {
    with_seeds(clap::Command::new("schedules"), "10000")
        .about("Run random schedules of relays and their clients in virtual time, as many as wanted")
        .arg(
            Arg::new("only")
                .long("only")
                .value_parser(SIMULATIONS.map(|(package, _)| package))
                .help("Run the simulation of this package alone"),
        )
}

/// Runs the simulations of relays and their clients, each on all processors.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let only = options.get_one::<String>("only");
    let wanted = SIMULATIONS.iter().filter(|(package, _)| only.is_none_or(|only| only == package));
    wanted.copied().try_for_each(|simulation| run_seeds(simulation, options))
}

/// Runs the simulation of the whole answer path on all processors, or looks for the planted bugs.
pub(crate) fn simulate(options: &ArgMatches) -> Result<(), Failed> {
    if !options.get_flag("planted") {
        return run_seeds(WHOLE, options);
    }
    let (test, feature) = PLANTED;
    let mut command = cargo_test(WHOLE.0);
    command.args(["--features", feature]);
    let ended = ignored_test(&mut command, test, (seed(options, "from"), seed(options, "seeds"))).status();
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("a planted bug was not found".to_owned()),
        Err(error) => Err(format!("cargo test: {error}")),
    }
}

fn run_seeds((package, test): (&str, &str), options: &ArgMatches) -> Result<(), Failed> {
    let (from, seeds) = (seed(options, "from"), seed(options, "seeds").max(1));
    let built = cargo_test(package).arg("--no-run").status().map_err(|error| format!("cargo test: {error}"))?;
    if !built.success() {
        return Err(format!("{package} cannot be built"));
    }
    let start = Instant::now();
    run_parts(package, test, &parts(from, seeds))?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{package}: {seeds} seeds from {from} in {seconds:.1} s");
    Ok(())
}

fn seed(options: &ArgMatches, name: &str) -> u64 {
    options.get_one::<u64>(name).copied().unwrap_or(1)
}

/// Divides seeds among the processors: the first seed and the number of each part.
fn parts(from: u64, seeds: u64) -> Vec<(u64, u64)> {
    let jobs = available_parallelism().map_or(1, |jobs| jobs.get() as u64).min(seeds);
    let begin = |job: u64| from + seeds * job / jobs;
    (0..jobs).map(|job| (begin(job), begin(job + 1) - begin(job))).collect()
}

fn run_parts(package: &str, test: &str, parts: &[(u64, u64)]) -> Result<(), Failed> {
    let start = |part: &(u64, u64)| {
        let mut command = cargo_test(package);
        ignored_test(&mut command, test, *part).spawn().map_err(|error| format!("cargo test: {error}"))
    };
    let jobs = parts.iter().map(start).collect::<Result<Vec<Child>, Failed>>()?;
    // All of them end before the result is known, so that none is left behind.
    let ended: Vec<_> = jobs.into_iter().map(|mut job| job.wait()).collect();
    let failed = ended.iter().filter(|status| !status.as_ref().is_ok_and(ExitStatus::success)).count();
    if failed == 0 { Ok(()) } else { Err(format!("{package}: {failed} of {} parts have failed", parts.len())) }
}

/// Selects an ignored test, with the first seed and the number of seeds.
fn ignored_test<'c>(command: &'c mut Command, test: &str, (from, seeds): (u64, u64)) -> &'c mut Command {
    command.args(["--", "--ignored", "--nocapture", test]);
    command.env("SCHEDULES_FROM", from.to_string()).env("SCHEDULES", seeds.to_string())
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
