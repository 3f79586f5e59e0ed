//! `portolan requests`.

use control::requests::Requests;
use control::{Endpoint, exit};

use super::{CommonOptions, command, json, print, service};
use crate::client::{ControlError, Socket};

pub(super) const NAME: &str = "requests";

pub(super) fn definition() -> clap::Command {
    command(NAME, "Show the queries that wait for an upstream, oldest first")
        .long_about(
            "Show the queries that wait for an upstream, oldest first. Identical queries share one exchange. Exits with 0 if no \
             exchange is slow, with 1 if one takes longer than a second, and with 2 if the server could not be asked.",
        )
        .args(service::options())
        .arg(json())
}

pub(super) fn run(options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    let requests: Requests = socket.get(Endpoint::Requests, &[])?;
    print(options, &requests)?;
    Ok(if requests.slow == 0 { exit::FINE } else { exit::TROUBLE })
}
