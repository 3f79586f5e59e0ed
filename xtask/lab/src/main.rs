//! A real Kubernetes node on this machine: `cargo xtask cluster`.
#![allow(clippy::disallowed_methods, reason = "this program reads files and runs other programs")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]

mod cluster;

use std::process::ExitCode;

use clap::Command;

fn main() -> ExitCode {
    let command =
        Command::new("cargo xtask").bin_name("cargo xtask").subcommand_required(true).subcommand(cluster::command());
    xtask::exit_code(match command.get_matches().subcommand() {
        Some((_, options)) => cluster::run(options),
        None => Ok(()),
    })
}
