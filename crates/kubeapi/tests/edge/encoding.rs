//! Which encoding is asked for, and what becomes of answers in it that are damaged.

use cluster::Request;
use fakeapi::{FakeApi, Fault, service};

use crate::support::{Edge, WEB, request, shop};

#[test]
fn protobuf_is_asked_for_where_there_is_one() {
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
fn a_server_may_come_back_with_another_encoding() {
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
fn where_protobuf_cannot_be_told_apart_json_is_asked_for() {
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
    // First it is asked whether the version is still there.
    api.script("services", [None, Some(Fault::Corrupt(0))]);
    api.drop_connections();
    api.put(service("shop", "web", "10.96.0.12"));
    edge.wait_service("shop/web", "10.96.0.12 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    check_json_is_asked(&api, &edge);
}

/// After one failure, JSON is asked for of the services, and of nothing else.
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
fn a_damaged_octet_costs_no_more_than_its_object() {
    // Behind the length, the type of the event and the envelope: something in the first object.
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
