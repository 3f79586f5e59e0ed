//! Command lines of the programs that modes replace: common flags, usage errors, and the definitions for clap, which
//! writes the help, the man page and the completions.
#![allow(clippy::print_stderr, reason = "a command prints to its user")]

use std::process::ExitCode;

use clap::{Arg, ArgAction};
use compat::kube_dns::{CommandLine, Container, Flag, FlagError};

use process::log::Format;

/// Exit code of pflag for a command line that it cannot parse.
const USAGE_ERROR: u8 = 2;

/// Returns the value of `--log-format`.
pub(crate) fn log_format(words: &CommandLine) -> Result<Format, FlagError> {
    let name = words.last("log-format").unwrap_or("text");
    Format::by_name(name).ok_or_else(|| FlagError::Value("log-format", name.to_owned(), "`text` or `json`"))
}

/// Prints a usage error and returns its exit code.
pub(crate) fn usage_error(problem: &FlagError) -> ExitCode {
    eprintln!("{problem}");
    ExitCode::from(USAGE_ERROR)
}

/// Returns the clap definition of a flag.
pub(crate) fn argument(flag: &'static Flag) -> Arg {
    let help = flag.replacement.map_or_else(|| flag.help.to_owned(), |replacement| format!("Accepted; {replacement}"));
    let heading = match flag.container {
        Container::KubeDns => "Flags of kube-dns",
        Container::Nanny => "Flags of dnsmasq-nanny",
        Container::Sidecar => "Flags of the sidecar",
        Container::Log => "Logging flags",
        Container::Own => "Options",
    };
    let argument = Arg::new(flag.name).long(flag.name).help(help).help_heading(heading);
    if flag.value.is_empty() { argument.action(ArgAction::SetTrue) } else { argument.value_name(flag.value) }
}
