//! What several plugins need to read or to write their options.

use core::num::IntErrorKind;
use core::str::FromStr;
use core::time::Duration;
use std::sync::Arc;

use corefile::Token;
use engine::metrics::Registry;
use engine::options::{Args, Old, Problem, Property, Usage};
use engine::setup::{Page, PageContent, Setup};
use wire::Name;

use crate::expression::{Expression, Scope};
use crate::goregexp::Regexp;

/// The name of this host: what the process offers to directives that tell it.
#[derive(Clone, Debug)]
pub struct HostName(pub String);

impl HostName {
    /// The name that the process offers; `localhost` if it offers none.
    pub(crate) fn of(setup: &Setup<'_>) -> String {
        setup.process.find().map_or_else(|| "localhost".to_owned(), |HostName(name)| name)
    }
}

/// Zones as a label of metrics has them.
pub(crate) fn zones_label(zones: &[Name]) -> String {
    zones.iter().map(Name::to_string).collect::<Vec<_>>().join(",")
}

/// What several directives took once for the lookup of aliases.
pub(crate) const FOLLOWED: Old =
    Old { name: "upstream", instead: "remove it: aliases that lead elsewhere are always looked up by this server" };

/// What directives with zones took before CoreDNS 1.8.
pub(crate) const TRANSFERRED: Old = Old {
    name: "transfer",
    instead: "write the directive `transfer` beside this one, with `to ADDRESS...` in its block, as since CoreDNS 1.8",
};

/// What directives with zone files took before CoreDNS 1.5.
pub(crate) const NO_RELOAD: Old = Old { name: "no_reload", instead: "write `reload 0s`, as since CoreDNS 1.5" };

/// `upstream` of plugins with zone files, whose aliases once needed it.
pub(crate) const fn upstream<C>() -> Property<C> {
    Property {
        usage: Usage("upstream [ADDRESS...]"),
        default: "",
        doc: "Ignored. Aliases that lead out of the zone are always resolved by this server.",
        set: |_, args| {
            args.take_rest();
            Ok(())
        },
    }
}

/// A setter for properties that are accepted and say nothing.
pub(crate) fn no_arguments<C>(_: &mut C, _: &mut Args<'_>) -> Result<(), Problem> {
    Ok(())
}

/// Takes an address to listen on, `[HOST]:PORT`, if there is one.
///
/// # Errors
/// If the word has no host and port; whether they exist is seen when they are listened on.
pub(crate) fn listen_address(args: &mut Args<'_>) -> Result<Option<String>, Problem> {
    let Some(word) = args.next_word() else { return Ok(None) };
    let brackets_match = word.text.starts_with('[') == word.text.contains("]:");
    match word.text.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_err_and(|error| *error.kind() == IntErrorKind::PosOverflow) => {
            Err(args.bad(word, "an address with a port of at most 65535"))
        }
        Some((host, port)) if brackets_match && (!host.contains(':') || host.starts_with('[')) => {
            // As in Go, no port is port 0: the system chooses one.
            Ok(Some(if port.is_empty() { format!("{}0", word.text) } else { word.text.clone() }))
        }
        _ => Err(args.bad(word, "an address of the form `[HOST]:PORT`")),
    }
}

/// Reads a mnemonic exactly as it is.
///
/// # Errors
/// If the word is none.
pub(crate) fn mnemonic<T: FromStr + Copy>(
    args: &Args<'_>,
    word: &Token,
    wanted: &str,
    text: fn(T) -> Option<&'static str>,
) -> Result<T, Problem> {
    let known = T::from_str(&word.text).ok();
    known.filter(|known| text(*known) == Some(&word.text)).ok_or_else(|| {
        let problem = args.bad(word, wanted);
        match known.and_then(text) {
            Some(right) => Box::new(problem.with_help(format!("did you mean `{right}`?"))),
            None => problem,
        }
    })
}

