//! Problems in a status, with the codes that `portolan doctor` uses too.

use std::collections::BTreeSet;

use control::status::{
    Cluster, LoopProbe, Problem, ProblemCode, Resource, Serving, Status, Upstream, UpstreamState, WatchState,
};
use control::text::{count, duration};

use super::super::Loaded;
use super::super::history::FAILURES;
use super::super::limits::is_harmful;

/// Age of a resource in seconds from which it is a problem if answers are never marked as stale: longer than any
/// healthy watch is silent.
const AGE_MAX: f64 = 60.0;
/// Duration of an outage in seconds from which it is a problem: a connection that breaks is replaced sooner.
const OUTAGE_MIN: f64 = 5.0;
/// Share of the memory limit from which it is a problem.
const MEMORY_SHARE_MAX: f64 = 0.8;
/// Share of throttled periods from which it is a problem.
const THROTTLED_SHARE_MAX: f64 = 0.05;

/// Share of the answers from which such a code is a problem, in percent.
const FAILED_PERCENT_MAX: u64 = 5;
/// Number of answers below which a share says nothing.
const ANSWERS_MIN: u64 = 100;

/// Returns the problems, worst first.
pub(super) fn problems(status: &Status) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |problem: Problem| problems.push(problem);
    // What a plugin waits for comes before that it is not ready.
    for cluster in &status.clusters {
        add_watches(cluster, &mut add);
    }
    if status.serving == Serving::NotReady {
        add(Problem::new(ProblemCode::NotReady, format!("not ready: {}", status.unready.join(", "))));
    }
    if let Some(refused) = &status.corefile.refused {
        let reason = without_excerpt(&refused.error);
        add(Problem::new(
            ProblemCode::ReloadFailed,
            format!("the last reload failed {} ago: {reason}", duration(refused.age_seconds)),
        ));
    }
    if let Some(text) = status.restart_text() {
        add(Problem::new(ProblemCode::Restarted, text));
    }
    for text in status.loops.iter().filter_map(LoopProbe::looping_text) {
        add(Problem::new(ProblemCode::ForwardingLoop, text));
    }
    for upstream in status.upstreams.iter().filter(|upstream| upstream.state == UpstreamState::Down) {
        let since = upstream.down_seconds.map_or(String::new(), |since| format!(" for {}", duration(since)));
        let error = upstream.error.as_deref().map_or(String::new(), |error| format!(": {error}"));
        let text = format!("upstream {} has been down{since}{error}", upstream.address);
        add(Problem::of_upstream(ProblemCode::UpstreamFails, &upstream.address, text));
    }
    for upstream in status.upstreams.iter().filter(|one| one.state != UpstreamState::Down && one.is_failing()) {
        add(of_upstream(ProblemCode::UpstreamFails, upstream, &upstream.failures_text()));
    }
    add_failures(status, &mut add);
    for upstream in status.upstreams.iter().filter(|upstream| upstream.is_refusing()) {
        add(of_upstream(ProblemCode::AnswersFail, upstream, &upstream.refusals_text()));
    }
    for upstream in status.upstreams.iter().filter(|upstream| upstream.is_forged()) {
        add(of_upstream(ProblemCode::UnwantedReplies, upstream, &upstream.unwanted_text()));
    }
    for limit in status.limits.reached.iter().filter(|limit| is_harmful(&limit.limit)) {
        let window = duration(status.limits.window_seconds);
        add(Problem::new(
            ProblemCode::LimitReached,
            format!("limit {} reached {} times in {window}", limit.limit, count(limit.hits)),
        ));
    }
    add_resources(status, &mut problems);
    problems
}

/// Returns a problem of an upstream. `figures` is the part of its line in the status that shows it.
fn of_upstream(code: ProblemCode, upstream: &Upstream, figures: &str) -> Problem {
    let text = format!("upstream {}{}", upstream.address, figures.replacen(',', ":", 1));
    Problem::of_upstream(code, &upstream.address, text)
}

/// Returns the problems of certificates. Two listeners may use the same files.
pub(super) fn of_certificates(loaded: &Loaded) -> impl Iterator<Item = Problem> {
    let texts: BTreeSet<String> =
        host::sorting::set(loaded.inspection.certificates.iter().filter_map(|one| one.problem()));
    texts.into_iter().map(|text| Problem::new(ProblemCode::CertificateEnds, text))
}

/// Returns the problems of zones that have no content or cannot be stored. A zone may be served by several blocks.
pub(super) fn of_zones(loaded: &Loaded) -> impl Iterator<Item = Problem> {
    let texts: BTreeSet<String> = host::sorting::set(loaded.inspection.zones.iter().filter_map(|one| one.problem()));
    texts.into_iter().map(|text| Problem::new(ProblemCode::NotReady, text))
}

