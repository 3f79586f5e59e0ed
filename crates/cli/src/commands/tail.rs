//! `portolan tail`.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches};
use control::tail::{FAILURES_KEPT, Format, Line, SECONDS_MAX};
use control::{Endpoint, exit};

use super::{CommonOptions, command, json, print_bytes, read_duration, read_number, service};
use crate::client::{ControlError, Socket};

pub(super) const NAME: &str = "tail";

/// Filters whose values go to the server as they are: name, value name, help.
const FILTERS: [(&str, &str, &str); 6] = [
    ("name", "NAMES", "Names, or `*.NAME` for all names below"),
    ("zone", "ZONES", "Zones: the names themselves and all names below"),
    ("type", "TYPES", "Record types"),
    ("rcode", "RCODES", "Response codes, or `DROPPED` for no response"),
    ("plugin", "PLUGINS", "Plugins that answered or failed"),
    ("client", "ADDRESSES", "Addresses of clients, or networks such as 10.0.0.0/8"),
];

/// Options of the command.
#[derive(Debug)]
pub(super) struct Options {
    parameters: Vec<(&'static str, String)>,
    format: Format,
}

pub(super) fn definition() -> clap::Command {
    let filters = FILTERS.map(|(name, value, help)| Arg::new(name).long(name).value_name(value).help(help));
    let format = Arg::new("output")
        .long("output")
        .short('o')
        .value_name("FORMAT")
        .value_parser(Format::ALL.map(Format::name))
        .default_value(Format::Line.name())
        .help("Format of the lines");
    command(NAME, "Show queries and their answers while they happen, or the last failures")
        .long_about(
            "Show queries and their answers while they happen, with the pods that ask, or the last failures from before \
             this command started. A value of a filter is a list with commas; `!` before it selects all others. If more \
             queries match than can be shown, the output says which part it shows. With --all, the lines are those of all \
             replicas of the cluster DNS, each with its replica, and the exit status is 3 if one could not be asked.",
        )
        .args(service::options())
        .args(filters)
        .arg(Arg::new("namespace").long("namespace").short('n').value_name("NAMESPACE").help("Namespace of the client"))
        .arg(
            Arg::new("pod")
                .long("pod")
                .value_name("POD")
                .help("Pod of the client, or Service that it is an endpoint of: NAMESPACE/NAME, or NAME with --namespace"),
        )
        .arg(
            Arg::new("slow")
                .long("slow")
                .value_name("DURATION")
                .value_parser(read_duration)
                .help("Only queries that took at least this long, such as `10ms`"),
        )
        .arg(
            Arg::new("sample")
                .long("sample")
                .value_name("1/N")
                .value_parser(read_sample)
                .help("Show one of N queries"),
        )
        .arg(
            Arg::new("last")
                .long("last")
                .value_name("NUMBER")
                .value_parser(|text: &str| read_number(text, FAILURES_KEPT))
                .help("Show this number of recorded failures, and end; with --follow, continue with live queries"),
        )
        .arg(Arg::new("follow").long("follow").short('f').action(ArgAction::SetTrue).help("Continue after --last"))
        .arg(
            Arg::new("for")
                .long("for")
                .value_name("DURATION")
                .value_parser(read_limit)
                .help("End after this time, at most an hour"),
        )
        .arg(format)
        .arg(json().help("Same as `--output json`"))
}

/// Reads the duration of a stream.
fn read_limit(text: &str) -> Result<Duration, &'static str> {
    let limit = read_duration(text).ok().filter(|limit| (1..=SECONDS_MAX).contains(&whole_seconds(*limit)));
    limit.ok_or("expected a duration from 1s to 1h")
}

/// Returns the duration in seconds, rounded up.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

/// Reads `1/100`.
fn read_sample(text: &str) -> Result<String, &'static str> {
    let every = text.strip_prefix("1/").filter(|every| every.parse::<u32>().is_ok_and(|every| every > 0));
    every.map(str::to_owned).ok_or("expected 1/N with a number N, such as 1/100")
}

