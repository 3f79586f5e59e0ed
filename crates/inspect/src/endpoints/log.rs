//! Temporary log levels.

use std::time::Duration;

use control::log::{Level, Levels, SECONDS_MAX, SetLevel, Temporary};

use super::super::context::{Access, Context};
use super::super::refusal::Refusal;
use config::Directives;
use process::log::levels as store;

/// Returns the temporary levels.
pub(super) fn levels() -> Levels {
    let temporary = store::temporary().into_iter().map(|(plugin, level, left)| Temporary {
        plugin,
        level: from_engine(level),
        left_seconds: left.as_secs_f64(),
    });
    Levels { usual: from_engine(store::usual()), temporary: temporary.collect() }
}

/// Sets a level for some time.
pub(super) fn set(context: &Context, access: Access, request: &SetLevel) -> Result<Levels, Refusal> {
    let SetLevel { plugin, level, seconds } = request;
    if *seconds > SECONDS_MAX {
        return Err(Refusal::invalid(format!("{seconds} s is too long; the maximum is {SECONDS_MAX} s (a day)")));
    }
    check_plugin(context.view.directives, plugin, Some(store::SERVER))?;
    let name = level.name();
    tracing::info!(target: "portolan", "{access} sets the log level of {plugin} to {name} for {seconds} s");
    store::set(plugin, to_engine(*level), Duration::from_secs(*seconds));
    Ok(levels())
}

/// Refuses a name that neither a plugin nor `other` has.
pub(super) fn check_plugin(directives: Directives, name: &str, other: Option<&'static str>) -> Result<(), Refusal> {
    if directives.names().chain(other).any(|known| known == name) {
        return Ok(());
    }
    let near = corefile::did_you_mean(name, directives.names());
    let near =
        near.map_or_else(|| "; `portolan --plugins` lists them".to_owned(), |near| format!("; did you mean `{near}`?"));
    Err(Refusal::invalid(format!("there is no plugin `{name}`{near}")))
}

fn from_engine(level: engine::log::Level) -> Level {
    match level {
        engine::log::Level::Error => Level::Error,
        engine::log::Level::Warning => Level::Warning,
        engine::log::Level::Info => Level::Info,
        engine::log::Level::Debug => Level::Debug,
    }
}

fn to_engine(level: Level) -> engine::log::Level {
    match level {
        Level::Error => engine::log::Level::Error,
        Level::Warning => engine::log::Level::Warning,
        Level::Info => engine::log::Level::Info,
        Level::Debug => engine::log::Level::Debug,
    }
}