/// Takes a word that may stand in the name of a metric.
///
/// # Errors
/// If it is of other characters.
pub(crate) fn metric_word(args: &mut Args<'_>) -> Result<String, Problem> {
    let word = args.word()?;
    let fits = word.text.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'_');
    let begins = word.text.bytes().next().is_some_and(|octet| !octet.is_ascii_digit());
    if fits && begins { Ok(word.text.clone()) } else { Err(args.bad(word, "a word of letters, digits and `_`")) }
}

/// Takes the path of a page.
///
/// # Errors
/// If the word does not begin with a slash, or has characters that a path must encode.
pub(crate) fn url_path(args: &mut Args<'_>) -> Result<String, Problem> {
    let word = args.word()?;
    let fits = |octet: u8| octet.is_ascii_alphanumeric() || b"/-_.~".contains(&octet);
    let is_path = word.text.starts_with('/') && word.text.bytes().all(fits);
    if is_path { Ok(word.text.clone()) } else { Err(args.bad(word, "a path, such as `/metrics`")) }
}

/// What Prometheus expects of a target that speaks its text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page with all metrics, at an address `[HOST]:PORT`.
#[must_use]
pub fn metrics_page(registry: &Arc<Registry>, address: String, path: String) -> Page {
    let registry = Arc::clone(registry);
    let make =
        move || PageContent { status: 200, content_type: METRICS_TYPE, body: registry.render().into_bytes().into() };
    Page::new(address, path, make)
}

/// Appends a text as a JSON string (RFC 8259 §7).
pub(crate) fn quote_json(out: &mut String, text: &str) {
    // A text can always be written.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

/// A word as a regular expression of Go.
///
/// # Errors
/// If it is none.
pub(crate) fn regular_expression(args: &Args<'_>, word: &Token) -> Result<Regexp, Problem> {
    Regexp::read(&word.text).map_err(|fault| {
        let problem = args.bad(word, "a regular expression");
        Box::new(problem.with_help(fault.to_string()))
    })
}

/// Takes the words that are left as one expression, in which the names of `scope` may stand.
///
/// # Errors
/// If they are none, with the place inside.
pub(crate) fn expression_of(args: &mut Args<'_>, scope: Scope<'_>) -> Result<Expression, Problem> {
    let words = args.take_rest();
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    Expression::read(&texts.join(" "), scope).map_err(|(at, fault)| {
        // The word that the octet lies in; a blank stands between two.
        let mut end = 0;
        let found = words.iter().find(|word| {
            end += word.text.len() + 1;
            at < end
        });
        let span = found.or(words.last()).unwrap_or(args.name()).span;
        args.problem_at(span, format!("could not compile expression: {fault}"))
    })
}

/// A duration as Go writes it: `1h20m0s`, `1.5s`, `500ms`, `0s`.
pub(crate) fn go_duration(span: Duration) -> String {
    let nanos = span.as_nanos();
    match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}\u{b5}s", decimal(nanos, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(nanos, 6)),
        _ => {
            let (hours, minutes) = (span.as_secs() / 3600, span.as_secs() / 60 % 60);
            let seconds = decimal(nanos - u128::from(span.as_secs() / 60 * 60) * 1_000_000_000, 9);
            match (hours, minutes) {
                (0, 0) => format!("{seconds}s"),
                (0, _) => format!("{minutes}m{seconds}s"),
                _ => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// `number` divided by ten to the power of `places`, without trailing zeros.
fn decimal(number: u128, places: u32) -> String {
    let unit = 10u128.pow(places);
    let (whole, part) = (number / unit, number % unit);
    let part = format!("{part:0width$}", width = places as usize);
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_string() } else { format!("{whole}.{part}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_in_go() {
        let cases = [
            (0, "0s"),
            (17, "17ns"),
            (1_500, "1.5\u{b5}s"),
            (500_000_000, "500ms"),
            (1_050_000_000, "1.05s"),
            (60_000_000_000, "1m0s"),
            (4_800_000_000_000, "1h20m0s"),
            (3_600_500_000_000, "1h0m0.5s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(go_duration(Duration::from_nanos(nanos)), text);
        }
    }
}
