//! The keeper: first process of the container, which holds the DNS sockets of the server and starts it again.
//!
//! When a process ends, the kernel closes its sockets and drops the queries in their queues. From then on, the kernel
//! refuses each query to that address. So the keeper holds a copy of each socket. If the server crashes, queries wait
//! in the kernel until the next server, which gets the same sockets, answers them.
//!
//! - `record`, `link`: packets of one size between the keeper and the server.
//! - `held`: the sockets.
//! - `policy`: when the server is started again.
//! - `watchdog`, `usage`: ends a server that hangs, but not one that gets no CPU.
//! - `keeper`, `server`: the loop, and one run of the server.
//!
//! The keeper reads nothing from outside: only its command line, records from its own child, and files of the kernel.
//! For a small memory footprint, it has one thread and few dependencies. The server uses `Record` and `Link` of this
//! crate.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is the edge: it starts a program, asks the time and reads files of the kernel"
)]

mod command_line;
mod held;
mod keeper;
mod link;
mod log;
mod policy;
mod record;
mod server;
mod usage;
mod watchdog;

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use command_line::CommandLine;
use keeper::Keeper;
use log::Level;
use rustix::process::{Resource, getrlimit, setrlimit};

pub use link::{Link, Received, VARIABLE};
pub use record::{RECORD_SIZE, Record, SOCKETS_MAX, TEXT_MAX};
pub use watchdog::BEAT;

/// Exit code if the server's program cannot be started, as in shells.
const NOT_STARTED: u8 = 127;

/// Keeps the server that the command line names, and returns its exit code.
#[must_use]
pub fn main() -> ExitCode {
    let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/portolan-keeper"));
    let command = CommandLine::read(std::env::args_os().skip(1), &own);
    let outcome = if command.is_kept {
        raise_descriptor_limit();
        Keeper::new(command).and_then(|mut keeper| keeper.run())
    } else {
        Err(replace_by(&command))
    };
    match outcome {
        Ok(code) => code.into(),
        Err(error) => {
            log::write(false, Level::Error, format_args!("{error}"));
            NOT_STARTED.into()
        }
    }
}

/// Replaces this process by the server. Returns only if that fails.
fn replace_by(command: &CommandLine) -> io::Error {
    let error = Command::new(&command.program).args(&command.arguments).exec();
    io::Error::new(error.kind(), format!("{} cannot be started: {error}", command.program.display()))
}

/// Allows as many descriptors as the server, which does the same: each of its sockets is one here too.
fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A lower limit is enough for most servers.
    let _ = setrlimit(Resource::Nofile, limit);
}
