//! The status as text: one line per part.

use core::fmt::{self, Write};

use super::replica;
use super::{
    Answers, Cache, Cluster, CodeCount, Corefile, Latency, Limits, LoopProbe, Resource, Resources, Serving, Status,
    Upstream, UpstreamState, WatchState,
};
use crate::text::{count, counted, duration, harmless, mebibytes, mebibytes_bare, percent, rate, shown_hash};

/// Column of the second part of a line with two parts.
const SECOND_COLUMN: usize = 62;
/// Response codes that are shown even if they are rare.
const CODES_SHOWN: [&str; 3] = ["NOERROR", "NXDOMAIN", "SERVFAIL"];
/// Upstreams that are shown; the rest is counted.
const UPSTREAMS_SHOWN: usize = 8;
/// Warnings about the Corefile that are shown; the rest is counted.
const WARNINGS_SHOWN: usize = 2;
/// Length of an error that is shown on a line of its own part.
const ERROR_SHOWN: usize = 120;

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "{}", pair(&self.title(), &self.serving_text()))?;
        row(out, "Corefile", &self.corefile.text())?;
        self.corefile.write_warnings(out)?;
        if !self.replicas.is_empty() {
            row(out, "Replicas", &replica::text(&self.replicas))?;
        }
        for cluster in &self.clusters {
            cluster.write(out)?;
        }
        self.restart_text().map_or(Ok(()), |text| row(out, "Keeper", &format!("‼ {}", harmless(&text))))?;
        row(out, "Answers", &self.answers.text())?;
        if !self.upstreams.is_empty() {
            row(out, "Upstreams", &upstreams(&self.upstreams))?;
        }
        for found in &self.loops {
            found.looping_text().map_or(Ok(()), |text| row(out, "Loop", &format!("✗ {text} (PD-U01)")))?;
        }
        row(out, "Cache", &self.cache.as_ref().map_or("none".to_owned(), Cache::text))?;
        let limits = format!("  {:<11}  {}", "Limits hit", self.limits.text());
        writeln!(out, "{}", pair(&limits, &self.resources.text()))?;
        self.write_problems(out)
    }
}

impl Status {
    fn title(&self) -> String {
        let place = if self.in_pod { "pod" } else { "host" };
        let up = duration(self.uptime_seconds);
        let Status { version, compatible_with, host, .. } = self;
        let [version, compatible_with, host] = [version, compatible_with, host].map(|text| harmless(text));
        format!("portolan {version} ({compatible_with} compatible)  {place} {host}  up {up}")
    }

    fn serving_text(&self) -> String {
        match self.serving {
            Serving::Ready => "✓ serving".to_owned(),
            Serving::NotReady => format!("✗ not ready: {}", harmless(&self.unready.join(", "))),
            Serving::Ending => "✗ shutting down".to_owned(),
        }
    }

    fn write_problems(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.problems.is_empty() {
            return writeln!(out, "  no problems");
        }
        for problem in &self.problems {
            writeln!(out, "    {}  {}", harmless(problem.code.name()), harmless(&problem.text))?;
        }
        writeln!(out, "  {}: portolan doctor", counted(self.problems.len() as u64, "problem"))
    }
}

/// Writes a line with a title.
fn row(out: &mut fmt::Formatter<'_>, title: &str, text: &str) -> fmt::Result {
    writeln!(out, "  {title:<11}  {text}")
}

/// Joins two parts, the second in its own column if the first leaves room.
fn pair(first: &str, second: &str) -> String {
    let gap = SECOND_COLUMN.saturating_sub(first.chars().count()).max(3);
    format!("{first}{}{second}", " ".repeat(gap))
}

impl Corefile {
    /// Describes the configuration in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let mark = if self.refused.is_none() { '✓' } else { '✗' };
        let hash = shown_hash(&self.hash);
        let (age, blocks, warnings) =
            (duration(self.age_seconds), counted(self.blocks, "block"), counted(self.warnings, "warning"));
        let mut text =
            format!("{mark} generation {}, sha {hash}, loaded {age} ago · {blocks}, {warnings}", self.generation);
        if let Some(refused) = &self.refused {
            let _ = write!(text, " · a newer one was refused {} ago", duration(refused.age_seconds));
        }
        text
    }
}

