//! Facts of the server for `portolan doctor`.

use control::doctor::{ClientCount, CorefileText, ServerFacts};
use control::top::{By, ROWS_MAX, Row, Window};

use super::super::context::Context;
use super::status;

/// Returns the facts: the state of the server, its Corefile without secrets, and who asks for what.
pub(super) fn facts(context: &Context) -> ServerFacts {
    let loaded = context.view.loaded();
    let file = |(name, text): &(String, String)| CorefileText { name: name.clone(), text: text.clone() };
    let client = |Row { key, counts, .. }: Row| ClientCount { client: key, queries: counts.queries };
    let top = context.watch.top(&loaded, By::Pod, Window::Medium, ROWS_MAX);
    ServerFacts {
        status: status::status(context),
        files: loaded.files.iter().map(file).collect(),
        queries_by_type: context.view.registry.totals_by("coredns_dns_requests_total", "type"),
        clients: top.rows.into_iter().map(client).collect(),
    }
}
