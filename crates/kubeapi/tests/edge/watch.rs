//! Lists and watches without faults.

use cluster::Request;
use std::sync::Arc;
use std::time::Duration;

use fakeapi::{Fault, namespace, object, service, slice};
use kubeapi::{Subscriber, Timing};
use metrics::Registry;
use serde_json::json;

use crate::support::{Edge, WEB, on_a_local_set, quick, request, shop};

#[test]
fn a_streaming_list_fills_the_index() {
    let api = shop();
    api.put(object(
        "Service",
        "shop",
        "ext",
        json!({ "spec": { "type": "ExternalName", "externalName": "a.example" } }),
    ));
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
    assert_eq!(edge.service("shop/ext"), "-> a.example :-/");
    assert!(edge.has_namespace("shop") && !edge.has_namespace("nosuch"));
    let seen = api.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|seen| seen.is_streaming_list() && seen.parameter("allowWatchBookmarks") == "true"));
    let seconds: Vec<u32> = seen.iter().map(|seen| seen.parameter("timeoutSeconds").parse().unwrap()).collect();
    assert!(seconds.iter().all(|seconds| (300..=600).contains(seconds)), "{seconds:?}");
    assert_eq!(edge.metric("portolan_kubernetes_lists_total{resource=\"services\",way=\"stream\"}"), 1.0);
    let host = api.url().strip_prefix("http://").unwrap();
    let requests =
        format!("coredns_kubernetes_rest_client_requests_total{{code=\"200\",method=\"GET\",host=\"{host}\"}}");
    assert_eq!(edge.metric(&requests), 3.0);
    let times =
        format!("coredns_kubernetes_rest_client_request_duration_seconds_count{{verb=\"GET\",host=\"{host}\"}}");
    assert_eq!(edge.metric(&times), 3.0);
}

#[test]
fn applies_every_change() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_service("shop/web", WEB);
    api.put(slice("shop", "web", &["10.1.0.7"]));
    edge.wait_service("shop/web", "10.96.0.11 http:80/TCP [10.1.0.7 http:8080/TCP]");
    api.delete("endpointslices", "shop", "web-1");
    edge.wait_service("shop/web", "10.96.0.11 http:80/TCP");
    api.put(service("shop", "web", "10.96.0.12"));
    edge.wait_service("shop/web", "10.96.0.12 http:80/TCP");
    api.delete("services", "shop", "web");
    edge.wait_service("shop/web", "none");
    api.put(namespace("late"));
    edge.wait("the namespace", |index| index.namespace_exists(b"late"));
    api.delete("namespaces", "", "late");
    edge.wait("the end of the namespace", |index| !index.namespace_exists(b"late"));
    assert_eq!(api.seen().len(), 3, "all by the first three requests");
}

#[test]
fn lists_by_pages_if_streaming_lists_are_refused() {
    pages_serve(Fault::NoStreamingLists, 422);
}

/// A real API server over etcd 3.4.23 supports streaming lists, starts one, and then reports that etcd lacks the
/// requests that they need.
#[test]
fn lists_by_pages_if_the_storage_lacks_streaming_lists() {
    pages_serve(Fault::OldStore, 500);
}

