//! `portolan ready`.

use control::ready::Readiness;
use control::{Endpoint, exit};

use super::{CommonOptions, command, json, print, service};
use crate::client::{ControlError, Socket};

pub(super) const NAME: &str = "ready";

pub(super) fn definition() -> clap::Command {
    command(NAME, "Check if this server is ready, for an exec probe")
        .long_about(
            "Check if the server in this container is ready: all directives are ready, and all worker threads respond. For \
             readiness probes of type exec. Unlike the port of a readiness endpoint, the control socket belongs to one \
             process, also on the network of the node. Exits with 0 if the server is ready, with 1 if it is not, and with 2 \
             if it could not be asked.",
        )
        .args(service::options())
        .arg(json())
}

pub(super) fn run(options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    let readiness: Readiness = socket.get(Endpoint::Ready, &[])?;
    print(options, &readiness)?;
    Ok(if readiness.is_ready() { exit::FINE } else { exit::TROUBLE })
}
