//! Faults of the API server: other objects are still served, the log and the counters report the fault, and the
//! subscription recovers.

use std::time::Duration;

use cluster::Request;
use fakeapi::{FakeApi, Fault, namespace, service, slice};
use kubeapi::Timing;
use serde_json::json;

use crate::support::{Edge, WEB, empty, quick, request, shop};

fn failures(resource: &str, reason: &str) -> String {
    format!("portolan_kubernetes_watch_failures_total{{resource=\"{resource}\",reason=\"{reason}\"}}")
}

const SYNC_AGE: &str = "portolan_kubernetes_sync_age_seconds";
const STREAMED: &str = "portolan_kubernetes_lists_total{resource=\"services\",way=\"stream\"}";

#[test]
fn lists_again_after_an_expired_version() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    api.put(service("shop", "going", "10.96.0.40"));
    edge.wait_service("shop/going", "10.96.0.40 http:80/TCP");
    api.down();
    api.delete("services", "shop", "going");
    api.put(service("shop", "coming", "10.96.0.41"));
    api.compact();
    edge.wait_metric(&failures("services", "connection"), 1.0);
    assert_eq!((edge.service("shop/web"), edge.service("shop/going").as_str() != "none"), (WEB.to_owned(), true));
    api.up();
    edge.wait_service("shop/coming", "10.96.0.41 http:80/TCP");
    edge.wait_service("shop/going", "none");
    assert_eq!(edge.service("shop/web"), WEB);
    assert_eq!(edge.metric(&failures("services", "gone")), 1.0);
    assert_eq!(edge.metric(STREAMED), 2.0);
    assert_eq!(edge.logged("[INFO] plugin/kubernetes: Listing services again"), 1);
}

#[test]
fn lists_again_after_http_status_410() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    api.script("services", [Some(Fault::Status(410, None))]);
    api.drop_connections();
    edge.wait_metric(STREAMED, 2.0);
    assert_eq!(edge.metric(&failures("services", "gone")), 1.0);
}

/// An API server that was restored from a backup accepts a watch from a version newer than the backup, and sends
/// nothing for a long time.
#[test]
fn lists_again_after_the_server_was_restored_from_a_backup() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    let backup = api.put(service("shop", "kept", "10.96.0.40"));
    for round in 0..9 {
        api.put(service("shop", "lost", &format!("10.96.0.5{round}")));
    }
    edge.wait_service("shop/lost", "10.96.0.58 http:80/TCP");
    api.down();
    api.delete("services", "shop", "lost");
    api.put_back(backup);
    api.up();
    edge.wait_service("shop/lost", "none");
    assert_eq!(edge.service("shop/kept"), "10.96.0.40 http:80/TCP");
    assert!(edge.metric(&failures("services", "ahead")) >= 1.0, "{}", edge.metrics());
    api.put(service("shop", "web", "10.96.0.12"));
    edge.wait_service("shop/web", "10.96.0.12 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
}

/// After a backup was restored, the API server gives versions a second time.
#[test]
fn reads_an_object_whose_version_another_one_had_before_a_backup_was_restored() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    let backup = api.put(service("shop", "kept", "10.96.0.40"));
    let version = api.put(service("shop", "web", "10.96.0.51"));
    api.put(service("shop", "lost", "10.96.0.60"));
    edge.wait_service("shop/lost", "10.96.0.60 http:80/TCP");
    api.down();
    api.delete("services", "shop", "lost");
    api.put_back(backup);
    assert_eq!(api.put(service("shop", "web", "10.96.0.52")), version);
    api.up();
    edge.wait_service("shop/lost", "none");
    edge.wait_service("shop/web", "10.96.0.52 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
}

