//! `portolan shadow report`.

use control::shadow::{Comparison, Shadows};
use control::{Endpoint, exit};

use super::{CommonOptions, command, json, print, service};
use crate::client::{ControlError, Socket};

pub(super) const NAME: &str = "shadow";
/// Name of the subcommand.
pub(super) const REPORT: &str = "report";

pub(super) fn definition() -> clap::Command {
    let report = command(REPORT, "Show how the answers differ from those of the other server")
        .long_about(
            "Show how the answers differ from those of the other server: the share of equal answers, and groups of \
             differences with examples. Exits with 0 if no answer differs, with 1 if answers differ in a way that is \
             not known or the configuration has no such comparison, and with 2 if the server could not be asked.",
        )
        .args(service::options())
        .arg(json());
    command(NAME, "Compare the running server with the DNS server that it replaces (directive shadow)")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(report)
}

pub(super) fn run(options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    let shadows: Shadows = socket.get(Endpoint::Shadow, &[])?;
    print(options, &shadows)?;
    let is_fine = !shadows.comparisons.is_empty() && !shadows.comparisons.iter().any(Comparison::has_differences);
    Ok(if is_fine { exit::FINE } else { exit::TROUBLE })
}
