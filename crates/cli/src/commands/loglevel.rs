//! `portolan loglevel`.

use std::time::Duration;

use clap::{Arg, ArgMatches};
use control::log::{Level, Levels, SetLevel};
use control::{Endpoint, exit};

use super::{CommonOptions, command, json, print, read_duration, service};
use crate::client::{ControlError, Socket};

pub(super) const NAME: &str = "loglevel";

/// Options of the command.
#[derive(Debug)]
pub(super) struct Options {
    change: Option<SetLevel>,
}

pub(super) fn definition() -> clap::Command {
    let level = Arg::new("level")
        .value_name("PLUGIN=LEVEL")
        .value_parser(read_level)
        .help("Plugin, or `portolan` for the server itself, and `error`, `warning`, `info` or `debug`");
    let duration = Arg::new("for")
        .long("for")
        .value_name("DURATION")
        .value_parser(read_duration)
        .default_value("5m")
        .help("Time after which the usual level applies again, at most a day; `0s` ends a temporary level");
    command(NAME, "Change the log level of a plugin for some time")
        .long_about(
            "Change the log level of a plugin for some time, after which the usual level applies again. Without an \
             argument, show the temporary levels.",
        )
        .arg(level)
        .arg(duration)
        .args(service::options())
        .arg(json())
}

/// Argument that does not name a plugin and a level.
#[derive(Debug, thiserror::Error)]
#[error("expected PLUGIN=LEVEL, where LEVEL is `error`, `warning`, `info` or `debug`")]
struct LevelError;

fn read_level(text: &str) -> Result<(String, Level), LevelError> {
    let (plugin, level) = text.split_once('=').filter(|(plugin, _)| !plugin.is_empty()).ok_or(LevelError)?;
    let level = Level::ALL.into_iter().find(|known| known.name() == level).ok_or(LevelError)?;
    Ok((plugin.to_owned(), level))
}

impl Options {
    pub(super) fn read(matches: &ArgMatches) -> Options {
        let duration: Duration = matches.get_one("for").copied().unwrap_or_default();
        let level = matches.get_one::<(String, Level)>("level");
        let change = level.map(|(plugin, level)| SetLevel {
            plugin: plugin.clone(),
            level: *level,
            seconds: duration.as_secs(),
        });
        Options { change }
    }

    /// Returns the command for one replica.
    pub(super) fn words(&self) -> Vec<String> {
        let change = self.change.iter().flat_map(|change| {
            [format!("{}={}", change.plugin, change.level.name()), format!("--for={}s", change.seconds)]
        });
        std::iter::once(NAME.to_owned()).chain(change).collect()
    }
}

pub(super) fn run(own: &Options, options: &CommonOptions, socket: &Socket) -> Result<u8, ControlError> {
    let levels: Levels = match &own.change {
        Some(change) => socket.post(Endpoint::SetLogLevel, change)?,
        None => socket.get(Endpoint::LogLevels, &[])?,
    };
    print(options, &levels)?;
    Ok(exit::FINE)
}
