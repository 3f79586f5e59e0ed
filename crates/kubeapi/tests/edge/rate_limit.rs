//! Client-side rate limiting.

use std::time::Duration;

use cluster::{RateLimit, Request};
use fakeapi::{FakeApi, Fault};

use crate::support::{Edge, WEB, request};

/// Returns the times between the first three requests.
fn gaps(api: &FakeApi) -> Vec<Duration> {
    let seen = api.seen();
    seen.windows(2).take(2).map(|pair| pair[1].at - pair[0].at).collect()
}

#[test]
fn spaces_requests_by_the_configured_interval() {
    let api = FakeApi::with_shop();
    let every = Duration::from_millis(100);
    let edge = Edge::start(&Request { rate_limit: RateLimit { every, burst: 1, in_flight: 0 }, ..request(&api) });
    edge.wait_synced();
    // On a busy machine, the server may receive requests closer together than they were sent.
    assert!(gaps(&api).iter().all(|gap| *gap > every / 2), "{:?}", gaps(&api));
    let host = api.url().strip_prefix("http://").unwrap();
    let held = |what: &str| {
        edge.metric(&format!(
            "coredns_kubernetes_rest_client_rate_limiter_duration_seconds_{what}{{verb=\"GET\",host=\"{host}\"}}"
        ))
    };
    assert_eq!(held("count"), 3.0);
    assert!((0.25..0.35).contains(&held("sum")), "{}", held("sum"));
}

#[test]
fn a_limit_of_one_request_in_flight_serializes_lists() {
    let api = FakeApi::with_shop();
    let pause = Duration::from_millis(50);
    for resource in ["namespaces", "services", "endpointslices"] {
        api.fault(resource, Fault::Slow(100, pause));
    }
    let edge =
        Edge::start(&Request { rate_limit: RateLimit { in_flight: 1, ..RateLimit::default() }, ..request(&api) });
    edge.wait_synced();
    assert!(gaps(&api).iter().all(|gap| *gap >= pause), "{:?}", gaps(&api));
    assert_eq!(edge.service("shop/web"), WEB, "a watch that goes on is no request in flight");
}
