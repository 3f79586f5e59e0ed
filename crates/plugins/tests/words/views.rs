//! Statements about what plugins show to people who look at the server from outside. Each compares lines, in which the
//! word `*` matches any word.
//!
//! | statement | meaning |
//! |---|---|
//! | `caches` + lines | the caches: block, number of entries, maximum |
//! | `cached NAME [TYPE]` + lines | the entries for a name, and the records of each |
//! | `flush all\|name\|below [NAME] N` | removes N entries from the caches |
//! | `upstreams` + lines | the upstreams: address, transport, state, errors |
//! | `explain NAME TYPE` + lines | what the plugins say about a query that nobody asks |
//! | `waits NAME TYPE N` | a query waits for this group of servers at a plugin, such as a line of *forward* |

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use config::setup::{CacheScope, InspectCache, Inspection};
use engine::{ExplainedUpstream, Explanation};
use testkit::{Arrival, Extension, Problem, Question, Stage, Statement, Words};
use wire::Name;

/// Views into the plugins.
pub(crate) struct Views;

impl Extension for Views {
    fn words(&self) -> &'static [&'static str] {
        &["caches", "cached", "flush", "upstreams", "explain", "waits"]
    }

    fn play(&mut self, statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
        if statement.word() == "waits" {
            return waits(statement, stage);
        }
        let requests = stage.server.requests().ok_or_else(|| statement.problem("there is no Corefile"))?;
        let (inspection, mut words) = (&requests.inspection, statement.words_between(1, usize::MAX));
        let got = match statement.word() {
            "caches" => caches(inspection),
            "cached" => cached(inspection, &mut words, stage)?,
            "flush" => return flush(inspection, &mut words, statement),
            "upstreams" => upstreams(inspection),
            _ => explain(&mut words, stage)?,
        };
        compare(statement, &got)
    }
}

fn caches(inspection: &Inspection) -> Vec<String> {
    let shown = |cache: &Arc<dyn InspectCache>| {
        let (entries, capacity) = cache.size();
        format!("{} {entries} {capacity}", cache.block())
    };
    inspection.caches.iter().map(shown).collect()
}

fn cached(inspection: &Inspection, words: &mut Words<'_>, stage: &Stage) -> Result<Vec<String>, Problem> {
    let name = name(words)?;
    let qtype = words.next_word().map(|word| word.parse().map_err(|_| words.problem("not a type"))).transpose()?;
    // In the order of the lines: a cache has none.
    let mut lines = BTreeMap::new();
    for entry in inspection.caches.iter().flat_map(|cache| cache.find(name.as_ref(), qtype, stage.server.now())) {
        let kind = if entry.denial { "denial" } else { "answer" };
        let flags = [(entry.dnssec_ok, " do"), (entry.checking_disabled, " cd")];
        let flags: String = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, word)| *word).collect();
        let (qtype, rcode, ttl, age) = (entry.qtype, entry.rcode, entry.ttl, entry.age);
        let line = format!("{kind} {qtype} {rcode}{flags} ttl {ttl} age {age:?} bytes {}", entry.bytes);
        lines.insert(line, entry.records);
    }
    Ok(lines.into_iter().flat_map(|(line, records)| core::iter::once(line).chain(records)).collect())
}

fn flush(inspection: &Inspection, words: &mut Words<'_>, statement: &Statement) -> Result<(), Problem> {
    let scope = match words.next_word() {
        Some("all") => CacheScope::All,
        Some("name") => CacheScope::Name(name(words)?),
        Some("below") => CacheScope::Below(name(words)?),
        _ => return Err(statement.problem("`flush` needs `all`, `name` or `below`")),
    };
    let expected: usize = words.parse("a number of entries")?;
    let removed = inspection.caches.iter().map(|cache| cache.flush(&scope)).sum();
    statement.expect("entries removed", &expected, &removed)
}

fn upstreams(inspection: &Inspection) -> Vec<String> {
    let upstreams = inspection.upstreams.iter().flat_map(|view| view.upstreams());
    let shown = upstreams.map(|upstream| {
        let since = upstream.down_since.map(|since| format!(" since {since:?}")).unwrap_or_default();
        let error = upstream.error.map(|error| format!(" probe: {error}")).unwrap_or_default();
        let failed = upstream.last_failure.map(|(_, error)| format!(" failed: {error}")).unwrap_or_default();
        format!("{} {} {}{since}{error}{failed}", upstream.address, upstream.transport, upstream.health.name())
    });
    shown.collect()
}

fn explain(words: &mut Words<'_>, stage: &Stage) -> Result<Vec<String>, Problem> {
    let question = Question::new(name(words)?, words.parse("a type")?);
    let rehearsed = stage.server.rehearse(&question.packet(), Arrival::default());
    let hooks = rehearsed.into_iter().flat_map(|rehearsed| rehearsed.hooks);
    Ok(hooks.filter_map(|hook| Some(lines_of(hook.plugin, &hook.explanation?))).flatten().collect())
}

fn waits(statement: &Statement, stage: &mut Stage) -> Result<(), Problem> {
    let mut words = statement.words_between(1, usize::MAX);
    let question = Question::new(name(&mut words)?, words.parse("a type")?);
    let expected: usize = words.parse("the number of a group")?;
    let destination = stage.server.ask(&question.packet(), Arrival::default()).destination();
    let destination = destination.ok_or_else(|| statement.problem("the query was answered at once"))?;
    statement.expect("the number of the group", &expected, &destination.group)
}

fn lines_of(plugin: &str, explanation: &Explanation) -> Vec<String> {
    let mut lines = vec![format!("{plugin} {}", explanation.text)];
    if let Some(cache) = &explanation.cache {
        let kind = if cache.denial { "denial" } else { "answer" };
        lines.push(format!("{kind} age {:?} ttl {:?} stale {:?}", cache.age, cache.ttl, cache.stale));
    }
    lines.extend(explanation.upstreams.iter().map(line_of_upstream));
    lines.extend(explanation.reason.as_ref().map(|reason| format!("{} {}", reason.code.code, reason.text)));
    lines
}

fn line_of_upstream(upstream: &ExplainedUpstream) -> String {
    let down = upstream.down_for.map(|span: Duration| format!(" for {span:?}")).unwrap_or_default();
    let error = upstream.error.as_ref().map(|error| format!(" probe: {error}")).unwrap_or_default();
    let failed = upstream.last_failure.as_ref().map(|(ago, error)| format!(" failed {ago:?} ago: {error}"));
    let failed = failed.unwrap_or_default();
    format!("{} {} {}{down}{error}{failed}", upstream.address, upstream.transport, upstream.state)
}

fn name(words: &mut Words<'_>) -> Result<Name, Problem> {
    let name = words.next_word().and_then(|word| Name::from_text(word).ok());
    name.ok_or_else(|| words.problem("a name is missing"))
}

fn compare(statement: &Statement, got: &[String]) -> Result<(), Problem> {
    let is_like = |expected: &str, got: &str| {
        let (expected, got): (Vec<_>, Vec<_>) =
            (expected.split_whitespace().collect(), got.split_whitespace().collect());
        expected.len() == got.len()
            && expected.iter().zip(&got).all(|(expected, got)| *expected == "*" || expected == got)
    };
    let expected: Vec<&str> = statement.lines().map(|line| line.text.as_str()).collect();
    let is_same = expected.len() == got.len() && expected.iter().zip(got).all(|(expected, got)| is_like(expected, got));
    if is_same { Ok(()) } else { Err(statement.problem(format!("there is\n      {}", got.join("\n      ")))) }
}