fn pages_serve(instead_of_streams: Fault, code: u16) {
    let api = shop();
    api.put_all(
        (0..1200).map(|number| {
            service("shop", &format!("s-{number:04}"), &format!("10.97.{}.{}", number / 250, number % 250))
        }),
    );
    api.fault("services", instead_of_streams);
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    assert_eq!(edge.index.counts().services, 1201);
    let seen: Vec<_> = api.seen().into_iter().filter(|seen| seen.resource == "services").collect();
    let pages: Vec<_> = seen.iter().filter(|seen| !seen.is_watch()).collect();
    let versions: Vec<_> = pages.iter().map(|seen| seen.parameter("resourceVersion")).collect();
    assert_eq!(versions, ["0", "", ""], "the first list may come from the cache of the server");
    assert!(pages.iter().all(|seen| seen.parameter("limit") == "500"));
    assert_eq!(
        pages.iter().map(|seen| seen.parameter("continue").is_empty()).collect::<Vec<_>>(),
        [true, false, false]
    );
    api.put(service("shop", "late", "10.98.0.1"));
    edge.wait_service("shop/late", "10.98.0.1 http:80/TCP");
    assert_eq!(edge.metric("portolan_kubernetes_lists_total{resource=\"services\",way=\"pages\"}"), 1.0);
    assert_eq!(edge.watch_failures(), 0.0, "an old server is no failure");
    let told = format!("[INFO] plugin/kubernetes: Listing services by pages: the API server says {code}");
    assert_eq!(edge.logged(&told), 1);
    // The watcher remembers that this server has no streaming lists.
    api.down();
    api.delete("services", "shop", "web");
    api.compact();
    api.up();
    edge.wait_service("shop/web", "none");
    let seen = api.seen();
    assert_eq!(seen.iter().filter(|seen| seen.resource == "services" && seen.is_streaming_list()).count(), 1);
    let last_list = seen.iter().rfind(|seen| seen.resource == "services" && seen.parameter("limit") == "500");
    assert_eq!(last_list.unwrap().parameter("resourceVersion"), "", "a later list is never older than what is known");
}

#[test]
fn resumes_an_expired_watch_at_the_last_version() {
    let api = shop();
    let edge = Edge::start_with(&request(&api), Timing { watch: Duration::from_secs(1), ..quick() });
    edge.wait_synced();
    let version = api.put(service("shop", "web", "10.96.0.12")).to_string();
    api.wait_seen("a watch from the last version", |seen| {
        seen.iter().any(|seen| seen.resource == "services" && seen.parameter("resourceVersion") == version)
    });
    api.put(service("shop", "web", "10.96.0.13"));
    edge.wait_service("shop/web", "10.96.0.13 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]");
    assert_eq!(edge.watch_failures(), 0.0, "{}", edge.metrics());
}

#[test]
fn resumes_at_the_version_of_a_bookmark() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    let version = api.put(object("ConfigMap", "shop", "unrelated", json!({}))).to_string();
    api.bookmark();
    // Events are in order: after this one, the watch has processed the bookmark.
    api.inject("services", "no JSON");
    edge.wait_metric("portolan_kubernetes_object_errors_total{kind=\"Service\",reason=\"syntax\"}", 1.0);
    api.drop_connections();
    api.wait_seen("a watch from the bookmark", |seen| {
        seen.iter().any(|seen| seen.resource == "services" && seen.parameter("resourceVersion") == version)
    });
}

#[test]
fn applies_selectors_to_each_kind() {
    let api = shop();
    let labelled = |kind: &str, namespace: &str, name: &str, rest: serde_json::Value| {
        let mut object = object(kind, namespace, name, rest);
        object["metadata"]["labels"]["dns"] = "yes".into();
        object
    };
    api.put(labelled("Namespace", "", "seen", json!({})));
    api.put(labelled("Service", "seen", "web", json!({ "spec": { "clusterIP": "10.96.0.20" } })));
    let mut seen_slice = slice("seen", "web", &["10.1.0.9"]);
    seen_slice["metadata"]["labels"]["dns"] = "yes".into();
    api.put(seen_slice);
    api.put(slice("seen", "other", &["10.1.0.10"]));
    for (name, phase, ip) in [("p", "Running", "10.1.0.9"), ("q", "Failed", "10.1.0.11")] {
        api.put(labelled("Pod", "seen", name, json!({ "status": { "phase": phase, "podIP": ip } })));
    }
    let request = Request {
        labels: "dns in (yes)".to_owned(),
        namespace_labels: "dns=yes".to_owned(),
        pods: true,
        ..request(&api)
    };
    let edge = Edge::start(&request);
    edge.wait_synced();
    let counts = edge.index.counts();
    assert_eq!((counts.namespaces, counts.services, counts.endpoint_slices, counts.pods), (1, 1, 1, 1));
    assert!(edge.index.pod_exists(b"seen", "10.1.0.9".parse().unwrap()));
    assert_eq!(edge.service("seen/web"), "10.96.0.20 :-/ [10.1.0.9 http:8080/TCP]");
    // A Pod that ends does not match the field selector any more and leaves the index.
    api.put(labelled("Pod", "seen", "p", json!({ "status": { "phase": "Succeeded", "podIP": "10.1.0.9" } })));
    edge.wait("the end of the pod", |index| !index.pod_exists(b"seen", "10.1.0.9".parse().unwrap()));
}

