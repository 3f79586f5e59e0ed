//! `portolan status --all`: a line for each replica, and the problems of all.

use std::fmt::Write;

use control::status::{Answers, Cache, Serving, Status};
use control::text::{duration, harmless, percent, rate};
use serde_json::json;

use super::super::print_text;
use super::{Answer, Replicas, TITLE, code, document, texts, unreached, width};
use crate::client::ControlError;

/// Number of digits of the hash of a configuration that are shown, as in the status of one server.
const HASH_SHOWN: usize = 8;

pub(super) fn run(replicas: &Replicas<'_>, json: bool) -> Result<u8, ControlError> {
    let answers: Vec<Answer<Status>> = replicas.ask(&texts(["status", "--json"]));
    print_text(&if json {
        document(replicas, &answers, |status| json!({ "status": status }))?
    } else {
        text(&replicas.name(), &answers)
    })?;
    Ok(code(&answers, Status::is_fine))
}

fn text(service: &str, answers: &[Answer<Status>]) -> String {
    let width = width(answers.iter().map(|answer| &answer.replica));
    let mut out = format!("Service {} · {} replicas\n", harmless(service), answers.len());
    let titles = ["STATE", "UP", "COREFILE", "Q/S", "SERVFAIL", "CACHE"];
    out.push_str(&line(width, TITLE, titles.map(str::to_owned)));
    for answer in answers {
        let cells = match &answer.outcome {
            Ok(status) => cells(status),
            Err(_) => ["no answer", "-", "-", "-", "-", "-"].map(str::to_owned),
        };
        out.push_str(&line(width, &harmless(&answer.replica), cells));
    }
    for answer in answers {
        let problems = answer.outcome.iter().flat_map(|status| &status.problems);
        for problem in problems {
            // A string takes everything.
            let _ = writeln!(out, "✗ {}: {}  {}", harmless(&answer.replica), problem.code, harmless(&problem.text));
        }
    }
    out.push_str(&unreached(answers));
    out.push_str(different(answers));
    out
}

/// Says that replicas serve different configurations, if they do.
fn different(answers: &[Answer<Status>]) -> &'static str {
    let mut hashes = answers.iter().filter_map(|answer| Some(&answer.outcome.as_ref().ok()?.corefile.hash));
    let first = hashes.next();
    let are_equal = hashes.all(|hash| Some(hash) == first);
    if are_equal { "" } else { "‼ the replicas serve different configurations\n" }
}

fn line(width: usize, replica: &str, [state, up, corefile, rate, servfail, cache]: [String; 6]) -> String {
    let line = format!(" {replica:<width$}  {state:<10}  {up:>9}  {corefile:<8}  {rate:>8}  {servfail:>8}  {cache:>6}");
    format!("{}\n", line.trim_end())
}

fn cells(status: &Status) -> [String; 6] {
    let state = match status.serving {
        Serving::Ready if status.problems.is_empty() => "✓ ready",
        Serving::Ready => "✗ problems",
        Serving::NotReady => "✗ unready",
        Serving::Ending => "✗ ending",
    };
    let unknown = || "-".to_owned();
    [
        state.to_owned(),
        duration(status.uptime_seconds),
        status.corefile.hash.chars().take(HASH_SHOWN).collect(),
        status.answers.per_second.map_or_else(unknown, rate),
        servfail(&status.answers).unwrap_or_else(unknown),
        status.cache.as_ref().map_or_else(unknown, hits),
    ]
}

/// Returns the share of answers with SERVFAIL; `None` without answers.
fn servfail(answers: &Answers) -> Option<String> {
    let all: u64 = answers.codes.iter().map(|code| code.answers).sum();
    let failed = answers.codes.iter().find(|code| code.code == "SERVFAIL").map_or(0, |code| code.answers);
    (all > 0).then(|| format!("{} %", percent(failed, all)))
}

fn hits(cache: &Cache) -> String {
    let all = cache.hits + cache.misses;
    if all == 0 { "-".to_owned() } else { format!("{} %", percent(cache.hits, all)) }
}
