//! Helpers that several plugins share to parse and format their options.

use core::num::IntErrorKind;
use core::ops::RangeBounds;
use core::str::FromStr;
use std::sync::Arc;

use config::options::{Args, Problem, Property, RemovedProperty, SetProperty, Usage};
use config::setup::{BlockInfo, Page, PageContent, Setup};
use corefile::Token;
use gotext::ParseError;
use gotext::regexp::{Regexp, RegexpError};
use host::invariant::Expected as _;
use metrics::Registry;
use wire::Name;

use crate::shared::query_expression::{Names, QueryExpression};

/// Name of this host. The process provides it to the plugins that report it.
#[derive(Clone, Debug)]
pub struct HostName(pub String);

impl HostName {
    /// Returns the name that the process provides, or `localhost` if it provides none.
    pub fn of(setup: &Setup<'_>) -> String {
        setup.process.find().map_or_else(|| "localhost".to_owned(), |HostName(name)| name)
    }
}

/// Returns the name of a server block for people: its addresses and zones.
pub fn block_name(block: &BlockInfo) -> String {
    let mut servers: Vec<&str> = block.sites.iter().map(|site| site.server.as_str()).collect();
    let mut zones: Vec<&str> = block.sites.iter().map(|site| site.zone.as_str()).collect();
    servers.dedup();
    zones.dedup();
    format!("{} {}", servers.join(" "), zones.join(" "))
}

/// Search path that a directive offers to *autopath*, the same for all clients.
#[derive(Clone, Copy)]
pub struct FixedSearch(pub &'static [&'static str]);

/// Reads a number of a property that may be set once for each server block, as CoreDNS demands.
pub fn number_once(value: &mut Option<u32>, args: &mut Args<'_>, range: impl RangeBounds<u32>) -> Result<(), Problem> {
    let number = args.number(range)?;
    match value.replace(number) {
        None => Ok(()),
        Some(_) => Err(args.problem("already defined for this server block")),
    }
}

/// `max_connections` of the directives that limit a transport. `set` reads its number with [`number_once`].
pub const fn max_connections<C>(set: SetProperty<C>) -> Property<C> {
    Property {
        usage: Usage("max_connections NUMBER"),
        default: "200",
        doc: "Maximum number of open connections per listening address; 0 for no limit.",
        set,
    }
}

/// Returns the number of `max_connections`, or the default if it is not set.
pub fn connections_max(number: Option<u32>, default: usize) -> usize {
    number.and_then(|number| usize::try_from(number).ok()).unwrap_or(default)
}

/// Formats zones as the value of a metric label, separated by commas.
pub fn zones_label(zones: &[Name]) -> String {
    zones.iter().map(Name::to_string).collect::<Vec<_>>().join(",")
}

/// `upstream`, which several directives once accepted to resolve CNAME targets.
pub const FOLLOWED: RemovedProperty = RemovedProperty {
    name: "upstream",
    instead: "remove it: aliases that lead elsewhere are always looked up by this server",
};

/// `transfer` as a property, which directives with zones accepted before CoreDNS 1.8.
pub const TRANSFERRED: RemovedProperty = RemovedProperty {
    name: "transfer",
    instead: "write the directive `transfer` beside this one, with `to ADDRESS...` in its block, as since CoreDNS 1.8",
};

/// `no_reload`, which directives with zone files accepted before CoreDNS 1.5.
pub const NO_RELOAD: RemovedProperty =
    RemovedProperty { name: "no_reload", instead: "write `reload 0s`, as since CoreDNS 1.5" };

/// `upstream` of plugins with zone files, which once needed it to resolve CNAME targets. Its arguments are ignored.
pub const fn upstream<C>() -> Property<C> {
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

/// Setter for properties that are accepted and have no effect.
pub fn no_arguments<C>(_: &mut C, _: &mut Args<'_>) -> Result<(), Problem> {
    Ok(())
}

/// Names of ports that an address may have in place of a number. Go knows more names, and reads /etc/services; the
/// image of this server has no such file.
const PORT_NAMES: [(&str, &str); 3] = [("domain", "53"), ("http", "80"), ("https", "443")];

/// Takes an address to listen on, `[HOST]:PORT`, if there is one.
///
/// # Errors
/// Fails if the word does not have this form, or its port is no number up to 65535 and none of [`PORT_NAMES`]. The host
/// is resolved later, when the server listens on it.
pub fn listen_address(args: &mut Args<'_>) -> Result<Option<String>, Problem> {
    let Some(word) = args.next_word() else { return Ok(None) };
    let brackets_match = word.text.starts_with('[') == word.text.contains("]:");
    match word.text.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_err_and(|error| *error.kind() == IntErrorKind::PosOverflow) => {
            Err(args.bad(word, "an address with a port of at most 65535"))
        }
        Some((host, port)) if brackets_match && (!host.contains(':') || host.starts_with('[')) => {
            let port = match PORT_NAMES.iter().find(|(name, _)| *name == port) {
                Some((_, number)) => number,
                // As in Go, an empty port is port 0: the kernel chooses one.
                None if port.is_empty() => "0",
                None if port.parse::<u16>().is_ok() => port,
                None => return Err(args.bad(word, "an address with a number as its port")),
            };
            Ok(Some(format!("{host}:{port}")))
        }
        _ => Err(args.bad(word, "an address of the form `[HOST]:PORT`")),
    }
}

