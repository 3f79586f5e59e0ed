//! Development tasks of the project:
//! `cargo xtask ci | gen | tidy | book | bench | fuzz | replay | parity | binary | image | release | cluster`.
#![allow(clippy::disallowed_methods, reason = "this program reads files and runs other programs")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]

mod archive;
mod arrows;
mod bench;
mod binary;
mod book;
mod ci;
mod cluster;
mod cycles;
mod dependencies;
mod errors;
mod fuzzing;
mod generate;
mod image;
mod man;
mod markdown;
mod monitoring;
mod parity;
mod prose;
mod release;
mod replay;
mod server;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command};

/// Error message of a failed task.
type Failed = String;

fn main() -> ExitCode {
    let matches = command().get_matches();
    let done = match matches.subcommand() {
        Some(("ci", _)) => ci::run(),
        Some(("gen", options)) => generate::run(options.get_flag("check")),
        Some(("bench", options)) => bench::run(options),
        Some(("fuzz", options)) => fuzzing::run(options),
        Some(("replay", options)) => replay::run(options),
        Some(("parity", options)) => parity::run(options),
        Some(("binary", options)) => binary::run(options),
        Some(("book", options)) => book::run(options),
        Some(("image", options)) => image::run(options),
        Some(("release", options)) => release::run(options),
        Some(("cluster", options)) => cluster::run(options),
        Some(("respond", options)) => bench::respond(options),
        Some(("load", options)) => bench::load(options),
        Some(("clients", options)) => bench::clients(options),
        Some(("tidy", _)) => tidy::run().and_then(|()| arrows::run()).and_then(|()| cycles::run()),
        _ => Ok(()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn command() -> Command {
    Command::new("xtask")
        .about("Development tasks of the project")
        .subcommand_required(true)
        .subcommand(
            Command::new("ci").about("Run all checks that a change must pass, from format and lints to fuzzing"),
        )
        .subcommand(
            Command::new("gen")
                .about("Write the text that is generated from the code: READMEs, man pages, completions, lists")
                .arg(
                    Arg::new("check").long("check").action(ArgAction::SetTrue).help("Only check that it is up to date"),
                ),
        )
        .subcommand(bench::command())
        .subcommand(fuzzing::command())
        .subcommand(replay::command())
        .subcommand(parity::command())
        .subcommand(binary::command())
        .subcommand(book::command())
        .subcommand(image::command())
        .subcommand(release::command())
        .subcommand(cluster::command())
        .subcommand(Command::new("respond").hide(true).arg(Arg::new("kind").required(true)))
        .subcommand(
            Command::new("load")
                .hide(true)
                .args(["port", "file", "milliseconds", "pace", "window"].map(|name| Arg::new(name).required(true))),
        )
        .subcommand(bench::client_command())
        .subcommand(
            Command::new("tidy")
                .about("Check file lengths, module docs, test names in docs, crate dependencies, import cycles"),
        )
}

/// Returns the root folder of the project.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, PathBuf::from)
}

/// Reads a file of the project.
fn read_bytes(path: &Path) -> Result<Vec<u8>, Failed> {
    std::fs::read(root().join(path)).map_err(|error| format!("{}: {error}", path.display()))
}
