//! `portolan status`.

use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches};
use config::options::parse_duration;
use control::status::Status;
use control::{Endpoint, exit};

use super::{CommonOptions, command, json, print};
use crate::control::client::{ControlError, Socket};

pub(super) const NAME: &str = "status";
/// Interval between attempts with `--wait`.
const ATTEMPT_EVERY: Duration = Duration::from_millis(200);

/// Options of the command.
#[derive(Debug)]
pub(super) struct Options {
    wait: Option<Duration>,
}

pub(super) fn definition() -> clap::Command {
    let wait = Arg::new("wait")
        .long("wait")
        .value_name("DURATION")
        .value_parser(parse_duration)
        .help("Wait at most this long, such as `60s`, until there is no problem");
    command(NAME, "Show the state of the running server on one screen")
        .long_about(
            "Show the state of the running server on one screen: configuration, view of the cluster, answers, upstreams, \
             cache, limits, memory and CPU. Exits with 0 if there is no problem, with 1 if there is one, and with 2 if the \
             server could not be asked.",
        )
        .arg(json())
        .arg(wait)
}

impl Options {
    pub(super) fn read(matches: &ArgMatches) -> Options {
        Options { wait: matches.get_one("wait").copied() }
    }
}

pub(super) fn run(own: &Options, options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    let status = wait_for(own.wait.unwrap_or_default(), socket)?;
    print(options, &status)?;
    Ok(if status.is_fine() { exit::FINE } else { exit::TROUBLE })
}

/// Asks until there is no problem, or the time is up.
fn wait_for(limit: Duration, socket: &Socket) -> Result<Status, ControlError> {
    let end = Instant::now() + limit;
    loop {
        let status: Result<Status, ControlError> = socket.get(Endpoint::Status, &[]);
        let is_fine = status.as_ref().is_ok_and(Status::is_fine);
        if is_fine || Instant::now() + ATTEMPT_EVERY > end {
            return status;
        }
        std::thread::sleep(ATTEMPT_EVERY);
    }
}
