//! Status page: one HTML document about the state of the server, what is wrong first.
//!
//! `gather` asks the other endpoints for their data, and the modules with a part of the page each turn it into HTML:
//!
//! ```text
//!   status, top, events, explain ── gather ──► Content ──► state, figures, flow, tables, question, corefile ──► HTML
//! ```
//!
//! The page works without script and loads nothing. With script, it fetches itself every two seconds and changes what
//! differs, so there is one place that formats numbers. `policy` forbids everything else. All texts are escaped by
//! `maud`, and [`plain`] replaces characters that change the direction of writing.

mod corefile;
mod figures;
mod flow;
mod gather;
mod policy;
mod question;
mod state;
mod tables;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use control::explain::Explained;
use control::query::Parameters;
use control::status::Status;
use control::tail::Event;
use control::text::{harmless, shortened};
use control::top::Top;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::super::answer::Answer;
use super::super::context::Context;
use super::super::history::Point;
use super::super::refusal::Refusal;
use corefile::SourceFile;
use flow::Flow;

/// Style of the page.
const STYLE: &str = include_str!("style.css");
/// Script of the page.
const SCRIPT: &str = include_str!("script.js");
/// Maximum size of the page in bytes, so that it is quick over a port-forward and while the server is in trouble.
const PAGE_MAX: usize = 60 << 10;
/// Part of it for the head, the header, the footer, and notes about parts that are left out.
const FRAME_MAX: usize = 4 << 10;
/// Maximum number of characters of a name or a message; the middle of longer ones is left out. Names of Services fit.
const TEXT_MAX: usize = 120;

/// Content of the page.
struct Content {
    status: Status,
    /// Time of the page in RFC 3339.
    time: String,
    /// Figures of the last ten minutes, oldest first.
    history: Vec<Point>,
    flow: Flow,
    /// Largest groups of clients.
    pods: Top,
    /// Most frequent names.
    names: Top,
    /// Last failures, latest first.
    failures: Vec<Event>,
    /// False if the Corefile hides names.
    shows_names: bool,
    files: Vec<SourceFile>,
    question: Question,
}

/// Form of the page, and the explanation that it asked for.
#[derive(Default)]
struct Question {
    name: String,
    qtype: String,
    from: String,
    /// Explanation, or the reason why the question cannot be explained; `None` without a question.
    answer: Option<Result<Explained, Refusal>>,
}

/// Returns the page. `parameters` are the fields of its form.
pub(super) async fn answer(context: &Rc<Context>, parameters: Parameters) -> Result<Answer, Refusal> {
    let content = gather::content(context, parameters).await;
    let policy = policy::header().map_err(|error| Refusal::failed(&error))?;
    Ok(Answer::page(document(&content), policy))
}

/// Renders the page.
fn document(content: &Content) -> String {
    let Content { status, .. } = content;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (state::summary(status)) " – " (plain(&status.host)) }
                // Without it, browsers ask for a file that does not exist.
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                (state::header(content))
                main { (parts(content)) }
                (footer())
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Renders the parts in their order: what is wrong, the answer to a question, numbers, details.
fn parts(content: &Content) -> Markup {
    let Content { status, question, .. } = content;
    let asked = || ("explain", "Explain a name", question::part(question));
    let tops = [
        ("pods", "Clients with most queries", tables::top(&content.pods)),
        ("names", "Names asked for most", tables::top(&content.names)),
    ];
    let mut room = Room { left: PAGE_MAX - FRAME_MAX - STYLE.len() - SCRIPT.len() };
    html! {
        (state::problems(status, &mut room))
        @if question.answer.is_some() { (room.section(asked())) }
        (room.section(("figures", "Figures", figures::part(status, &content.history))))
        (room.section(("state", "State", state::part(status))))
        (room.section(("flow", "Flow of queries", flow::part(&content.flow))))
        (room.section(("upstreams", "Upstreams", tables::upstreams(status))))
        (room.section(("failures", "Last failures", tables::failures(&content.failures, content.shows_names))))
        .pair { @for top in tops { (room.section(top)) } }
        @if question.answer.is_none() { (room.section(asked())) }
        (room.section(("corefile", "Corefile", corefile::part(&content.files))))
    }
}

/// Room that is left on the page, in bytes.
struct Room {
    left: usize,
}

impl Room {
    /// Renders a part with its id and its heading. Without room for it, the page says so in its place.
    fn section(&mut self, (id, title, part): (&str, &str, Markup)) -> Markup {
        let part = if self.take(&part) {
            part
        } else {
            html! { p.note { "Left out: the page would be too large." } }
        };
        html! {
            section aria-labelledby=(id) data-keep[id == "explain"] {
                h2 id=(id) { (title) }
                (part)
            }
        }
    }

    /// Returns true if a part fits, and takes the room for it.
    fn take(&mut self, part: &Markup) -> bool {
        let fits = part.0.len() <= self.left;
        self.left -= if fits { part.0.len() } else { 0 };
        fits
    }
}

fn footer() -> Markup {
    html! {
        footer {
            p {
                "The same as text: " code { "portolan status" } ", " code { "portolan top" } ", "
                code { "portolan tail --last 20" } ", " code { "portolan explain NAME" } ". As JSON: "
                a href="/v1/status" { "/v1/status" } ", " a href="/v1/top" { "/v1/top" } ", "
                a href="/v1/openapi.json" { "all paths" } "."
            }
        }
    }
}

/// Returns a text from outside without characters that change the direction of writing, and not too long.
fn plain(text: &str) -> String {
    shortened(&harmless(text), TEXT_MAX)
}

/// Returns the time of day in a time of RFC 3339, without fractions of a second.
fn time_of_day(time: &str) -> &str {
    time.get(11..19).unwrap_or(time)
}

/// Renders a table in a box of its own, which scrolls if the screen is too narrow for it. `name` is the id of its
/// heading.
fn boxed(name: &str, table: &Markup) -> Markup {
    html! { .box tabindex="0" role="group" aria-labelledby=(name) { (table) } }
}
