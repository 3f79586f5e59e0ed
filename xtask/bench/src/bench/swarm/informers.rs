//! Informers of client-go at a relay and at its API server: `cargo xtask informers`. Both must have the same objects,
//! after changes and after a restart of the relay.
//!
//! The informers are a program in Go, in `xtask/bench/informers`. The command is skipped if Go or its modules are
//! missing.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;

use clap::{Arg, ArgMatches};
use fakeapi::FakeApi;

use super::super::Folder;
use super::super::certificates::{AUTHORITY, Certificates, SERVER_NAME};
use super::issuer;
use super::objects::Slices;
use super::relay::Relay;
use xtask::{Failed, root, server};

/// Number of EndpointSlices, and of changes in each step.
const SLICES: usize = 300;
const CHANGES: usize = 500;

/// Returns the command line of `informers`.
pub(crate) fn command() -> clap::Command {
    clap::Command::new("informers")
        .about("Compare informers of client-go at a relay with those at the API server")
        .arg(Arg::new("server").long("server").help("Use this binary instead of a new release build"))
}

/// Compares the objects of the informers after each step.
///
/// # Errors
/// Objects that differ, or a problem of the test.
pub(crate) fn run(options: &ArgMatches) -> Result<(), Failed> {
    let folder = Folder::make("informers")?;
    let Some(program) = build(&folder)? else { return Ok(()) };
    let server = match options.get_one::<String>("server") {
        Some(path) => PathBuf::from(path),
        None => server::build("release")?,
    };
    let (api, certificates) = (Arc::new(FakeApi::start()), Certificates::make()?);
    let token = folder.path().join("token");
    std::fs::write(&token, issuer::token(&api)?).map_err(|error| format!("{}: {error}", token.display()))?;
    let mut slices = Slices::new(SLICES);
    slices.fill(&api);
    let mut relay = Relay::start(&server, api.url(), &certificates)?;
    let mut informers = Informers::start(
        Command::new(program)
            .args(["-api", api.url(), "-server-name", SERVER_NAME])
            .args(["-relay", &format!("https://127.0.0.1:{}", relay.port)])
            .arg("-ca")
            .arg(certificates.path(AUTHORITY))
            .arg("-token")
            .arg(&token),
    )?;
    informers.compare("after the start")?;
    api.put_all((0..CHANGES).map(|_| slices.change()));
    api.delete("services", "ns-0", "app-0");
    informers.compare("after changes")?;
    relay.stop()?;
    api.put_all((0..CHANGES).map(|_| slices.change()));
    api.delete("services", "ns-1", "app-1");
    relay.start_again()?;
    informers.compare("after changes during a restart of the relay")?;
    api.compact();
    api.drop_connections();
    api.put_all((0..CHANGES).map(|_| slices.change()));
    informers.compare("after broken connections and a compaction of the API server")
}

/// Builds the program, or returns `None` if that is not possible.
fn build(folder: &Folder) -> Result<Option<PathBuf>, Failed> {
    let program = folder.path().join("informers");
    let mut command = Command::new("go");
    command.args(["build", "-o"]).arg(&program).arg(".").current_dir(root().join("xtask/bench/informers"));
    match command.status() {
        Ok(status) if status.success() => Ok(Some(program)),
        Ok(_) => {
            eprintln!("skipped: the informers cannot be built; they need Go and its modules");
            Ok(None)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("skipped: `go` is not in the PATH");
            Ok(None)
        }
        Err(error) => Err(format!("go: {error}")),
    }
}

/// Running program, which is killed on drop.
struct Informers {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Informers {
    fn start(command: &mut Command) -> Result<Informers, Failed> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| format!("the informers do not start: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the informers have no pipes".to_owned());
        };
        Ok(Informers { child, input, output: BufReader::new(output) })
    }

    /// Waits until all informers have the same objects.
    fn compare(&mut self, when: &str) -> Result<(), Failed> {
        let mut line = String::new();
        let asked = writeln!(self.input).and_then(|()| self.output.read_line(&mut line));
        asked.map_err(|error| format!("the informers have ended: {error}"))?;
        let line = line.trim();
        println!("{when}: {line}");
        if line.starts_with("equal: ") { Ok(()) } else { Err(format!("{when}: {line}")) }
    }
}

impl Drop for Informers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
