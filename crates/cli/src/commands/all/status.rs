//! `portolan status --all`: a line for each replica, and the problems of all.

use std::fmt::Write;

use control::exit;
use control::status::{Answers, Cache, Problem, ProblemCode, Serving, Status, difference};
use control::text::{duration, harmless, percent, rate};
use serde_json::json;

use super::super::{as_json, print_text};
use super::{Answer, Replicas, TITLE, code, document, texts, unreached, width};
use crate::client::ControlError;

/// Number of digits of the hash of a configuration that are shown, as in the status of one server.
const HASH_SHOWN: usize = 8;

pub(super) fn run(replicas: &Replicas<'_>, json: bool) -> Result<u8, ControlError> {
    let answers: Vec<Answer<Status>> = replicas.ask(&texts(["status", "--json"]))?;
    let different = different(&answers);
    print_text(&if json {
        let mut document = document(replicas, &answers, |status| json!({ "status": status }));
        document["problems"] = json!(different.iter().collect::<Vec<_>>());
        as_json(&document)?
    } else {
        text(&replicas.name(), &answers, different.as_ref())
    })?;
    Ok(match code(&answers, Status::is_fine) {
        exit::FINE if different.is_some() => exit::TROUBLE,
        code => code,
    })
}

fn text(service: &str, answers: &[Answer<Status>], different: Option<&Problem>) -> String {
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
        // Each replica may have compared itself with the others: one line says it for all.
        let is_said = |problem: &&Problem| different.is_some() && problem.code == ProblemCode::ReplicasDiffer;
        for problem in problems.filter(|problem| !is_said(problem)) {
            // A string takes everything.
            let _ = writeln!(out, "✗ {}: {}  {}", harmless(&answer.replica), problem.code, harmless(&problem.text));
        }
    }
    out.push_str(&unreached(answers));
    if let Some(Problem { code, text, .. }) = different {
        let _ = writeln!(out, "✗ {code}  {}", harmless(text));
    }
    out
}

/// Returns the problem of replicas that serve different configurations.
fn different(answers: &[Answer<Status>]) -> Option<Problem> {
    let known = answers.iter().filter_map(|answer| Some((&answer.replica, answer.outcome.as_ref().ok()?)));
    difference(known.map(|(replica, status)| (replica.as_str(), status.corefile.hash.as_str())))
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
