//! Events that the API server leaves out: the number of objects shows them, and a list brings them.

use std::time::Duration;

use cluster::Request;
use fakeapi::{FakeApi, ReceivedRequest, object, service};
use kubeapi::Timing;
use serde_json::json;

use crate::support::{Edge, folder, quick, request, shop};

const NEW: &str = "10.96.0.40 http:80/TCP";
const MISSED: &str = "portolan_kubernetes_watch_failures_total{resource=\"services\",reason=\"missed\"}";
const BY_PAGES: &str = "portolan_kubernetes_lists_total{resource=\"services\",way=\"pages\"}";

fn counts(resource: &str, result: &str) -> String {
    format!("portolan_kubernetes_counts_total{{resource=\"{resource}\",result=\"{result}\"}}")
}

/// Returns a timing that compares often.
fn comparing() -> Timing {
    Timing { count: Duration::from_millis(20), ..quick() }
}

fn asks(api: &FakeApi, resource: &str) -> bool {
    let is_count = |seen: &ReceivedRequest| seen.parameter("resourceVersionMatch") == "Exact";
    api.seen().iter().any(|seen| seen.resource == resource && is_count(seen))
}

#[test]
fn what_was_added_or_deleted_without_an_event_is_found() {
    let api = shop();
    let edge = Edge::start_with(&request(&api), comparing());
    edge.wait_synced();
    api.put_unseen(service("shop", "new", "10.96.0.40"));
    // Only with the next version is the event missing.
    api.bookmark();
    edge.wait_service("shop/new", NEW);
    edge.wait_metric(BY_PAGES, 1.0);
    assert_eq!((edge.metric(MISSED), edge.metric(BY_PAGES)), (1.0, 1.0));
    edge.wait_log(
        "[WARNING] plugin/kubernetes: Failed to watch services: its watch has left out events: 1 objects are",
    );
    api.delete_unseen("services", "shop", "new");
    api.bookmark();
    edge.wait_service("shop/new", "none");
    edge.wait_metric(BY_PAGES, 2.0);
    assert_eq!((edge.metric(MISSED), edge.metric(BY_PAGES)), (2.0, 2.0));
    let equal = edge.metric(&counts("services", "equal"));
    edge.wait_metric(&counts("services", "equal"), equal + 3.0);
    assert_eq!(edge.metric(MISSED), 2.0);
}

#[test]
fn changes_that_are_seen_are_counted_exactly() {
    let api = shop();
    // It has no valid form, and is counted.
    let unreadable = |name: &str| object("Service", "shop", name, json!({ "spec": { "ports": "none" } }));
    api.put(unreadable("first"));
    let edge = Edge::start_with(&request(&api), Timing { count: Duration::from_millis(1), ..quick() });
    edge.wait_synced();
    for round in 0..50 {
        api.put(service("shop", "new", &format!("10.96.1.{round}")));
        api.put(unreadable("later"));
        api.delete("services", "shop", "later");
        if round % 3 == 0 {
            api.delete("services", "shop", "new");
        }
        if round % 10 == 0 {
            api.drop_connections();
        }
    }
    for resource in ["namespaces", "services", "endpointslices"] {
        edge.wait_metric(&counts(resource, "equal"), 5.0);
        assert_eq!(edge.metric(&counts(resource, "different")), 0.0, "{resource}");
    }
}

#[test]
fn a_process_that_resumes_counts_from_the_first_answer() {
    let (api, folder) = (shop(), folder("omitted"));
    let request = Request { snapshot: Some(folder.join("snapshot")), ..request(&api) };
    drop({
        let edge = Edge::start_with(&request, quick());
        edge.wait_synced();
        edge.wait("the snapshot", |_| folder.join("snapshot").exists());
        edge
    });
    let edge = Edge::start_with(&request, comparing());
    edge.wait_synced();
    edge.wait_metric(&counts("services", "equal"), 1.0);
    assert!(edge.metric(&counts("services", "unknown")) >= 1.0);
    api.put_unseen(service("shop", "new", "10.96.0.40"));
    api.bookmark();
    edge.wait_service("shop/new", NEW);
}

/// An API server does not say how many objects a selector matches.
#[test]
fn only_whole_collections_are_counted() {
    let api = shop();
    let request = Request { labels: "a!=b".to_owned(), ..request(&api) };
    let edge = Edge::start_with(&request, comparing());
    edge.wait_synced();
    edge.wait_metric(&counts("namespaces", "equal"), 3.0);
    assert!(!asks(&api, "services") && asks(&api, "namespaces"));
}

#[test]
fn a_version_that_was_compacted_is_not_compared() {
    let api = shop();
    let edge = Edge::start_with(&request(&api), comparing());
    edge.wait_synced();
    api.compact();
    edge.wait_metric(&counts("services", "unknown"), 3.0);
    assert_eq!(edge.watch_failures(), 0.0);
    api.bookmark();
    let equal = edge.metric(&counts("services", "equal"));
    edge.wait_metric(&counts("services", "equal"), equal + 1.0);
}
