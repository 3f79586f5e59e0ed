//! `portolan report`.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, value_parser};
use control::{Endpoint, exit};

use super::{command, print_bytes, print_text, service};
use crate::client::{ControlError, Socket};

pub(super) const NAME: &str = "report";

/// Options of the command.
#[derive(Debug)]
pub(super) struct Options {
    output: Option<PathBuf>,
}

pub(super) fn definition() -> clap::Command {
    let output =
        Arg::new("output").long("output").short('o').value_name("FILE").value_parser(value_parser!(PathBuf)).help(
            "File to write, `-` for standard output, the default unless it is a terminal; with --all a directory",
        );
    command(NAME, "Write an archive for a bug report, without secrets")
        .long_about(
            "Write an archive (tar with gzip) for a bug report: status, Corefile, metrics, waiting queries and the last lines of \
             the log. Values of options that may be secret are removed from the Corefile. Names of queries can be in the log \
             lines of failures and among the waiting queries.",
        )
        .arg(output)
        .args(service::options())
}

impl Options {
    pub(super) fn read(matches: &ArgMatches) -> Options {
        // `-` is also the default.
        Options { output: matches.get_one::<PathBuf>("output").filter(|path| *path != Path::new("-")).cloned() }
    }
}

impl Options {
    /// Returns the folder for the archives of several replicas.
    ///
    /// # Errors
    /// The option names something else.
    pub(super) fn folder(&self) -> Result<&Path, ControlError> {
        match &self.output {
            None => Ok(Path::new(".")),
            Some(folder) if folder.is_dir() => Ok(folder),
            Some(other) => Err(ControlError::Refused(format!(
                "with `--all`, `--output` is a directory for one archive of each replica; {} is no directory",
                other.display()
            ))),
        }
    }
}

pub(super) fn run(own: &Options, socket: &Socket) -> Result<u8, ControlError> {
    if own.output.is_none() && io::stdout().is_terminal() {
        let message = "standard output is a terminal; redirect it, or name a file with `--output`";
        return Err(ControlError::Io(io::Error::other(message)));
    }
    let archive = socket.request(Endpoint::Report, &[], Vec::new())?;
    match &own.output {
        Some(file) => {
            std::fs::write(file, &archive).map_err(|error| ControlError::File(file.clone(), error))?;
            print_text(&format!("wrote {} bytes to {}\n", archive.len(), file.display()))?;
        }
        None => drop(print_bytes(&archive)?),
    }
    Ok(exit::FINE)
}