/// Parses a mnemonic. The spelling must match exactly, including case.
///
/// # Errors
/// Fails if the word is not a known mnemonic. If only the spelling differs, the error suggests the right one.
pub fn mnemonic<T: FromStr + Copy>(
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

/// Takes a word that may be part of a metric name.
///
/// # Errors
/// Fails if the word has characters other than ASCII letters, digits and `_`, or starts with a digit.
pub fn metric_word(args: &mut Args<'_>) -> Result<String, Problem> {
    let word = args.word()?;
    let fits = word.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let begins = word.text.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    if fits && begins { Ok(word.text.clone()) } else { Err(args.bad(word, "a word of letters, digits and `_`")) }
}

/// Takes the path of an HTTP page.
///
/// # Errors
/// Fails if the word does not start with a slash or has characters that a URL path must percent-encode.
pub fn url_path(args: &mut Args<'_>) -> Result<String, Problem> {
    let word = args.word()?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    let is_path = word.text.starts_with('/') && word.text.bytes().all(fits);
    if is_path { Ok(word.text.clone()) } else { Err(args.bad(word, "a path, such as `/metrics`")) }
}

/// Content type of Prometheus's text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns the page with all metrics, served at `[HOST]:PORT`.
#[must_use]
pub fn metrics_page(registry: &Arc<Registry>, address: String, path: String) -> Page {
    let registry = Arc::clone(registry);
    let make =
        move || PageContent { status: 200, content_type: METRICS_TYPE, body: registry.render().into_bytes().into() };
    Page::new(address, path, make)
}

/// Appends a text as a JSON string (RFC 8259 §7).
pub fn quote_json(out: &mut String, text: &str) {
    let quoted = serde_json::to_string(text).ok().expected("a text that can be written as JSON");
    out.push_str(quoted.as_deref().unwrap_or("\"\""));
}

/// Compiles a word as a regular expression in Go's syntax.
///
/// # Errors
/// Fails if the word is not a valid regular expression, or if it needs too much memory.
pub fn regular_expression(args: &Args<'_>, word: &Token) -> Result<Regexp, Problem> {
    Regexp::compile(&word.text).map_err(|error| {
        let problem = match error {
            RegexpError::TooLarge | RegexpError::OverBudget { .. } => {
                args.problem_at(word.span, "this regular expression is too large")
            }
            _ => args.bad(word, "a regular expression"),
        };
        Box::new(problem.with_help(error.to_string()))
    })
}

/// Takes the remaining words as one expression, which may use `names`.
///
/// # Errors
/// Fails if they do not form a valid expression. The error points at the word in which parsing failed.
pub fn expression_of(args: &mut Args<'_>, names: Names<'_>) -> Result<QueryExpression, Problem> {
    let words = args.take_rest();
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let parsed = QueryExpression::parse(&texts.join(" "), names).map_err(|ParseError { offset, error }| {
        // Find the word at byte `offset`. The words are joined with one space.
        let mut end = 0;
        let found = words.iter().find(|word| {
            end += word.text.len() + 1;
            offset < end
        });
        let span = found.or(words.last()).unwrap_or(args.name()).span;
        args.problem_at(span, format!("could not compile expression: {error}"))
    })?;
    for network in parsed.bad_networks() {
        let word = words.iter().find(|word| word.text.contains(network.as_str())).or(words.last());
        let message = format!(
            "`{network}` is not a network, so no address is in it; write it like `10.0.0.0/8` or `2001:db8::/64`"
        );
        word.into_iter().for_each(|word| args.warn(word, message.clone()));
    }
    Ok(parsed)
}