impl Options {
    pub(super) fn read(matches: &ArgMatches) -> Options {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let mut parameters: Vec<(&'static str, String)> =
            FILTERS.iter().filter_map(|(name, ..)| Some((*name, text(name)?))).collect();
        let (namespace, pod) = match (text("namespace"), text("pod")) {
            (None, Some(pod)) => match pod.split_once('/') {
                Some((namespace, name)) => (Some(namespace.to_owned()), Some(name.to_owned())),
                None => (None, Some(pod)),
            },
            both => both,
        };
        let seconds = |name: &str| matches.get_one::<Duration>(name).copied();
        let optional = [
            ("namespace", namespace),
            ("pod", pod),
            ("slow", seconds("slow").map(|slow| slow.as_secs_f64().to_string())),
            ("sample", text("sample")),
            ("seconds", seconds("for").map(|limit| whole_seconds(limit).to_string())),
        ];
        parameters.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
        if let Some(last) = matches.get_one::<usize>("last") {
            parameters.push(("last", last.to_string()));
            parameters.push(("follow", matches.get_flag("follow").to_string()));
        }
        let name = text("output").unwrap_or_default();
        let format = Format::ALL.into_iter().find(|format| format.name() == name).unwrap_or_default();
        Options { parameters, format }
    }

    fn value(&self, wanted: &str) -> Option<&String> {
        self.parameters.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }

    /// Refuses a pod without its namespace.
    pub(super) fn check(&self) -> Result<(), ControlError> {
        match (self.value("pod"), self.value("namespace")) {
            (Some(pod), None) => Err(ControlError::NoNamespace(pod.clone())),
            _ => Ok(()),
        }
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Returns true if only recorded failures are shown.
    pub(super) fn is_record(&self) -> bool {
        self.value("follow").is_some_and(|follow| follow == "false")
    }

    /// Returns the time after which the stream ends.
    pub(super) fn duration(&self) -> Option<Duration> {
        self.value("seconds").and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs)
    }

    /// Returns the maximum number of recorded failures.
    pub(super) fn last(&self) -> usize {
        self.value("last").and_then(|last| last.parse().ok()).unwrap_or(FAILURES_KEPT)
    }

    /// Returns the command for one replica.
    pub(super) fn words(&self) -> Vec<String> {
        let option = |(name, value): &(&str, String)| match (*name, value.as_str()) {
            ("follow", "false") => None,
            ("follow", _) => Some("--follow".to_owned()),
            ("slow", seconds) => Some(format!("--slow={seconds}s")),
            ("seconds", seconds) => Some(format!("--for={seconds}s")),
            (name, value) => Some(format!("--{name}={value}")),
        };
        let options = self.parameters.iter().filter_map(option);
        [NAME, "--json"].map(str::to_owned).into_iter().chain(options).collect()
    }
}

/// Notice for a record without a failure that the filters select.
const NO_FAILURE: &str = "no recorded failure matches. The server records SERVFAIL, REFUSED, FORMERR, NOTIMP, and queries \
    that were truncated, dropped or took a second; `portolan tail` without `--last` shows all other answers, such as NXDOMAIN, \
    while they happen";

#[allow(clippy::print_stderr, reason = "a command prints to its user")]
pub(super) fn run(own: &Options, options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    own.check()?;
    let parameters: Vec<(&str, &str)> = own.parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let format = if options.json { Format::Json } else { own.format };
    let (mut is_empty, mut printed) = (true, Ok(()));
    socket.stream(Endpoint::Events, &parameters, |line: Line| {
        is_empty = false;
        print_bytes((line.text(format) + "\n").as_bytes()).unwrap_or_else(|error| {
            printed = Err(error);
            false
        })
    })?;
    printed?;
    if is_empty && own.is_record() {
        eprintln!("{NO_FAILURE}");
    }
    Ok(exit::FINE)
}
