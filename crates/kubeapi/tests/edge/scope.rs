//! Watches that follow the namespaces by their labels.

use cluster::Request;
use fakeapi::{FakeApi, Fault, namespace, service, slice};
use serde_json::Value;

use crate::support::{Edge, WEB, folder, request};

fn following(api: &FakeApi) -> Request {
    Request { namespace_labels: "dns=yes".to_owned(), ..request(api) }
}

fn labelled(name: &str) -> Value {
    let mut namespace = namespace(name);
    namespace["metadata"]["labels"]["dns"] = "yes".into();
    namespace
}

/// Returns the namespaces of all requests for a resource, sorted and without duplicates.
fn asked(api: &FakeApi, resource: &str) -> Vec<String> {
    let seen = api.seen().into_iter().filter(|seen| seen.resource == resource);
    let mut places: Vec<String> = seen.map(|seen| seen.namespace).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Starts an API server with the selected namespace `shop` and the unselected `hidden`.
fn two_namespaces() -> FakeApi {
    let api = FakeApi::with_shop();
    api.put_all([labelled("shop"), namespace("hidden"), service("hidden", "db", "10.96.0.30")]);
    api
}

#[test]
fn watches_only_selected_namespaces() {
    let api = two_namespaces();
    let edge = Edge::start(&following(&api));
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
    assert_eq!(edge.service("hidden/db"), "none");
    assert_eq!((asked(&api, "services"), asked(&api, "endpointslices")), (vec!["shop".into()], vec!["shop".into()]));
    assert_eq!(api.seen().len(), 3);
}

#[test]
fn watches_start_and_stop_with_the_namespace_labels() {
    let api = two_namespaces();
    let edge = Edge::start(&following(&api));
    edge.wait_synced();
    api.put(labelled("hidden"));
    edge.wait_service("hidden/db", "10.96.0.30 http:80/TCP");
    api.put(service("hidden", "db", "10.96.0.31"));
    edge.wait_service("hidden/db", "10.96.0.31 http:80/TCP");
    assert!(edge.index.is_synced(), "a namespace selected later does not revoke the sync");
    api.put(namespace("shop"));
    edge.wait_service("shop/web", "none");
    let gone = "10.1.0.5".parse().unwrap();
    edge.wait("the end of endpoints", |index| {
        let mut owners = 0;
        index.services_of_endpoint(gone, |_, _| owners += 1);
        owners == 0
    });
    // The namespace is not watched any more, so this change is not seen until the label is back.
    api.put(slice("shop", "web", &["10.1.0.7"]));
    api.put(service("hidden", "db", "10.96.0.32"));
    edge.wait_service("hidden/db", "10.96.0.32 http:80/TCP");
    assert_eq!((edge.service("shop/web").as_str(), edge.index.counts().services), ("none", 1));
    api.put(labelled("shop"));
    edge.wait_service("shop/web", "10.96.0.11 http:80/TCP [10.1.0.7 http:8080/TCP]");
    api.delete("namespaces", "", "hidden");
    edge.wait_service("hidden/db", "none");
}

#[test]
fn is_synced_if_no_namespace_is_selected() {
    let api = FakeApi::with_shop();
    let edge = Edge::start(&following(&api));
    edge.wait_synced();
    assert_eq!((api.seen().len(), edge.service("shop/web").as_str()), (1, "none"));
}

fn many(api: &FakeApi) {
    let names: Vec<String> = (0..50).map(|number| format!("ns-{number:02}")).collect();
    api.put_all(names.iter().map(|name| labelled(name)));
    api.put_all(names.iter().map(|name| service(name, "web", "10.96.1.1")));
}

const WIDENED: &str = "portolan_kubernetes_scopes_widened_total";

#[test]
fn watches_the_whole_cluster_if_too_many_namespaces_are_selected() {
    let api = two_namespaces();
    many(&api);
    api.put(namespace("ns-49"));
    let edge = Edge::start(&following(&api));
    edge.wait_synced();
    assert_eq!((edge.index.counts().services, edge.metric(WIDENED)), (50, 0.0));
    assert!(!asked(&api, "services").contains(&String::new()));
    api.put(labelled("ns-49"));
    edge.wait_service("ns-49/web", "10.96.1.1 http:80/TCP");
    edge.wait_log("[WARNING] plugin/kubernetes: 51 namespaces are selected, more than 50: watching everything");
    assert_eq!(edge.metric(WIDENED), 1.0);
    assert_eq!(edge.service("shop/web"), WEB, "the known objects are still served");
    // The remaining connections are for namespaces, services and slices.
    let before = api.seen().len();
    edge.wait_metric("portolan_kubernetes_lists_total{resource=\"endpointslices\",way=\"stream\"}", 51.0);
    api.drop_connections();
    api.wait_seen("the watches again", |seen| seen.len() >= before + 3);
    api.put(service("ns-07", "web", "10.96.1.2"));
    edge.wait_service("ns-07/web", "10.96.1.2 http:80/TCP");
    assert!(api.seen()[before..].iter().all(|seen| seen.namespace.is_empty()), "{:#?}", &api.seen()[before..]);
    api.put(namespace("ns-07"));
    edge.wait("the end of the namespace", |index| !index.namespace_exists(b"ns-07"));
}

#[test]
fn keeps_namespaced_watches_if_cluster_wide_ones_are_forbidden() {
    let api = two_namespaces();
    many(&api);
    api.put(namespace("ns-49"));
    let edge = Edge::start(&following(&api));
    edge.wait_synced();
    api.script("services", std::iter::repeat_n(Some(Fault::Status(403, None)), 1_000_000));
    api.put(labelled("ns-49"));
    edge.wait_metric("portolan_kubernetes_watch_failures_total{resource=\"services\",reason=\"forbidden\"}", 2.0);
    api.put(service("ns-07", "web", "10.96.1.2"));
    edge.wait_service("ns-07/web", "10.96.1.2 http:80/TCP");
    edge.wait_log("[ERROR] plugin/kubernetes: Failed to watch services: the API server says 403");
    let services = cluster::Kinds::of(&[cluster::Kind::Service]);
    assert!(edge.index.knows_in(b"ns-07", services) && !edge.index.knows_in(b"ns-49", services));
    api.heal("services");
    edge.wait_service("ns-49/web", "10.96.1.1 http:80/TCP");
}

#[test]
fn restores_namespaced_watches_from_a_snapshot_and_reconciles_them() {
    let (api, folder) = (two_namespaces(), folder("scope"));
    let request = Request { snapshot: Some(folder.join("snapshot")), ..following(&api) };
    let first = Edge::start(&request);
    first.wait_synced();
    first.wait("a snapshot", |_| request.snapshot.as_ref().unwrap().exists());
    drop(first);
    api.down();
    let edge = Edge::start(&request);
    assert_eq!(edge.service("shop/web"), WEB);
    assert!(edge.index.is_remembered());
    api.put_all([namespace("shop"), labelled("hidden")]);
    api.up();
    edge.wait_service("hidden/db", "10.96.0.30 http:80/TCP");
    edge.wait_service("shop/web", "none");
    edge.wait_synced();
}
