//! Measurements and comparisons of answers: `cargo xtask bench`, `swarm`, `replay`, `respdiff` and `torture`.
#![allow(clippy::disallowed_methods, reason = "this program reads files and runs other programs")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]

mod bench;
mod random;
mod replay;
mod respdiff;
mod torture;

use std::process::ExitCode;

use clap::{Arg, Command};

fn main() -> ExitCode {
    let done = match command().get_matches().subcommand() {
        Some(("bench", options)) => bench::run(options),
        Some(("swarm", options)) => bench::swarm::run(options),
        Some(("informers", options)) => bench::swarm::informers::run(options),
        Some(("replay", options)) => replay::run(options),
        Some(("respdiff", options)) => respdiff::run(options),
        Some(("guarded", options)) => respdiff::guarded(options),
        Some(("torture", options)) => torture::run(options),
        Some(("respond", options)) => bench::respond(options),
        Some(("load", options)) => bench::load(options),
        Some(("clients", options)) => bench::clients(options),
        _ => Ok(()),
    };
    xtask::exit_code(done)
}

/// Returns the definition of the command line. The hidden subcommands are processes of a measurement.
fn command() -> Command {
    Command::new("cargo xtask")
        .bin_name("cargo xtask")
        .about("Measurements, and the replay of recorded answers")
        .subcommand_required(true)
        .subcommand(bench::command())
        .subcommand(bench::swarm::command())
        .subcommand(bench::swarm::informers::command())
        .subcommand(replay::command())
        .subcommand(respdiff::command())
        .subcommand(respdiff::guarded_command())
        .subcommand(torture::command())
        .subcommand(Command::new("respond").hide(true).arg(Arg::new("kind").required(true)))
        .subcommand(
            Command::new("load")
                .hide(true)
                .args(["port", "file", "milliseconds", "pace", "window"].map(|name| Arg::new(name).required(true))),
        )
        .subcommand(bench::client_command())
}