#[test]
fn watches_only_configured_kinds() {
    let api = shop();
    let request = Request { endpoints: false, ..request(&api) };
    let edge = Edge::start(&request);
    edge.wait_service("shop/web", "10.96.0.11 http:80/TCP");
    edge.wait_synced();
    let mut resources: Vec<_> = api.seen().into_iter().map(|seen| seen.resource).collect();
    resources.sort_unstable();
    assert_eq!(resources, ["namespaces", "services"]);
}

#[test]
fn watches_configured_namespaces_separately() {
    let api = shop();
    api.put(namespace("hidden"));
    api.put(service("hidden", "web", "10.96.0.30"));
    let request = Request { namespaces: ["shop", "absent"].map(str::to_owned).into(), ..request(&api) };
    let edge = Edge::start(&request);
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
    assert_eq!(edge.service("hidden/web"), "none");
    assert!(edge.has_namespace("shop") && !edge.has_namespace("hidden") && !edge.has_namespace("absent"));
    let seen = api.seen();
    assert_eq!(seen.len(), 6);
    for seen in seen {
        match seen.resource.as_str() {
            "namespaces" => assert!(seen.parameter("fieldSelector").starts_with("metadata.name="), "{seen:?}"),
            _ => assert!(matches!(seen.namespace.as_str(), "shop" | "absent"), "{seen:?}"),
        }
    }
    api.put(namespace("absent"));
    edge.wait("the namespace", |index| index.namespace_exists(b"absent"));
}

#[test]
fn assumes_that_a_forbidden_namespace_exists() {
    let api = shop();
    api.fault("namespaces", Fault::Status(403, None));
    let request = Request { namespaces: vec!["shop".to_owned()], ..request(&api) };
    let edge = Edge::start(&request);
    edge.wait_synced();
    assert!(edge.has_namespace("shop"));
    api.wait_seen("another attempt", |seen| seen.iter().filter(|seen| seen.resource == "namespaces").count() >= 4);
    assert_eq!(edge.logged("[INFO] plugin/kubernetes: Namespace shop is taken to exist"), 1);
    assert_eq!(edge.logged("[ERROR]"), 0);
    // With permission, the actual state is used.
    api.delete("namespaces", "", "shop");
    api.heal("namespaces");
    edge.wait("the truth", |index| !index.namespace_exists(b"shop"));
}

#[test]
fn equal_requests_share_a_subscription_while_it_is_held() {
    let api = shop();
    on_a_local_set(async {
        let subscriber = Subscriber::with_timing(&Registry::new(), quick());
        let first = subscriber.subscribe(&request(&api)).unwrap();
        let again = subscriber.subscribe(&request(&api)).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        let other = subscriber.subscribe(&Request { endpoints: false, ..request(&api) }).unwrap();
        assert!(!Arc::ptr_eq(&first.index, &other.index));
        let index = Arc::clone(&first.index);
        drop(first);
        assert!(Arc::ptr_eq(&again, &subscriber.subscribe(&request(&api)).unwrap()));
        drop(again);
        let fresh = subscriber.subscribe(&request(&api)).unwrap();
        assert!(!Arc::ptr_eq(&index, &fresh.index), "the subscription was not shared");
    });
}

#[test]
fn a_dropped_subscription_ends_its_tasks() {
    let api = shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    edge.unsubscribe();
    edge.wait("the end of the tasks", |index| Arc::strong_count(&edge.index) == 1 && index.is_synced());
    let before = api.seen().len();
    api.drop_connections();
    // This subscription is a clock: the dropped one would have sent its requests before this one is synced.
    Edge::start(&request(&api)).wait_synced();
    assert_eq!(api.seen().len(), before + 3);
}

