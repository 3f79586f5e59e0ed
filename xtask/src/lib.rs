//! Development tasks of the project that need none of its crates: checks, the book, images and releases.
//!
//! The tasks that need some are programs of their own, so that a check of the text does not wait for a build of the
//! server: `xtask-text` (generated text, `parity`), `xtask-bench` (`bench`, `replay`), `xtask-specification`
//! (`specification`) and `xtask-lab` (`cluster`). They use this crate for what all have in common. `cargo xtask` runs
//! all of them.
#![allow(clippy::disallowed_methods, reason = "this program reads files and runs other programs")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command prints its result")]

pub mod archive;
mod arrows;
mod auditable;
pub mod binary;
mod book;
mod ci;
mod claims;
mod cycles;
mod dependencies;
mod errors;
mod fuzzing;
pub mod image;
mod programs;
mod prose;
mod release;
mod reproduce;
pub mod results;
mod sanitize;
mod schedules;
pub mod server;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, Command};

/// Error message of a failed task.
pub type Failed = String;

/// Version of the project, which all its packages have.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the definition of the command line of `cargo xtask`.
#[must_use]
pub fn command() -> Command {
    Command::new("xtask")
        .bin_name("cargo xtask")
        .about("Development tasks of the project")
        .subcommand_required(true)
        .subcommand(
            Command::new("ci").about("Run all checks that a change must pass, from format and lints to fuzzing"),
        )
        .subcommand(
            Command::new("tidy")
                .about("Check file lengths, module docs, test names in docs, crate dependencies, import cycles"),
        )
        .subcommand(book::command())
        .subcommand(fuzzing::command())
        .subcommand(binary::command())
        .subcommand(image::command())
        .subcommand(release::command())
        .subcommand(reproduce::command())
        .subcommand(sanitize::command())
        .subcommands(schedules::commands())
        .subcommands(programs::commands())
}

/// Runs the task that the command line names.
pub fn run(matches: &ArgMatches) -> Result<(), Failed> {
    match matches.subcommand() {
        Some(("ci", _)) => ci::run(),
        Some(("tidy", _)) => tidy::run().and_then(|()| arrows::run()).and_then(|()| cycles::run()),
        Some(("book", options)) => book::run(options),
        Some(("fuzz", options)) => fuzzing::run(options),
        Some(("binary", options)) => binary::run(options),
        Some(("image", options)) => image::run(options),
        Some(("release", options)) => release::run(options),
        Some(("reproduce", options)) => reproduce::run(options),
        Some(("sanitize", options)) => sanitize::run(options),
        Some(("schedules", options)) => schedules::run(options),
        Some(("simulate", options)) => schedules::simulate(options),
        Some((name, options)) => programs::run(name, options),
        None => Ok(()),
    }
}

/// Prints the error of a task that failed, and returns the exit code.
#[must_use]
pub fn exit_code(done: Result<(), Failed>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("{what}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the root folder of the project.
#[must_use]
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, PathBuf::from)
}

/// Reads a file of the project.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Failed> {
    std::fs::read(root().join(path)).map_err(|error| format!("{}: {error}", path.display()))
}
