//! Choice of the encoding, and damaged responses.

use cluster::Request;
use fakeapi::{FakeApi, Fault, service};

use crate::support::{Edge, WEB, request, shop};

#[test]
fn requests_protobuf_for_built_in_kinds() {
    let api = shop();
    let edge = Edge::start(&Request { multicluster: true, ..request(&api) });
    edge.wait_service("shop/web", WEB);
    let is_of_imports = |resource: &str| resource == "serviceimports";
    api.wait_seen("both", |seen| seen.iter().any(|seen| is_of_imports(&seen.resource)));
    for seen in api.seen() {
        let json_only = is_of_imports(&seen.resource);
        let expected = if json_only { "" } else { "application/vnd.kubernetes.protobuf, " };
        assert_eq!(seen.accept, format!("{expected}application/json"), "{}", seen.resource);
    }
}

#[test]
fn accepts_another_encoding_after_a_restart() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    api.down();
    api.json_only();
    api.put(service("shop", "web", "10.96.0.12"));
    api.up();
    edge.wait_service("shop/web", "10.96.0.12 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
}

#[test]
fn switches_to_json_after_corrupt_protobuf() {
    let whole = [Some(Fault::Corrupt(0)), None];
    let page = [Some(Fault::NoStreamingLists), Some(Fault::Corrupt(0)), None];
    for faults in [&whole[..], &page[..]] {
        let api = shop();
        api.script("services", faults.iter().copied());
        let edge = Edge::start(&request(&api));
        edge.wait_synced();
        assert_eq!(edge.service("shop/web"), WEB);
        check_json_is_asked(&api, &edge);
    }
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    // The first request checks that the server still has the version.
    api.script("services", [None, Some(Fault::Corrupt(0))]);
    api.drop_connections();
    api.put(service("shop", "web", "10.96.0.12"));
    edge.wait_service("shop/web", "10.96.0.12 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    check_json_is_asked(&api, &edge);
}

/// Checks that one failure switched the services, and nothing else, to JSON.
fn check_json_is_asked(api: &FakeApi, edge: &Edge) {
    let failures = "portolan_kubernetes_watch_failures_total{resource=\"services\",reason=\"unexpected\"}";
    assert_eq!(edge.metric(failures), 1.0);
    assert_eq!(edge.logged("[INFO] plugin/kubernetes: Asking for services in JSON from now on"), 1);
    let seen = api.seen();
    let last = |resource: &str| seen.iter().rfind(|seen| seen.resource == resource).unwrap().accept.clone();
    assert_eq!(last("services"), "application/json");
    assert_ne!(last("endpointslices"), "application/json");
}

#[test]
fn a_corrupt_byte_affects_only_its_object() {
    // Offsets after the frame length, the event type and the envelope: within the first object.
    for at in [60, 70, 80, 100, 150, 200] {
        let api = shop();
        for name in ["a", "b", "c"] {
            api.put(service("shop", name, "10.96.0.20"));
        }
        api.script("services", [Some(Fault::Corrupt(at))]);
        let edge = Edge::start(&request(&api));
        edge.wait_synced();
        let known =
            ["a", "b", "c", "web"].iter().filter(|name| edge.service(&format!("shop/{name}")) != "none").count();
        assert!(known >= 3, "{at}: {:?}", edge.lines());
    }
}
