//! `portolan status`.

use std::time::{Duration, Instant};

use clap::{Arg, ArgMatches};
use control::status::{Replica, Status};
use control::{Endpoint, exit};
use futures_util::future::join_all;

use super::{CommonOptions, command, json, print, read_duration, service};
use crate::client::{ControlError, Socket, runtime};
use inspect::replica::corefile_hash;

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
        .value_parser(read_duration)
        .help("Wait at most this long, such as `60s`, until there is no problem");
    command(NAME, "Show the state of the running server on one screen")
        .long_about(
            "Show the state of the running server on one screen: configuration, view of the cluster, answers, \
             upstreams, cache, limits, memory and CPU. With --all, a line for each replica of the cluster DNS, and \
             the problems of all. Exits with 0 if there is no problem, with 1 if there is one, with 2 if the server \
             could not be asked, and with 3 if a replica could not be asked.",
        )
        .args(service::options())
        .arg(json())
        .arg(wait)
}

impl Options {
    pub(super) fn read(matches: &ArgMatches) -> Options {
        Options { wait: matches.get_one("wait").copied() }
    }

    /// Refuses what only one server can be asked for.
    pub(super) fn check_all(&self) -> Result<(), ControlError> {
        match self.wait {
            None => Ok(()),
            Some(_) => Err(ControlError::Refused("`--wait` waits for one server; leave out `--all`".to_owned())),
        }
    }
}

pub(super) fn run(own: &Options, options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    let mut status = wait_for(own.wait.unwrap_or_default(), socket)?;
    ask_replicas(&mut status.replicas)?;
    status.compare_replicas();
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

/// Asks the other replicas for the hashes of their configurations, all at the same time.
fn ask_replicas(replicas: &mut [Replica]) -> Result<(), ControlError> {
    let asked = replicas.iter_mut().filter(|replica| !replica.own).map(async |replica| {
        let Ok(address) = replica.metrics.parse() else { return };
        match corefile_hash(address).await {
            Ok(hash) => replica.hash = Some(hash),
            Err(error) => replica.error = Some(error.to_string()),
        }
    });
    runtime()?.block_on(join_all(asked));
    Ok(())
}
