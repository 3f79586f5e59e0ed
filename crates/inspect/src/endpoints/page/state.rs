//! Header, problems, and the state in words.

use control::status::{Problem, Serving, Status};
use control::text::{count, counted, duration};
use maud::{Markup, html};

use super::{Content, Room, plain, time_of_day};

/// Maximum number of clusters that are shown.
const CLUSTERS_MAX: usize = 4;
/// Maximum number of problems that are shown.
const PROBLEMS_MAX: usize = 12;

/// Returns the state in a few words, for the title.
pub(super) fn summary(status: &Status) -> String {
    let problems = status.problems.len() as u64;
    match status.serving {
        Serving::Ending => "✗ shutting down".to_owned(),
        Serving::NotReady => "✗ not ready".to_owned(),
        Serving::Ready if problems > 0 => format!("✗ {}", counted(problems, "problem")),
        Serving::Ready => "✓ serving".to_owned(),
    }
}

/// Renders the strip at the top.
pub(super) fn header(content: &Content) -> Markup {
    let Content { status, time, .. } = content;
    let age = status.clusters.iter().filter_map(|cluster| cluster.age_seconds).reduce(f64::max);
    html! {
        header {
            h1 { (plain(&status.host)) }
            p.state.good[status.is_fine()].bad[!status.is_fine()] role="status" { (summary(status)) }
            ul {
                li { "portolan " (plain(&status.version)) " (" (plain(&status.compatible_with)) " compatible)" }
                li { "up " (duration(status.uptime_seconds)) }
                li { "generation " (count(status.corefile.generation)) }
                @if let Some(age) = age { li { "view of the cluster " (duration(age)) " old" } }
                li { "as of " time datetime=(time) { (time_of_day(time)) " UTC" } }
            }
            p #lost hidden role="alert" data-keep {
                "The server does not respond. All numbers are from the time above."
            }
        }
    }
}

/// Renders the problems. Nothing is shown without any.
pub(super) fn problems(status: &Status, room: &mut Room) -> Markup {
    let problems = &status.problems;
    let items = problems.iter().take(PROBLEMS_MAX).map(item).filter(|item| room.take(item));
    let items: Vec<Markup> = items.collect();
    let more = problems.len() - items.len();
    html! {
        section.problems hidden[problems.is_empty()] aria-labelledby="problems" {
            h2 id="problems" { (counted(problems.len() as u64, "problem")) }
            ul { @for item in items { (item) } }
            @if more > 0 { p { "and " (count(more as u64)) " more" } }
        }
    }
}

fn item(problem: &Problem) -> Markup {
    html! { li { strong { (plain(problem.code.name())) } " " (plain(&problem.text)) } }
}

/// Renders the state in words, as `portolan status` does.
pub(super) fn part(status: &Status) -> Markup {
    let cache = status.cache.as_ref().map_or("none".to_owned(), control::status::Cache::text);
    html! {
        dl {
            (row("Corefile", &status.corefile.text()))
            @for cluster in status.clusters.iter().take(CLUSTERS_MAX) { (row("Kubernetes", &cluster.text())) }
            (row("Cache", &cache))
            (row("Limits hit", &status.limits.text()))
            (row("Resources", &status.resources.text()))
            @if let Some(lost) = status.answers.lost { (row("Lost", &lost_text(lost))) }
        }
    }
}

fn lost_text(lost: u64) -> String {
    let noun = if lost == 1 { "query" } else { "queries" };
    format!("{} {noun} since the start, because socket buffers were full", count(lost))
}

fn row(name: &str, text: &str) -> Markup {
    html! { div { dt { (name) } dd { (plain(text)) } } }
}