impl Corefile {
    fn write_warnings(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.first_warnings.iter().take(WARNINGS_SHOWN);
        shown.clone().try_for_each(|warning| row(out, "", &format!("‼ {}", shortened(warning))))?;
        match self.warnings.saturating_sub(shown.len() as u64) {
            0 => Ok(()),
            more => row(out, "", &format!("and {}: portolan check --files", counted(more, "more warning"))),
        }
    }
}

impl Cluster {
    fn write(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        row(out, "Kubernetes", &self.text())?;
        let resources = self.resources_text();
        if resources.is_empty() { Ok(()) } else { row(out, "", &resources.join(" · ")) }
    }

    /// Describes the resources. Those whose watches fail with the same error share a text, at the place of the first.
    fn resources_text(&self) -> Vec<String> {
        let mut texts = Vec::new();
        for (at, resource) in self.resources.iter().enumerate() {
            let fails_alike = |other: &&Resource| resource.fails() && other.fails() && other.error == resource.error;
            if self.resources[..at].iter().any(|earlier| fails_alike(&earlier)) {
                continue;
            }
            let alike: Vec<&Resource> = self.resources.iter().filter(fails_alike).collect();
            texts.push(if alike.len() > 1 { Resource::text_of_all(&alike) } else { resource.text() });
        }
        texts
    }

    /// Describes the view of the cluster in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let fails = self.resources.iter().any(|resource| resource.state == WatchState::Failing);
        let is_stale = self.age_seconds.zip(self.stale_after_seconds).is_some_and(|(age, limit)| age >= limit);
        let mark = if self.synced && !fails && !is_stale { '✓' } else { '✗' };
        let state = match (self.synced, self.from_snapshot) {
            (true, _) => "synced",
            (false, true) => "from a snapshot, not synced",
            (false, false) => "not synced",
        };
        let mut parts = vec![format!("{mark} {state}")];
        let stale = if is_stale { ", answers are marked as stale" } else { "" };
        parts.extend(self.age_seconds.map(|age| format!("view {} old{stale}", duration(age))));
        parts.push(format!("{} {}", counted(self.services, "service"), counted(self.endpoints, "endpoint")));
        parts.push(self.servers());
        parts.extend(self.snapshot_age_seconds.map(|age| format!("snapshot {} ago", duration(age))));
        parts.join(" · ")
    }
}

impl Cluster {
    /// Names the API server, or with relays what the watches use, and for how long.
    fn servers(&self) -> String {
        let used = self.resources.iter().filter_map(|one| Some((one.server.as_deref()?, one.server_seconds?)));
        let mut servers: Vec<(&str, f64)> = Vec::new();
        for (url, since) in used {
            match servers.iter_mut().find(|(known, _)| *known == url) {
                Some((_, known)) => *known = known.min(since),
                None => servers.push((url, since)),
            }
        }
        if servers.is_empty() {
            return harmless(&self.source);
        }
        let texts: Vec<String> =
            servers.iter().map(|(url, since)| format!("{} for {}", harmless(url), duration(*since))).collect();
        texts.join(" and ")
    }
}

impl Resource {
    fn fails(&self) -> bool {
        self.state == WatchState::Failing && self.failing_seconds.is_some()
    }

    /// Describes resources whose watches fail with the same error.
    fn text_of_all(all: &[&Resource]) -> String {
        let names: Vec<String> =
            all.iter().map(|one| format!("{} {}", harmless(&one.name), count(one.objects))).collect();
        let longest = all.iter().filter_map(|one| one.failing_seconds).fold(0.0, f64::max);
        let error = all.first().and_then(|one| one.error.as_deref());
        let error = shortened(error.unwrap_or("unknown error"));
        format!("{}, ✗ all failing for {}: {error}", names.join(", "), duration(longest))
    }

