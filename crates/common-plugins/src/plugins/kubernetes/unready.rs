//! Endpoints that are not ready, in explanations of names that have no records for that reason.

use std::cmp::Ordering;
use std::sync::Arc;

use cluster::{Address, NotReadyEndpoint, Service, Slice};
use engine::{ExplainedEndpoints, Explanation};

use super::name::Part;

/// Maximum number of endpoints in an explanation. A Service may have hundreds of slices.
const LISTED_MAX: usize = 64;

/// Returns the endpoint that a name is about, if it is not ready.
pub(super) fn asked<'a>(service: &'a Service, part: Part<'_>) -> Option<NotReadyEndpoint<'a>> {
    let (label, cluster) = match part {
        Part::Endpoint(label) => (label, None),
        Part::EndpointIn(label, cluster) => (label, Some(cluster)),
        _ => return None,
    };
    let is_in = |slice: &&Arc<Slice>| {
        cluster.is_none_or(|wanted| slice.cluster.as_deref().is_some_and(|own| own.as_bytes() == wanted))
    };
    let mut endpoints = service.slices.iter().filter(is_in).flat_map(|slice| slice.not_ready());
    endpoints.find(|endpoint| endpoint.is_called(label))
}

/// Adds the endpoints of a Service that are not ready.
pub(super) fn with_all(explanation: Explanation, service: &Service) -> Explanation {
    let mut first: Vec<(Option<String>, String)> = service.not_ready().map(shown).collect();
    if first.is_empty() {
        return explanation;
    }
    first.sort_by(named_first);
    first.truncate(LISTED_MAX);
    let count = service.not_ready_count();
    Explanation { not_ready: Some(ExplainedEndpoints { count, first }), ..explanation }
}

/// Returns the name of the first pod in an explanation.
pub(super) fn first_pod(explanation: &Explanation) -> Option<&str> {
    explanation.not_ready.as_ref()?.first.first()?.0.as_deref()
}

fn shown(endpoint: NotReadyEndpoint<'_>) -> (Option<String>, String) {
    let address = match endpoint.address() {
        Address::Ip(ip) => ip.to_string(),
        Address::Name(name) => name.to_owned(),
    };
    (endpoint.pod().map(str::to_owned), address)
}

/// Orders endpoints by the names of their pods. Those without a name are last.
fn named_first(a: &(Option<String>, String), b: &(Option<String>, String)) -> Ordering {
    a.0.is_none().cmp(&b.0.is_none()).then_with(|| a.cmp(b))
}
