//! Age of the view: a silent watch is proved to be current, and a view that nobody confirms is marked.

use std::cell::Cell;
use std::time::Duration;

use cluster::Request;
use fakeapi::{Fault, ReceivedRequest, service};
use host::Instant;
use kubeapi::{Subscriber, Timing};
use metrics::Registry;

use crate::support::{Edge, WEB, describe, on_a_local_set, quick, request, shop};

const AGE_OF_SERVICES: &str = "portolan_kubernetes_view_age_seconds{resource=\"services\"}";

/// Returns a request that marks answers after this time, and a timing that proves soon.
fn limited(api: &fakeapi::FakeApi, stale_after: Duration) -> (Request, Timing) {
    let timing = Timing { prove: Duration::from_millis(10), age: Duration::from_millis(10), ..quick() };
    (Request { stale_after: Some(stale_after), ..request(api) }, timing)
}

#[test]
fn a_silent_watch_is_proved_to_be_current() {
    let api = shop();
    let (request, timing) = limited(&api, Duration::from_secs(600));
    let edge = Edge::start_with(&request, timing);
    edge.wait_synced();
    for resource in ["namespaces", "services", "endpointslices"] {
        let goal = format!("three proofs of {resource}");
        let proves = |seen: &&ReceivedRequest| seen.resource == resource && seen.is_proof();
        api.wait_seen(&goal, |seen| seen.iter().filter(proves).count() >= 3);
    }
    assert!(edge.metrics().contains(AGE_OF_SERVICES), "{}", edge.metrics());
    assert_eq!(edge.index.stale_seconds(), None);
    // Proofs end no watch: events still arrive.
    api.put(service("shop", "web", "10.96.0.77"));
    edge.wait_service("shop/web", "10.96.0.77 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    assert_eq!(edge.watch_failures(), 0.0);
    assert!(edge.metric("portolan_kubernetes_received_bytes_total{resource=\"services\"}") > 100.0);
}

#[test]
fn asks_for_no_proof_without_a_limit() {
    let api = shop();
    let edge = Edge::start_with(&request(&api), Timing { prove: Duration::ZERO, ..quick() });
    edge.wait_synced();
    api.put(service("shop", "new", "10.96.0.40"));
    edge.wait_service("shop/new", "10.96.0.40 http:80/TCP");
    assert!(!api.seen().iter().any(ReceivedRequest::is_proof));
}

#[test]
fn marks_the_index_while_nobody_confirms_it() {
    let api = shop();
    let (request, timing) = limited(&api, Duration::from_secs(1));
    let edge = Edge::start_with(&request, timing);
    edge.wait_synced();
    api.down();
    edge.wait("the view is stale", |index| index.stale_seconds().is_some());
    edge.wait_log("[WARNING] plugin/kubernetes: The view of http://");
    assert_eq!(edge.service("shop/web"), WEB);
    assert!(edge.metric(AGE_OF_SERVICES) >= 1.0);
    api.up();
    edge.wait("the view is current again", |index| index.stale_seconds().is_none());
    edge.wait_log("[INFO] plugin/kubernetes: The view of http://");
}

/// An API server that accepts watches and answers nothing else proves nothing.
#[test]
fn a_watch_that_only_stays_open_is_no_proof() {
    let api = shop();
    let (request, timing) = limited(&api, Duration::from_secs(1));
    let edge = Edge::start_with(&request, Timing { response: Duration::from_millis(500), ..timing });
    edge.wait_synced();
    api.fault("services", Fault::Stall);
    edge.wait("the view is stale", |index| index.stale_seconds().is_some());
    api.heal("services");
    edge.wait("the view is current again", |index| index.stale_seconds().is_none());
}

thread_local! {
    static START: Cell<Option<tokio::time::Instant>> = const { Cell::new(None) };
}

/// Returns the time of the runtime, which tests can move.
fn time_of_runtime() -> Instant {
    let now = tokio::time::Instant::now();
    let start = START.get().unwrap_or(now);
    START.set(Some(start));
    Instant::START + now.duration_since(start)
}

#[test]
fn tells_its_age_for_a_day_without_an_api_server() {
    const STALE_AFTER: Duration = Duration::from_secs(30);
    const SECOND: Duration = Duration::from_secs(1);
    let api = shop();
    on_a_local_set(async move {
        let timing = Timing { clock: time_of_runtime, ..Timing::default() };
        let subscriber = Subscriber::with_timing(&Registry::new(), timing);
        let request = Request { stale_after: Some(STALE_AFTER), ..request(&api) };
        let subscription = subscriber.subscribe(&request).unwrap();
        let (index, health) = (&subscription.index, &subscription.health);
        while !index.is_synced() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        api.down();
        tokio::time::pause();
        let (_, known) = health.oldest().unwrap();
        let away = tokio::time::Instant::now() - known;
        for pause in [SECOND; 60].into_iter().chain([Duration::from_secs(3600); 24]) {
            tokio::time::sleep(pause).await;
            let truth = away.elapsed();
            let shown = health.oldest().unwrap().1;
            assert!(truth.abs_diff(shown) <= SECOND, "{truth:?} {shown:?}");
            match index.stale_seconds().map(u64::from) {
                Some(age) => assert!(truth.as_secs().abs_diff(age) <= 1 && truth >= STALE_AFTER, "{truth:?} {age}"),
                None => assert!(truth < STALE_AFTER + 2 * SECOND, "{truth:?}"),
            }
            assert_eq!(index.service(b"shop", b"web", describe).unwrap(), WEB);
        }
    });
}
