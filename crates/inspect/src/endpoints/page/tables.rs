//! Tables of upstreams, of the largest groups of queries, and of the last failures.

use control::query::url;
use control::status::{Latency, Status, Upstream, UpstreamState};
use control::tail::Event;
use control::text::{count, duration, ede_meaning, harmless};
use control::top::{By, Row, Top, columns};
use engine::tap::SLOW;
use maud::{Markup, html};

use super::{boxed, plain, time_of_day};

/// Maximum number of upstreams that are shown.
const UPSTREAMS_MAX: usize = 20;
/// Queries per useful answer from which a row is marked.
const WASTE_MARKED: f64 = 3.0;
/// Maximum number of failures that are shown; equal ones from the cache are one.
const FAILURES_MAX: usize = 20;
/// Extended DNS Error of an answer with a failure from the cache: Cached Error (RFC 8914 §4.14).
const EDE_CACHED_ERROR: u64 = 13;
/// Maximum length of a name in bytes that can be explained by a link. Longer ones can be typed.
const LINKED_MAX: usize = 255;

/// Renders the upstreams, those with trouble first.
pub(super) fn upstreams(status: &Status) -> Markup {
    let mut upstreams: Vec<&Upstream> = status.upstreams.iter().collect();
    host::sorting::sort_by_key(&mut upstreams, |upstream| upstream.rank());
    let more = upstreams.len().saturating_sub(UPSTREAMS_MAX);
    if upstreams.is_empty() {
        return html! { p.note { "None: no server block has " code { "forward" } "." } };
    }
    let table = html! {
        table {
            caption { "Upstreams of forward, those with trouble first; replies of the last minute" }
            thead {
                tr {
                    th scope="col" { "Upstream" }
                    th scope="col" { "State" }
                    th.number scope="col" { "p99" }
                    th.number scope="col" { "Replies" }
                    th.number scope="col" { "Failed" }
                    th scope="col" { "Last error" }
                }
            }
            tbody { @for upstream in upstreams.iter().take(UPSTREAMS_MAX) { (upstream_row(upstream)) } }
        }
    };
    html! {
        (boxed("upstreams", &table))
        @if more > 0 { p.note { (count(more as u64)) " more are left out; " code { "/v1/status" } " has all." } }
    }
}

fn upstream_row(upstream: &Upstream) -> Markup {
    let since = upstream.down_seconds.map_or(String::new(), |seconds| format!(" for {}", duration(seconds)));
    let (class, state) = match upstream.state {
        UpstreamState::Up if upstream.is_failing() => ("warn", "‼ failing".to_owned()),
        UpstreamState::Up if upstream.is_refusing() => ("warn", "‼ refusing".to_owned()),
        UpstreamState::Up if upstream.is_forged() => ("warn", "‼ forged replies".to_owned()),
        UpstreamState::Up if upstream.is_idle() => ("", "– no queries".to_owned()),
        UpstreamState::Up => ("good", "✓ up".to_owned()),
        UpstreamState::Suspected => ("warn", "‼ suspected".to_owned()),
        UpstreamState::Down => ("bad", format!("✗ down{since}")),
    };
    let failure = upstream.last_failure.as_ref().map(|last| last.error.as_str());
    let replies = upstream.refusals_text() + &upstream.unwanted_text();
    let replies = Some(replies.trim_start_matches(", ")).filter(|text| !text.is_empty());
    let error = upstream.error.as_deref().or(replies).or(failure);
    html! {
        tr {
            th scope="row" { (plain(&upstream.address)) " " span.note { (plain(&upstream.transport)) } }
            td class=(class) { (state) }
            td.number { (upstream.p99.map_or("–".to_owned(), Latency::text)) }
            td.number { (count(upstream.replies)) }
            td.number { (count(upstream.failures)) }
            td { (plain(error.unwrap_or("–"))) }
        }
    }
}

/// Renders the largest groups.
pub(super) fn top(top: &Top) -> Markup {
    let id = if top.by == By::Name { "names" } else { "pods" };
    let (columns, covered) = (columns(top.by), duration(top.covered_seconds));
    let sample =
        if top.sampled_one_of > 1 { format!("; 1 of {} counted", count(top.sampled_one_of)) } else { String::new() };
    if top.rows.is_empty() {
        return html! { p.note { "No queries in the last " (covered) "." } };
    }
    let table = html! {
        table {
            caption { "Last " (covered) (sample) ". Waste: queries per useful answer, ‼ from " (WASTE_MARKED) "×" }
            thead {
                tr { @for column in &columns { th.number[column.is_number] scope="col" { (heading(column.title)) } } }
            }
            tbody { @for row in &top.rows { (top_row(top, row)) } }
        }
    };
    boxed(id, &table)
}

/// Returns the title of a column as a word. `portolan top` writes it in capitals.
fn heading(title: &str) -> &str {
    match title {
        "POD" => "Client",
        "NAME" => "Name",
        "Q/S" => "Queries/s",
        "P99" => "p99",
        "WASTE" => "Waste",
        "TOP NAME" => "Asks most for",
        other => other,
    }
}