#[test]
fn records_the_programming_duration() {
    let api = shop();
    let trigger = |mut slice: serde_json::Value, time: &str| {
        slice["metadata"]["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"] = time.into();
        slice
    };
    let count =
        |kind: &str| format!("coredns_kubernetes_dns_programming_duration_seconds_count{{service_kind=\"{kind}\"}}");
    api.put(object("Service", "shop", "headless", json!({ "spec": { "clusterIP": "None" } })));
    api.put(trigger(slice("shop", "web", &["10.1.0.5"]), "2026-01-02T03:04:05Z"));
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    assert_eq!(edge.metric(&count("cluster_ip")), 0.0, "first lists are not observed");
    let now = jiff::Timestamp::now().to_string();
    api.put(trigger(slice("shop", "web", &["10.1.0.6"]), &now));
    api.put(trigger(slice("shop", "headless", &["10.1.0.7"]), &now));
    edge.wait_metric(&count("cluster_ip"), 1.0);
    edge.wait_metric(&count("headless_with_selector"), 1.0);
    let sum = "coredns_kubernetes_dns_programming_duration_seconds_sum{service_kind=\"cluster_ip\"}";
    assert!((0.0..20.0).contains(&edge.metric(sum)));
    api.put(trigger(slice("shop", "web", &["10.1.0.8"]), "yesterday"));
    edge.wait_log("[WARNING] plugin/kubernetes: DnsProgrammingLatency cannot be calculated for Endpoints 'shop/web-1'");
    api.put(trigger(slice("shop", "nosuch", &["10.1.0.9"]), &now));
    api.put(slice("shop", "web", &["10.1.0.10"]));
    edge.wait_service("shop/web", "10.96.0.11 http:80/TCP [10.1.0.10 http:8080/TCP]");
    assert_eq!((edge.metric(&count("cluster_ip")), edge.metric(&count("headless_with_selector"))), (1.0, 1.0));
    assert_eq!((edge.metric(&ours("cluster_ip")), edge.metric(&ours("headless_with_selector"))), (1.0, 1.0));
    // A trigger time in the future, from a clock ahead of ours, counts as zero.
    let later = (jiff::Timestamp::now() + Duration::from_secs(3600)).to_string();
    let before = edge.metric(sum);
    api.put(trigger(slice("shop", "web", &["10.1.0.11"]), &later));
    edge.wait_metric(&count("cluster_ip"), 2.0);
    assert_eq!(edge.metric(sum), before);
}

#[test]
fn records_the_programming_duration_of_clusterset_services() {
    let api = shop();
    let import = |name: &str, kind: &str| {
        let spec =
            json!({ "spec": { "type": kind, "ips": ["10.112.0.1"], "ports": [{ "port": 80, "protocol": "TCP" }] } });
        object("ServiceImport", "shop", name, spec)
    };
    api.put_all([import("common", "ClusterSetIP"), import("spread", "Headless")]);
    let edge = Edge::start(&Request { multicluster: true, ..request(&api) });
    edge.wait_synced();
    for name in ["common", "spread"] {
        let mut slice = slice("shop", name, &["10.3.0.1"]);
        let metadata = &mut slice["metadata"];
        metadata["labels"]["multicluster.kubernetes.io/service-name"] = name.into();
        metadata["labels"]["multicluster.kubernetes.io/source-cluster"] = "east".into();
        metadata["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"] =
            jiff::Timestamp::now().to_string().into();
        api.put(slice);
    }
    edge.wait_metric(&ours("clusterset_ip"), 1.0);
    edge.wait_metric(&ours("clusterset_headless"), 1.0);
    assert!(!edge.metrics().contains("coredns_kubernetes_dns_programming_duration_seconds_count{"));
}

fn ours(kind: &str) -> String {
    format!("portolan_kubernetes_programming_duration_seconds_count{{service_kind=\"{kind}\"}}")
}
