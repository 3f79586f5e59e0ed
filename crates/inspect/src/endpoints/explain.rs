//! Explanation of an answer.

use control::explain::Explained;
use control::query::Parameters;
use control::text::duration;

use std::net::SocketAddr;

use super::super::context::Context;
use super::super::refusal::Refusal;
use crate::dns_service;
use crate::explain::{Asked, Explainer, Located};

/// Reads the client from the source of its cluster.
pub(super) async fn locate(context: &Context, parameters: &Parameters) -> Option<Located> {
    let (from, loaded) = (parameters.get("from")?, context.view.loaded());
    crate::explain::locate(from, &context.view.clusters.sources(), &loaded.inspection).await
}

/// Explains the answer to a question, with the plugins and caches that serve now.
pub(super) fn explain(
    context: &Context,
    parameters: &Parameters,
    located: Option<Located>,
) -> Result<Explained, Refusal> {
    let (generation, loaded) = (context.view.live.load(), context.view.loaded());
    let mut explainer = Explainer::new(&generation, &loaded.outline, &loaded.inspection);
    explainer.old_view = old_view(context);
    explainer.located = located;
    explainer.bound.clone_from(&loaded.bound);
    explainer.cluster_dns = dns_service::addresses(&context.view.clusters, &process::local::addresses().0);
    // A node cache is asked at an address of its own.
    let bound = loaded.bound.values().map(SocketAddr::ip);
    explainer.cluster_dns.extend(bound.filter(|address| !address.is_unspecified() && !address.is_loopback()));
    let asked = Asked {
        name: parameters.get("name").unwrap_or_default(),
        qtype: parameters.get("type"),
        from: parameters.get("from"),
        server: parameters.get("server"),
        denied: parameters.get("denied").unwrap_or_default(),
    };
    explainer.explain(&asked).map_err(|error| Refusal::invalid(error.to_string()))
}

/// Describes the watch of the API server that fails worst.
fn old_view(context: &Context) -> Option<String> {
    let clusters = context.view.clusters.all();
    let resources = clusters.into_iter().flat_map(|cluster| cluster.resources);
    let failing = resources.filter_map(|resource| resource.failing.map(|(since, error)| (resource.kind, since, error)));
    // A watch that the API server refuses does not recover without a change, unlike one whose connection broke.
    let worst = failing.max_by_key(|(_, since, error)| (error.contains("403"), *since));
    worst.map(|(kind, since, error)| {
        let kind = kind.plural().to_lowercase();
        format!("the watch of {kind} has been failing for {}: {error}", duration(since.as_secs_f64()))
    })
}