/// Adds the response codes of failures that many answers have.
fn add_failures(status: &Status, add: &mut impl FnMut(Problem)) {
    let total: u64 = status.answers.codes.iter().map(|code| code.answers).sum();
    for code in status.answers.codes.iter().filter(|code| FAILURES.contains(&code.code.as_str())) {
        let percent = code.answers * 100 / total.max(1);
        if total >= ANSWERS_MIN && percent > FAILED_PERCENT_MAX {
            let window = duration(status.answers.window_seconds);
            add(Problem::new(
                ProblemCode::AnswersFail,
                format!("{} is {percent} % of {} answers in {window}", code.code, count(total)),
            ));
        }
    }
}

/// Adds the watches that fail or are silent. Those with the same error share a problem.
fn add_watches(cluster: &Cluster, add: &mut impl FnMut(Problem)) {
    let mut failing: Vec<(&str, f64, Vec<&str>)> = Vec::new();
    for resource in &cluster.resources {
        let (name, age) = (resource.name.as_str(), resource.age_seconds.unwrap_or(0.0));
        match (&resource.error, resource.failing_seconds) {
            (Some(error), Some(seconds)) => match failing.iter_mut().find(|(known, ..)| known == error) {
                Some((_, longest, names)) => {
                    *longest = longest.max(seconds);
                    names.push(name);
                }
                None => failing.push((error, seconds, vec![name])),
            },
            _ if age > cluster.stale_after_seconds.unwrap_or(AGE_MAX) => {
                let text = format!("{name} were last confirmed by the API server {} ago", duration(age));
                add(Problem::new(ProblemCode::WatchLate, text));
            }
            _ => {}
        }
    }
    add_unlisted(cluster, add);
    for (error, seconds, names) in failing {
        let is_refused = error.contains("403");
        if is_refused || seconds > OUTAGE_MIN {
            let code = if is_refused { ProblemCode::WatchRefused } else { ProblemCode::WatchLate };
            let text = format!("watch of {} has been failing for {}: {error}", names.join(", "), duration(seconds));
            add(Problem::new(code, text));
        }
    }
}

/// Adds the resources whose first list has not begun to arrive: the API server accepts the request and does not answer.
fn add_unlisted(cluster: &Cluster, add: &mut impl FnMut(Problem)) {
    let silence = |resource: &Resource| {
        let listing = resource.listing_seconds.filter(|_| resource.state == WatchState::Listing)?;
        Some(resource.silent_seconds.unwrap_or(listing)).filter(|silence| *silence > OUTAGE_MIN)
    };
    let silent: Vec<(&str, f64)> =
        cluster.resources.iter().filter_map(|one| Some((one.name.as_str(), silence(one)?))).collect();
    let Some(longest) = silent.iter().map(|(_, silence)| *silence).reduce(f64::max) else { return };
    let names: Vec<&str> = silent.iter().map(|(name, _)| *name).collect();
    let (names, source) = (names.join(", "), &cluster.source);
    let text =
        format!("{names} not listed: {source} has accepted the requests and sent nothing for {}", duration(longest));
    add(Problem::new(ProblemCode::WatchLate, text));
}

fn add_resources(status: &Status, problems: &mut Vec<Problem>) {
    let mut add = |text: String| problems.push(Problem::new(ProblemCode::ResourcesShort, text));
    let resources = &status.resources;
    if let (Some(used), Some(limit)) = (resources.memory_bytes, resources.memory_limit_bytes) {
        #[allow(clippy::cast_precision_loss, reason = "two digits are shown")]
        let share = used as f64 / limit as f64;
        if share > MEMORY_SHARE_MAX {
            add(format!("memory is at {:.0} % of its limit", share * 100.0));
        }
    }
    if let Some(share) = resources.throttled_share.filter(|share| *share > THROTTLED_SHARE_MAX) {
        add(format!("the CPU was throttled in {:.0} % of the periods", share * 100.0));
    }
}

/// Returns the message of a refused configuration with its file and line and the help, without the excerpt in between.
fn without_excerpt(error: &str) -> String {
    let mut lines = error.lines();
    let mut text = lines.next().unwrap_or_default().to_owned();
    if let Some(place) = lines.next().and_then(|line| line.trim_start().strip_prefix("--> ")) {
        text.push_str(", at ");
        text.push_str(place.rsplit('/').next().unwrap_or(place));
    }
    // Further errors have their own help.
    let first = lines.take_while(|line| !line.is_empty());
    if let Some(help) = first.filter_map(|line| line.trim_start().strip_prefix("= help: ")).next() {
        text.push_str("; ");
        text.push_str(help);
    }
    text
}
