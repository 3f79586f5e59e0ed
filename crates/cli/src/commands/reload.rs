//! `portolan reload`.

use control::reload::Reloaded;
use control::{Endpoint, exit};

use super::{CommonOptions, command, json, print, service};
use crate::client::{ControlError, Socket};

pub(super) const NAME: &str = "reload";

pub(super) fn definition() -> clap::Command {
    command(NAME, "Reload the Corefile and wait for the outcome")
        .long_about(
            "Reload the Corefile, like SIGUSR1, and wait until it serves or is rejected. Exits with 0 if it serves, with 1 if \
             it is rejected and the old one continues to serve, and with 2 if the server could not be asked.",
        )
        .args(service::options())
        .arg(json())
}

pub(super) fn run(options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    let reloaded: Reloaded = socket.post(Endpoint::Reload, &())?;
    print(options, &reloaded)?;
    Ok(if reloaded.applied { exit::FINE } else { exit::TROUBLE })
}
