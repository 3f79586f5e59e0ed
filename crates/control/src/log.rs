//! Temporary log levels of plugins.

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::text::{duration, harmless};

/// Maximum duration of a temporary log level in seconds: long enough for a working day, and it always ends.
pub const SECONDS_MAX: u64 = 24 * 3600;

/// Severity of log events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Part of the configured service does not work.
    Error,
    /// The service works, but something needs attention.
    Warning,
    /// Normal operation.
    Info,
    /// Detail for finding faults.
    Debug,
}

impl Level {
    /// All levels, most severe first.
    pub const ALL: [Level; 4] = [Level::Error, Level::Warning, Level::Info, Level::Debug];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Level::Error => "error",
            Level::Warning => "warning",
            Level::Info => "info",
            Level::Debug => "debug",
        }
    }
}

/// Request to change a log level for some time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetLevel {
    /// Name of the directive, or `portolan` for the server itself.
    pub plugin: String,
    /// Least severe level that is written.
    pub level: Level,
    /// Duration in seconds, at most a day; 0 ends a temporary level.
    pub seconds: u64,
}

/// Temporary log levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Levels {
    /// Level of everything else.
    pub usual: Level,
    /// Temporary levels.
    pub temporary: Vec<Temporary>,
}

/// Temporary log level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Temporary {
    /// Name of the directive, or `portolan` for the server itself.
    pub plugin: String,
    /// Least severe level that is written.
    pub level: Level,
    /// Time until it ends in seconds.
    pub left_seconds: f64,
}

impl fmt::Display for Levels {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Temporary { plugin, level, left_seconds } in &self.temporary {
            writeln!(out, "{}  {}  {} left", harmless(plugin), level.name(), duration(*left_seconds))?;
        }
        writeln!(out, "everything else  {}", self.usual.name())
    }
}