/// Restores the storage of a server that has sent `shop/lost` from a backup without it, while no connection breaks, and
/// waits until the client has noticed it.
fn lose_by_restoration(api: &FakeApi, edge: &Edge) {
    edge.wait_synced();
    api.fault("services", Fault::Silence);
    api.delete("services", "shop", "lost");
    api.put_back(1);
    api.heal("services");
    edge.wait_service("shop/lost", "none");
    assert_eq!(edge.metric(&failures("services", "connection")), 0.0, "{}", edge.metrics());
}

/// The storage of an API server behind a load balancer may be restored without a broken connection.
#[test]
fn a_silent_watch_detects_a_restored_server() {
    let api = shop();
    api.put(service("shop", "lost", "10.96.0.50"));
    let edge = Edge::start_with(&request(&api), Timing { watch_silence: Duration::from_millis(300), ..quick() });
    lose_by_restoration(&api, &edge);
    assert!(edge.metric(&failures("services", "ahead")) >= 1.0);
}

/// The storage may be restored just before a watch is opened. It sends nothing, and no connection breaks.
#[test]
fn the_proof_of_a_silent_watch_detects_a_restored_server() {
    let api = shop();
    api.put(service("shop", "lost", "10.96.0.50"));
    let request = Request { stale_after: Some(Duration::from_secs(600)), ..request(&api) };
    let prove = Duration::from_millis(10);
    let edge = Edge::start_with(&request, Timing { prove, age: prove, ..quick() });
    lose_by_restoration(&api, &edge);
    assert!(edge.metric(&failures("services", "restored")) >= 1.0, "{}", edge.metrics());
}

/// The storage may also be restored in the pause after a refused watch, when no connection is open.
#[test]
fn a_refused_watch_leads_to_a_check_of_the_position() {
    let api = shop();
    api.put(service("shop", "lost", "10.96.0.50"));
    // The list ends as if its time had passed, which breaks no connection, and the watch is refused.
    let refused = core::iter::repeat_n(Some(Fault::Status(503, None)), 1000);
    api.script("services", core::iter::once(Some(Fault::Short)).chain(refused));
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    edge.wait_metric(&failures("services", "server_error"), 1.0);
    api.delete("services", "shop", "lost");
    api.put_back(1);
    api.heal("services");
    edge.wait_service("shop/lost", "none");
    assert_eq!(edge.metric(&failures("services", "connection")), 0.0, "{}", edge.metrics());
}

/// A cursor from before a backup was restored is refused with 500 for as long as it is sent.
#[test]
fn restarts_a_list_if_a_cursor_is_refused() {
    let begins = begins_of_lists(Fault::Status(500, None));
    assert_eq!(begins, [true, false, true, false]);
}

/// An API server with too many requests refuses no cursor: the list continues where it was.
#[test]
fn continues_a_list_if_the_server_is_overloaded() {
    let begins = begins_of_lists(Fault::Status(429, None));
    assert_eq!(begins, [true, false, false]);
}

#[test]
fn restarts_a_list_after_an_expired_page() {
    let begins = begins_of_lists(Fault::Status(410, None));
    assert_eq!(begins, [true, false, true, false]);
}

/// Lists Services in two pages, with a fault of the second one. Returns for each request if it begins a list.
fn begins_of_lists(fault: Fault) -> Vec<bool> {
    let api = shop();
    api.put_all((0..600).map(|number| service("shop", &format!("s-{number:03}"), "10.97.0.1")));
    api.script("services", [Some(Fault::NoStreamingLists), None, Some(fault)]);
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    assert_eq!(edge.index.counts().services, 601);
    let lists = api.seen().into_iter().filter(|seen| seen.resource == "services" && !seen.is_watch());
    lists.map(|seen| seen.parameter("continue").is_empty()).collect()
}

#[test]
fn a_broken_connection_needs_no_new_list() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    for round in 0..3 {
        api.drop_connections();
        api.put(service("shop", "web", &format!("10.96.1.{round}")));
        let expected = format!("10.96.1.{round} http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
        edge.wait_service("shop/web", &expected);
        if round == 0 {
            assert_eq!(edge.logged("[WARNING]"), 0, "a single failure is not logged: {:?}", edge.lines());
        }
    }
    assert_eq!(edge.metric(STREAMED), 1.0);
    assert!(edge.metric(&failures("services", "connection")) >= 1.0);
}

