//! Commands that use the control API, one module each: their command line, the request and the output.

mod all;
mod cache;
mod doctor;
mod explain;
mod loglevel;
mod ready;
mod reload;
mod report;
mod requests;
mod screen;
mod service;
mod shadow;
mod status;
mod tail;
mod top;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, value_parser};
use config::Directives;
use config::options::parse_duration;
use control::exit;
use serde::Serialize;

use super::all_error::AllError;
use super::client::{ControlError, ServerOptions, Socket};

/// Command that uses the control API.
#[derive(Debug)]
pub struct ControlCommand {
    options: CommonOptions,
    request: Request,
    /// Service whose replicas are all asked, in place of one server.
    all: Result<Option<service::Service>, AllError>,
}

/// Options of all commands.
#[derive(Debug)]
struct CommonOptions {
    server: ServerOptions,
    json: bool,
}

#[derive(Debug)]
enum Request {
    Status(status::Options),
    Ready,
    Explain(explain::Options),
    Cache(cache::Options),
    Reload,
    LogLevel(loglevel::Options),
    Requests,
    Shadow,
    Tail(tail::Options),
    Top(top::Options),
    Report(report::Options),
    Doctor(doctor::Options),
}

/// Returns the definitions for clap.
pub fn definitions() -> impl Iterator<Item = clap::Command> {
    [
        status::definition(),
        ready::definition(),
        explain::definition(),
        cache::definition(),
        reload::definition(),
        loglevel::definition(),
        requests::definition(),
        shadow::definition(),
        tail::definition(),
        top::definition(),
        report::definition(),
        doctor::definition(),
    ]
    .into_iter()
}

/// Reads a command of this module, if the command line has one.
///
/// `is_plugin` is true for a command line of `kubectl portolan`.
pub fn read(matches: &ArgMatches, is_plugin: bool) -> Option<ControlCommand> {
    let (name, matches) = matches.subcommand()?;
    let request = match name {
        status::NAME => Request::Status(status::Options::read(matches)),
        ready::NAME => Request::Ready,
        explain::NAME => Request::Explain(explain::Options::read(matches)?),
        cache::NAME => Request::Cache(cache::Options::read(matches)?),
        reload::NAME => Request::Reload,
        loglevel::NAME => Request::LogLevel(loglevel::Options::read(matches)),
        requests::NAME => Request::Requests,
        shadow::NAME => Request::Shadow,
        tail::NAME => Request::Tail(tail::Options::read(matches)),
        top::NAME => Request::Top(top::Options::read(matches)),
        doctor::NAME => Request::Doctor(doctor::Options::read(matches)),
        report::NAME => Request::Report(report::Options::read(matches)),
        _ => return None,
    };
    // The options may be those of a subcommand: `cache get`.
    let inner = matches.subcommand().map_or(matches, |(_, inner)| inner);
    let server = ServerOptions {
        socket: inner.try_get_one("socket").ok().flatten().cloned(),
        certificate: inner.try_get_one("cert").ok().flatten().cloned(),
        key: inner.try_get_one("key").ok().flatten().cloned(),
        authorities: inner.try_get_one("ca").ok().flatten().cloned(),
    };
    let json = inner.try_get_one("json").ok().flatten().copied().unwrap_or(false);
    Some(ControlCommand { options: CommonOptions { server, json }, request, all: service::service(inner, is_plugin) })
}

/// Runs a command. Exits with 0 if all is well, with 1 if the server reports trouble, with 2 if it could not be asked,
/// and with 3 if some of several servers could not be asked.
#[allow(clippy::print_stderr, reason = "a command prints to its user")]
#[must_use]
pub fn control(command: &ControlCommand, directives: Directives) -> ExitCode {
    let ControlCommand { options, request, all } = command;
    let offline = match (request, all) {
        (_, Err(error)) => Some(Err(ControlError::All(error.clone()))),
        (_, Ok(Some(service))) => all::run(request, options.json, service),
        (Request::Explain(own), _) => own.run_offline(directives),
        (Request::Doctor(own), _) => Some(own.run(options, directives)),
        _ => None,
    };
    let ask = |socket: Socket| match request {
        Request::Status(own) => status::run(own, options, &socket),
        Request::Ready => ready::run(options, &socket),
        Request::Explain(own) => explain::run(own, &socket),
        Request::Cache(own) => cache::run(own, options, &socket),
        Request::Reload => reload::run(options, &socket),
        Request::LogLevel(own) => loglevel::run(own, options, &socket),
        Request::Requests => requests::run(options, &socket),
        Request::Shadow => shadow::run(options, &socket),
        Request::Tail(own) => tail::run(own, options, &socket),
        Request::Top(own) => top::run(own, options, &socket),
        Request::Report(own) => report::run(own, &socket),
        Request::Doctor(own) => own.run(options, directives),
    };
    let outcome = offline.unwrap_or_else(|| Socket::find(&options.server).and_then(ask));
    match outcome {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("{error}");
            exit::NOT_ASKED.into()
        }
    }
}