    fn text(&self) -> String {
        let (name, objects) = (harmless(&self.name), &self.objects);
        match (self.state, self.failing_seconds) {
            (WatchState::Listing, None) => {
                let since = self.listing_seconds.map_or(String::new(), |since| format!(" for {}", duration(since)));
                format!("{name} not listed{since}")
            }
            (WatchState::Current, _) | (_, None) => {
                let age = self.age_seconds.map_or(String::new(), |age| format!(", {}", duration(age)));
                format!("{name} {}{age}", count(*objects))
            }
            (_, Some(failing)) => {
                let error = shortened(self.error.as_deref().unwrap_or("unknown error"));
                format!("{name} {}, ✗ failing for {}: {error}", count(*objects), duration(failing))
            }
        }
    }
}

fn shortened(error: &str) -> String {
    let error = harmless(error);
    match error.char_indices().nth(ERROR_SHOWN) {
        Some((end, _)) => format!("{}…", &error[..end]),
        None => error,
    }
}

impl Answers {
    fn text(&self) -> String {
        let lost = self.lost.map_or("lost unknown".to_owned(), |lost| format!("lost {}", count(lost)));
        let Some(per_second) = self.per_second else {
            return format!("not counted: no server block has `prometheus` · {lost}");
        };
        let mut parts = vec![format!("{} q/s", rate(per_second))];
        let codes = self.codes_text();
        if !codes.is_empty() {
            parts.push(codes);
        }
        if let (Some(p50), Some(p99)) = (self.p50, self.p99) {
            parts.push(format!("p50 {} p99 {}", p50.text(), p99.text()));
        }
        parts.push(lost);
        parts.push(format!("last {}", duration(self.window_seconds)));
        if self.uncounted_blocks > 0 {
            parts.push(format!("not counted: {} without `prometheus`", counted(self.uncounted_blocks, "block")));
        }
        parts.join(" · ")
    }

    /// Shares of the usual response codes, and of the other ones above a hundredth.
    fn codes_text(&self) -> String {
        let total = self.codes.iter().fold(0_u64, |total, code| total.saturating_add(code.answers));
        let is_shown = |code: &str, answers: u64| answers > 0 && CODES_SHOWN.contains(&code) || answers > total / 100;
        let shown = self.codes.iter().filter(|code| is_shown(&code.code, code.answers));
        let shares: Vec<String> =
            shown.map(|code| format!("{} {}", harmless(&code.code), percent(code.answers, total))).collect();
        if shares.is_empty() { String::new() } else { format!("{} %", shares.join(" ")) }
    }
}

impl Latency {
    /// Formats the latency as a bound: `≤ 2.0 ms`.
    #[must_use]
    pub fn text(self) -> String {
        match self.at_most_seconds {
            Some(bound) if self.above_seconds <= 0.0 => format!("< {}", duration(bound)),
            Some(bound) => format!("≤ {}", duration(bound)),
            None => format!("> {}", duration(self.above_seconds)),
        }
    }
}

/// Formats the upstreams, those with trouble first.
fn upstreams(all: &[Upstream]) -> String {
    let mut sorted: Vec<&Upstream> = all.iter().collect();
    sorted.sort_by_key(|upstream| upstream.rank());
    let mut parts: Vec<String> = sorted.iter().take(UPSTREAMS_SHOWN).map(|upstream| upstream.text()).collect();
    if let Some(more) = sorted.len().checked_sub(UPSTREAMS_SHOWN).filter(|more| *more > 0) {
        parts.push(format!("and {more} more"));
    }
    parts.join("   ")
}

impl LoopProbe {
    /// Describes the loop; `None` without one.
    #[must_use]
    pub fn looping_text(&self) -> Option<String> {
        let since = duration(self.looping_seconds?);
        Some(format!("forwarding loop in zone {} for {since}: queries come back to this server", harmless(&self.zone)))
    }
}