fn top_row(top: &Top, row: &Row) -> Markup {
    let columns = columns(top.by);
    let counts = row.counts;
    let is_wasteful = counts.waste.map_or(counts.queries > 0, |waste| waste >= WASTE_MARKED);
    let cells = columns.iter().zip(top.cells(row));
    html! {
        tr {
            @for (at, (column, cell)) in cells.enumerate() {
                @if at == 0 { th scope="row" { (cell) } }
                @else if column.title == "WASTE" && is_wasteful { td.number.warn { "‼ " (cell) } }
                @else { td.number[column.is_number] { (cell) } }
            }
        }
    }
}

/// Failures that are shown as one row: the latest of them, their number, and the number of their clients.
struct Group<'a> {
    latest: &'a Event,
    events: usize,
    clients: Vec<&'a str>,
}

/// Groups failures from the cache that repeat a failure: an upstream that fails once can fail thousands of queries.
/// Other failures have reasons of their own.
fn grouped(failures: &[Event]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for event in failures {
        let is_same = |group: &&mut Group<'_>| {
            let other = group.latest;
            event.ede == Some(EDE_CACHED_ERROR)
                && (event.ede, &event.name, &event.qtype, &event.rcode)
                    == (other.ede, &other.name, &other.qtype, &other.rcode)
        };
        let client = event.client.address.as_str();
        match groups.iter_mut().find(is_same) {
            Some(group) => {
                group.events += 1;
                if !group.clients.contains(&client) {
                    group.clients.push(client);
                }
            }
            None => groups.push(Group { latest: event, events: 1, clients: vec![client] }),
        }
    }
    groups.truncate(FAILURES_MAX);
    groups
}

/// Renders the last failures, latest first. `links` is false if names are hidden.
pub(super) fn failures(failures: &[Event], links: bool) -> Markup {
    if failures.is_empty() {
        return html! { p.note { "No query has failed since the start." } };
    }
    let table = html! {
        table {
            caption { "Failed, refused, truncated and slow queries, latest first; a name leads to its explanation" }
            thead {
                tr {
                    th scope="col" { "Time (UTC)" }
                    th scope="col" { "Client" }
                    th scope="col" { "Query" }
                    th scope="col" { "Result" }
                    th scope="col" { "Why" }
                    th.number scope="col" { "Took" }
                }
            }
            tbody { @for group in &grouped(failures) { (failure_row(group, links)) } }
        }
    };
    boxed("failures", &table)
}

fn failure_row(group: &Group<'_>, links: bool) -> Markup {
    let event = group.latest;
    let client = match group.clients.len() {
        1 => event.client.text(),
        clients => format!("{} clients", count(clients as u64)),
    };
    let times = if group.events > 1 { format!(" ({} times)", count(group.events as u64)) } else { String::new() };
    let qtype = event.qtype.as_deref().unwrap_or_default();
    let link = (links && !event.name.is_empty() && event.name.len() <= LINKED_MAX).then(|| {
        let parameters = [("name", event.name.as_str()), ("type", qtype), ("from", &event.client.address)];
        format!("{}#explain", url("/", &parameters))
    });
    let name = if event.name.is_empty() { "(unreadable)".to_owned() } else { plain(&event.name) };
    html! {
        tr {
            td { (plain(time_of_day(&event.time))) }
            td { (plain(&client)) }
            th scope="row" {
                @if let Some(link) = link { a href=(link) { (name) } } @else { (name) }
                " " span.note { (plain(qtype)) }
            }
            td.bad { (plain(event.rcode.as_deref().unwrap_or("no response"))) }
            td { (plain(&(why(event) + &times))) }
            td.number { (duration(event.took_seconds)) }
        }
    }
}

/// Returns the reason for a failure, as far as its record shows it.
fn why(event: &Event) -> String {
    let plugin = harmless(event.plugin.as_deref().unwrap_or_default());
    let upstream = event.upstream.as_deref().map(|upstream| format!(" asking {}", harmless(upstream)));
    let who = match plugin.as_str() {
        "" => "the server".to_owned(),
        plugin => format!("{plugin}{}", upstream.unwrap_or_default()),
    };
    let reason = event.ede.and_then(ede_meaning);
    match (event.rcode.as_deref(), reason) {
        (None, _) => format!("{who} dropped the query"),
        (Some(_), Some(reason)) => format!("{who}: {reason}"),
        (Some("SERVFAIL"), None) => format!("{who} failed"),
        (Some("REFUSED"), None) if plugin.is_empty() => {
            "no server block serves the name, or no plugin answered".to_owned()
        }
        (Some("REFUSED"), None) => format!("{who} refused"),
        (Some("FORMERR"), None) => "the message is not a valid query".to_owned(),
        (Some("NOTIMP"), None) => "the kind of query is not supported".to_owned(),
        _ if event.truncated => "too large for UDP; the client asks again over TCP".to_owned(),
        _ if event.took_seconds >= SLOW.as_secs_f64() => format!("{who} was slow"),
        _ => who,
    }
}
