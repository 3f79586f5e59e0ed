//! Text that is generated from the code, and the comparison of what it documents with CoreDNS: `cargo xtask gen` and
//! `cargo xtask parity`.
#![allow(clippy::disallowed_methods, reason = "this program reads files and runs other programs")]
#![allow(clippy::print_stdout, reason = "a command prints its result")]

mod generate;
mod man;
mod markdown;
mod monitoring;
mod parity;

use std::process::ExitCode;

use clap::Command;

fn main() -> ExitCode {
    let command = Command::new("cargo xtask")
        .bin_name("cargo xtask")
        .subcommand_required(true)
        .subcommand(generate::command())
        .subcommand(generate::release_command())
        .subcommand(parity::command());
    xtask::exit_code(match command.get_matches().subcommand() {
        Some(("gen", options)) => generate::run(options.get_flag("check")),
        Some(("release-texts", options)) => generate::write_release_texts(options),
        Some(("parity", options)) => parity::run(options),
        _ => Ok(()),
    })
}