impl Upstream {
    pub(super) fn text(&self) -> String {
        let [address, transport] = [&self.address, &self.transport].map(|text| harmless(text));
        let error = || self.error.as_deref().map_or(String::new(), |error| format!(" {}", shortened(error)));
        match self.state {
            UpstreamState::Up => {
                let is_in_trouble = self.is_failing() || self.is_refusing() || self.is_forged();
                let mark = match (is_in_trouble, self.is_idle()) {
                    (true, _) => '‼',
                    (false, true) => '–',
                    (false, false) => '✓',
                };
                let p99 = self.p99.map(|p99| format!("p99 {}", p99.text()));
                let p99 = p99.unwrap_or_else(|| (if self.is_idle() { "no queries" } else { "no replies" }).to_owned());
                let replies = self.refusals_text() + &self.unwanted_text();
                format!("{mark} {address} {transport} {p99}{replies}{}", self.failures_text())
            }
            UpstreamState::Suspected => format!("‼ {address} {transport}{}{}", error(), self.failures_text()),
            UpstreamState::Down => {
                let since = self.down_seconds.map_or(String::new(), |since| format!(" since {}", duration(since)));
                format!("✗ {address} {transport}{}{since} (PD-U02)", error())
            }
        }
    }
}

impl Upstream {
    /// Describes the replies that leave clients without an answer, if there are many.
    #[must_use]
    pub fn refusals_text(&self) -> String {
        if !self.is_refusing() {
            return String::new();
        }
        let code = |code: &CodeCount| format!("{} {}", harmless(&code.code), count(code.answers));
        let codes: Vec<String> = self.refusals.iter().map(code).collect();
        format!(", {} of {} replies", codes.join(" and "), count(self.replies))
    }

    /// Describes the replies that match no query, if there are many.
    #[must_use]
    pub fn unwanted_text(&self) -> String {
        if !self.is_forged() {
            return String::new();
        }
        format!(", {} replies match no query", count(self.unwanted))
    }

    /// Describes the failed exchanges, if there are any.
    #[must_use]
    pub fn failures_text(&self) -> String {
        if self.failures == 0 {
            return String::new();
        }
        let all = self.replies.saturating_add(self.failures);
        let last = self.last_failure.as_ref().map_or(String::new(), |last| {
            format!(", the last {} ago: {}", duration(last.age_seconds), shortened(&last.error))
        });
        format!(", {} of {} failed{last}", count(self.failures), count(all))
    }
}

impl Cache {
    /// Describes the caches in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let Cache { entries, capacity, hits, misses, stale } = self;
        let asked = hits.saturating_add(*misses);
        let hit = if asked == 0 { "no queries".to_owned() } else { format!("hit {} %", percent(*hits, asked)) };
        format!("{} of {} · {hit} · stale served {}", count(*entries), count(*capacity), count(*stale))
    }
}

impl Limits {
    /// Describes the limits that were reached, in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let window = duration(self.window_seconds);
        let reached: Vec<String> = self
            .reached
            .iter()
            .map(|reached| format!("{} {}", harmless(&reached.limit), count(reached.hits)))
            .collect();
        if reached.is_empty() { format!("none in {window}") } else { format!("{} in {window}", reached.join(", ")) }
    }
}

impl Resources {
    /// Describes memory and CPU in one line.
    #[must_use]
    pub fn text(&self) -> String {
        let memory = match (self.memory_bytes, self.memory_limit_bytes) {
            (None, _) => "unknown".to_owned(),
            (Some(used), Some(limit)) => format!("{} of {}", mebibytes_bare(used), mebibytes(limit)),
            (Some(used), None) => format!("{}, no limit", mebibytes(used)),
        };
        let cpu = match (self.cpus, self.cpu_limit) {
            (None, _) => "unknown".to_owned(),
            (Some(used), Some(limit)) => format!("{used:.2} of {limit}"),
            (Some(used), None) => format!("{used:.2}, no limit"),
        };
        let throttled = match self.throttled_share {
            Some(share) if share > 0.0 => format!(", throttled {:.0} %", share * 100.0),
            _ => String::new(),
        };
        format!("Memory {memory} · CPU {cpu}{throttled}")
    }
}
