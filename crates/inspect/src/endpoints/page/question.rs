//! Form that asks for an explanation, and the explanation.

use control::explain::{Explained, Step};
use control::text::counted;
use maud::{Markup, html};

use super::{Question, boxed, plain};

/// Maximum number of queries of an explanation: a search path has at most six domains more than the name.
const STEPS_MAX: usize = 8;
/// Maximum number of records or upstreams of a query.
const DETAILS_MAX: usize = 6;

/// Renders form and explanation.
pub(super) fn part(question: &Question) -> Markup {
    html! {
        (form(question))
        @match &question.answer {
            None => {}
            Some(Err(refusal)) => p.bad role="alert" { "✗ " (plain(&refusal.message)) },
            Some(Ok(explained)) => (explanation(explained)),
        }
    }
}

fn form(question: &Question) -> Markup {
    html! {
        form action="/#explain" method="get" {
            (field("name", "Name", "api.shop or www.example.org.", &question.name, true))
            (field("type", "Type", "A", &question.qtype, false))
            (field("from", "Client", "NAMESPACE/POD or address", &question.from, false))
            button { "Explain" }
        }
    }
}

fn field(name: &str, label: &str, example: &str, value: &str, is_required: bool) -> Markup {
    let id = format!("ask-{name}");
    html! {
        p {
            label for=(id) { (label) }
            input id=(id) name=(name) value=(plain(value)) placeholder=(example) required[is_required]
                autocomplete="off" autocapitalize="none" spellcheck="false" maxlength="300";
        }
    }
}

fn explanation(explained: &Explained) -> Markup {
    let (name, qtype) = (&explained.question.name, &explained.question.qtype);
    let title = format!("{} of {} {}", counted(explained.steps.len() as u64, "name"), plain(name), plain(qtype));
    html! {
        dl.why {
            div { dt { "Why" } dd { (plain(&explained.why.text)) " [" (plain(&explained.why.code)) "]" } }
            @if let Some(advice) = &explained.advice { div { dt { "Do" } dd { (plain(advice)) } } }
            @for note in explained.notes() { div { dt { "Note" } dd { (plain(&note)) } } }
            @if let Some(search) = &explained.search {
                div { dt { "Search path" } dd { (plain(&search.to_string())) } }
            }
        }
        (boxed("explain", &html! {
            table {
                caption { (title) ", in the order of the client" }
                thead { tr { th scope="col" { "Name" } th scope="col" { "Result" } th scope="col" { "Origin" } } }
                tbody { @for step in explained.steps.iter().take(STEPS_MAX) { (row(step)) } }
            }
        }))
    }
}

fn row(step: &Step) -> Markup {
    let passages = step.trail.iter().map(|passage| format!("{} {}: {}", passage.plugin, passage.place, passage.did));
    let upstreams = step.upstreams.iter().map(ToString::to_string);
    let records = step.records.iter().cloned();
    let not_ready = step.not_ready.iter().map(ToString::to_string);
    let details: Vec<String> = passages.chain(records).chain(not_ready).chain(upstreams).collect();
    html! {
        tr {
            th scope="row" { (plain(&step.name)) }
            td { (plain(&step.result())) }
            td {
                (plain(&step.origin()))
                @if !details.is_empty() {
                    ul { @for detail in details.iter().take(DETAILS_MAX) { li { (plain(detail)) } } }
                }
                @if details.len() > DETAILS_MAX { p.note { "and " (details.len() - DETAILS_MAX) " more" } }
            }
        }
    }
}
