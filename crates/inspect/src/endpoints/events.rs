//! Live queries.

use std::time::Duration;

use config::Directives;
use control::query::Parameters;
use control::tail::{FAILURES_KEPT, SECONDS_MAX};
use engine::tap::Filter;

use super::super::context::{Access, Context};
use super::super::refusal::Refusal;
use super::super::watch::{Lines, Request, Selection};
use super::log::check_plugin;

/// Parameters that are not conditions of the filter.
const OWN: [&str; 5] = ["namespace", "pod", "last", "follow", "seconds"];

/// Opens a stream of queries.
pub(super) fn events(context: &Context, access: Access, parameters: &Parameters) -> Result<Lines, Refusal> {
    let mut filter = Filter::default();
    for name in parameters.names().filter(|name| !OWN.contains(name)) {
        let value = parameters.get(name).unwrap_or_default();
        filter.set(name, value).map_err(|error| Refusal::invalid(format!("`{name}`: {error}")))?;
        if name == "plugin" {
            check_plugins(context.view.directives, value)?;
        }
    }
    let seconds = number(parameters, "seconds", SECONDS_MAX)?;
    if !(1..=SECONDS_MAX).contains(&seconds) {
        return Err(Refusal::invalid(format!("`seconds`: `{seconds}` is out of range; use 1–{SECONDS_MAX}")));
    }
    let request = Request {
        filter,
        pods: pods(parameters)?,
        last: usize::try_from(number(parameters, "last", 0)?).unwrap_or(usize::MAX).min(FAILURES_KEPT),
        follow: follow(parameters)?,
        is_remote: !matches!(access, Access::Full { .. }),
        duration: Duration::from_secs(seconds),
    };
    context.watch.open(&context.view.loaded(), request)
}

/// Refuses names that no plugin has, which would select nothing.
fn check_plugins(directives: Directives, value: &str) -> Result<(), Refusal> {
    let names = value.strip_prefix('!').unwrap_or(value).split(',');
    names.filter(|name| !name.is_empty()).try_for_each(|name| check_plugin(directives, name, None))
}

fn pods(parameters: &Parameters) -> Result<Option<Selection>, Refusal> {
    match (parameters.get("namespace"), parameters.get("pod")) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Refusal::invalid("`pod` needs `namespace`")),
        (Some(namespace), pod) => Ok(Some(Selection { namespace: namespace.to_owned(), pod: pod.map(str::to_owned) })),
    }
}

fn follow(parameters: &Parameters) -> Result<bool, Refusal> {
    match parameters.get("follow") {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(Refusal::invalid(format!("`follow`: `{other}` is not `true` or `false`"))),
    }
}

fn number(parameters: &Parameters, name: &str, default: u64) -> Result<u64, Refusal> {
    let Some(text) = parameters.get(name) else { return Ok(default) };
    text.parse().map_err(|_| Refusal::invalid(format!("`{name}`: `{text}` is not a number")))
}