/// Returns a command with the options that all have.
fn command(name: &'static str, about: &'static str) -> clap::Command {
    let socket = Arg::new("socket").long("socket").value_name("SOCKET").global(true).help(
        "Control socket: a path, `@NAME`, or `http://` or `https://` and an address [default: of the server \
               that runs here]",
    );
    let file = |name: &'static str, help: &'static str| {
        let file = Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf));
        // `-h` is short; `--help` and the manual pages have all options.
        file.global(true).hide_short_help(true).long_help(help)
    };
    clap::Command::new(name)
        .about(about)
        .arg(socket)
        .arg(file("cert", "Client certificate for `https://`, in PEM format").requires("key"))
        .arg(file("key", "Key of the client certificate").requires("cert"))
        .arg(file(
            "ca",
            "CA certificates that the server's certificate is verified with [default: those of the system]",
        ))
}

/// Returns the option for output as JSON.
fn json() -> Arg {
    Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print the response of the server as JSON")
}

/// Reads a duration such as `1h20m`. Unlike in a Corefile, it may have days, as in the output: `1d`, `1d12h`.
fn read_duration(text: &str) -> Result<Duration, &'static str> {
    let expected = "expected a duration such as `30s`, `1h20m` or `1d`";
    let (days, rest) = match text.split_once('d') {
        Some((days, rest)) => (days.parse::<u32>().map_err(|_| expected)?, Some(rest).filter(|rest| !rest.is_empty())),
        None => (0, Some(text)),
    };
    let rest = rest.map_or(Ok(Duration::ZERO), parse_duration).map_err(|_| expected)?;
    (DAY * days).checked_add(rest).ok_or(expected)
}

/// Reads a whole number from 1 to `max`.
fn read_number(text: &str, max: usize) -> Result<usize, NumberError> {
    text.parse().ok().filter(|number| (1..=max).contains(number)).ok_or(NumberError(max))
}

/// Text that is no number from 1 to this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a whole number from 1 to {0}")]
struct NumberError(usize);

const DAY: Duration = Duration::from_secs(86_400);

/// Prints a response.
fn print(options: &CommonOptions, value: &(impl Display + Serialize)) -> Result<(), ControlError> {
    print_text(&if options.json { as_json(value)? } else { value.to_string() })
}

/// Formats a response as JSON.
fn as_json(value: &impl Serialize) -> Result<String, ControlError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| ControlError::Response(error.to_string()))?;
    Ok(text + "\n")
}

/// Prints a text.
fn print_text(text: &str) -> Result<(), ControlError> {
    print_bytes(text.as_bytes()).map(drop)
}

/// Prints a part of the output. Returns false if its reader, such as `head`, has closed the pipe.
fn print_bytes(bytes: &[u8]) -> Result<bool, ControlError> {
    let mut stdout = io::stdout();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(ControlError::Output(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_up_to_a_maximum() {
        assert_eq!((read_number("1", 9), read_number("9", 9)), (Ok(1), Ok(9)));
        for text in ["0", "10", "x", "", "-1", "1.5"] {
            let error = read_number(text, 9).expect_err(text);
            assert_eq!(error.to_string(), "expected a whole number from 1 to 9");
        }
    }

    #[test]
    fn reads_durations_with_days() {
        for (text, seconds) in [("1d", 86_400), ("1d12h", 129_600), ("0d", 0), ("90s", 90), ("1h20m", 4800)] {
            assert_eq!(read_duration(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "d", "-1d", "1d-1s", "1dd", "1 d", "1d2", "1w", "99999999999d"] {
            assert!(read_duration(text).is_err(), "{text}");
        }
    }
}