#[test]
fn retries_a_truncated_response() {
    for cut in [0, 1, 40, 100] {
        let api = shop();
        let stream = [Some(Fault::Cut(cut)), Some(Fault::Cut(cut)), None];
        let page = [Some(Fault::NoStreamingLists), Some(Fault::Cut(cut)), None];
        api.script("services", stream);
        api.script("endpointslices", page);
        let edge = Edge::start(&request(&api));
        edge.wait_synced();
        assert_eq!(edge.service("shop/web"), WEB, "cut after {cut}");
        assert!(edge.metric(&failures("endpointslices", "connection")) >= 1.0);
    }
}

#[test]
fn waits_for_a_slow_response() {
    let api = shop();
    for resource in ["namespaces", "services", "endpointslices"] {
        api.fault(resource, Fault::Slow(7, Duration::from_millis(1)));
    }
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
    assert_eq!(edge.watch_failures(), 0.0);
}

#[test]
fn restarts_a_silent_watch_and_receives_the_missed_events() {
    let api = shop();
    let edge = Edge::start_with(&request(&api), Timing { watch_silence: Duration::from_millis(200), ..quick() });
    edge.wait_synced();
    api.fault("services", Fault::Silence);
    api.put(service("shop", "web", "10.96.0.12"));
    edge.wait_metric("portolan_kubernetes_watch_renewals_total{resource=\"services\"}", 2.0);
    assert_eq!(edge.service("shop/web"), WEB, "the known objects are still served");
    api.heal("services");
    edge.wait_service("shop/web", "10.96.0.12 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    assert_eq!(edge.metric(STREAMED), 1.0);
    assert_eq!(edge.logged("[WARNING]"), 0, "a quiet cluster is no fault: {:?}", edge.lines());
}

#[test]
fn retries_a_stalled_request() {
    let api = shop();
    api.script("services", [Some(Fault::Stall), Some(Fault::Stall), None]);
    let edge = Edge::start_with(&request(&api), Timing { response: Duration::from_millis(100), ..quick() });
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
    assert!(edge.metric(&failures("services", "silent")) >= 2.0);
    let line = format!("Failed to watch services: the API server did not answer within 0.1 s ({})", api.url());
    edge.wait_log(&format!("[WARNING] plugin/kubernetes: {line}"));
    edge.wait_log("[INFO] plugin/kubernetes: Watching services again after ");
    let host = api.url().strip_prefix("http://").unwrap();
    let errors = "coredns_kubernetes_rest_client_requests_total{code=\"<error>\",method=\"GET\",";
    assert!(edge.metric(&format!("{errors}host=\"{host}\"}}")) >= 2.0);
}

#[test]
fn switches_to_pages_if_a_streaming_list_has_no_end() {
    let api = shop();
    // This server sends the objects, but not the bookmark at the end.
    api.script("services", [Some(Fault::Short), None]);
    let edge = Edge::start_with(&request(&api), Timing { list_silence: Duration::from_millis(100), ..quick() });
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
}

#[test]
fn honors_retry_after() {
    let api = shop();
    api.script("services", [Some(Fault::Status(429, Some(1)))]);
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    let seen: Vec<_> = api.seen().into_iter().filter(|seen| seen.resource == "services").collect();
    let pause = seen[1].at - seen[0].at;
    assert!(pause >= Duration::from_secs(1), "{pause:?}");
    assert_eq!(edge.metric(&failures("services", "too_many_requests")), 1.0);
}

#[test]
fn logs_a_refusal_and_its_end_once() {
    for (status, reason, level) in [
        (401, "unauthorized", "ERROR"),
        (403, "forbidden", "ERROR"),
        (404, "not_found", "ERROR"),
        (500, "server_error", "WARNING"),
    ] {
        let api = shop();
        let edge = Edge::start(&request(&api));
        edge.wait_synced();
        api.fault("services", Fault::Status(status, None));
        api.put(slice("shop", "web", &["10.1.0.7"]));
        api.drop_connections();
        edge.wait_metric(&failures("services", reason), 5.0);
        edge.wait_service("shop/web", "10.96.0.11 http:80/TCP [10.1.0.7 http:8080/TCP]");
        let line = format!(
            "[{level}] plugin/kubernetes: Failed to watch services: the API server says {status}: injected fault"
        );
        assert_eq!(edge.logged(&line), 1);
        api.heal("services");
        api.put(service("shop", "web", "10.96.0.12"));
        edge.wait_service("shop/web", "10.96.0.12 http:80/TCP [10.1.0.7 http:8080/TCP]");
        edge.wait_log("[INFO] plugin/kubernetes: Watching services again after ");
        edge.wait("all watches to be well", |_| edge.metric(SYNC_AGE) == 0.0);
    }
}

#[test]
fn waits_for_a_server_that_is_down_at_the_start() {
    let api = shop();
    api.down();
    let edge = Edge::start(&request(&api));
    edge.wait_metric(&failures("namespaces", "connection"), 4.0);
    assert!(!edge.index.is_synced());
    let line = "[WARNING] plugin/kubernetes: Failed to watch namespaces: no connection to the API server: ";
    assert_eq!(edge.logged(line), 1, "{:?}", edge.lines());
    let url = format!("({})", api.url());
    assert!(edge.lines().iter().all(|line| line.ends_with(&url)), "{:?}", edge.lines());
    let age = edge.metric(SYNC_AGE);
    assert!(age > 0.0);
    edge.wait_metric(SYNC_AGE, age + 0.02);
    api.up();
    edge.wait_synced();
    assert_eq!(edge.metric(SYNC_AGE), 0.0);
    assert_eq!(edge.service("shop/web"), WEB);
    edge.wait_log("[INFO] plugin/kubernetes: 1 service, 2 endpoints known after ");
}

#[test]
fn a_refused_resource_does_not_affect_the_others() {
    let api = shop();
    api.fault("endpointslices", Fault::Status(403, None));
    let edge = Edge::start(&request(&api));
    edge.wait_service("shop/web", "10.96.0.11 http:80/TCP");
    edge.wait_metric(&failures("endpointslices", "forbidden"), 2.0);
    assert!(!edge.index.is_synced());
    api.heal("endpointslices");
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
}

#[test]
fn pauses_after_a_watch_that_ends_immediately() {
    let api = shop();
    let pause_min = Duration::from_millis(50);
    let edge = Edge::start_with(
        &request(&api),
        Timing { pause_min, pause_max: pause_min, watch_min: Duration::from_secs(10), ..quick() },
    );
    edge.wait_synced();
    api.fault("services", Fault::Short);
    api.drop_connections();
    edge.wait_metric(&failures("services", "short"), 3.0);
    let seen: Vec<_> = api.seen().into_iter().filter(|seen| seen.resource == "services" && seen.is_watch()).collect();
    let pauses: Vec<_> = seen.windows(2).skip(1).map(|pair| pair[1].at - pair[0].at).collect();
    assert!(pauses.iter().all(|pause| *pause >= pause_min), "{pauses:?}");
}

#[test]
fn an_undecodable_object_keeps_its_last_state() {
    let api = shop();
    let malformed = |name: &str| {
        let mut service = service("shop", name, "10.96.0.50");
        service["spec"]["ports"] = json!([{ "port": "eighty" }]);
        service
    };
    api.put(malformed("never"));
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    assert_eq!((edge.service("shop/web").as_str(), edge.service("shop/never").as_str()), (WEB, "none"));
    api.put(malformed("web"));
    let errors = "portolan_kubernetes_object_errors_total{kind=\"Service\",reason=\"shape\"}";
    edge.wait_metric(errors, 2.0);
    assert_eq!(edge.service("shop/web"), WEB);
    // A new list does not remove it either.
    api.script("services", [Some(Fault::Status(410, None))]);
    api.drop_connections();
    edge.wait_metric(STREAMED, 2.0);
    assert_eq!(edge.service("shop/web"), WEB);
    assert_eq!(edge.metric(errors), 4.0);
    edge.wait_log("[WARNING] plugin/kubernetes: Service 'shop/web' cannot be read, what was known of it stays: ");
    api.put(service("shop", "web", "10.96.0.51"));
    edge.wait_service("shop/web", "10.96.0.51 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    api.delete("services", "shop", "never");
}

#[test]
fn counts_ten_thousand_malformed_objects_and_serves_the_others() {
    let api = empty();
    api.put(namespace("shop"));
    let wrong = [
        ("/spec/ports", json!([{ "port": "eighty" }])),
        ("/spec/ports/0/port", json!(70_000)),
        ("/spec/ports/0/name", json!(7)),
        ("/spec/clusterIP", json!(7)),
        ("/metadata/labels", json!(7)),
    ];
    let malformed = |number: usize| {
        let mut service = service("shop", &format!("bad-{number:05}"), "10.96.0.1");
        service["metadata"]["labels"] = json!({});
        let (place, value) = &wrong[number % wrong.len()];
        *service.pointer_mut(place).unwrap() = value.clone();
        service
    };
    let good = |number: usize| service("shop", &format!("good-{number:04}"), "10.97.0.1");
    api.put_all((0..10_000).map(malformed));
    api.put_all((0..1000).map(good));
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    let errors = "portolan_kubernetes_object_errors_total{kind=\"Service\",reason=\"shape\"}";
    assert_eq!((edge.index.counts().services, edge.metric(errors)), (1000, 10_000.0));
    // Now as pages and as changes.
    api.fault("services", Fault::NoStreamingLists);
    api.down();
    api.compact();
    api.up();
    edge.wait_metric("portolan_kubernetes_lists_total{resource=\"services\",way=\"pages\"}", 1.0);
    api.put_all((0..10_000).map(malformed).chain((1000..1100).map(good)));
    edge.wait("the last good one", |index| index.counts().services == 1100);
    assert_eq!(edge.metric(errors), 30_000.0);
    assert!(edge.lines().len() < 1100, "the number of log lines is limited");
}

#[test]
fn skips_invalid_watch_events() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    let lines = ["<html>", "{", "[]", "{\"type\":\"ADDED\"}", "{\"type\":\"DANCED\",\"object\":{}}", "\u{0}\u{0}"];
    for line in lines {
        api.inject("services", line);
    }
    api.put(service("shop", "web", "10.96.0.12"));
    edge.wait_service("shop/web", "10.96.0.12 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    let errors = |reason: &str| {
        edge.metric(&format!("portolan_kubernetes_object_errors_total{{kind=\"Service\",reason=\"{reason}\"}}"))
    };
    assert_eq!(errors("syntax") + errors("shape") + errors("event"), 6.0, "{}", edge.metrics());
    assert_eq!(edge.watch_failures(), 0.0);
}

#[test]
fn an_error_event_ends_the_watch() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    api.inject("services", r#"{"type":"ERROR","object":{"kind":"Status","code":500,"message":"etcd is ill"}}"#);
    edge.wait_log("[WARNING] plugin/kubernetes: Failed to watch services: the API server says 500: etcd is ill");
    api.put(service("shop", "web", "10.96.0.12"));
    edge.wait_service("shop/web", "10.96.0.12 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    assert_eq!(edge.metric(STREAMED), 1.0);
}
