//! Relays in front of the API server: what a watch asks them, when it leaves them, and that it never goes back.

use std::fs;
use std::time::Duration;

use cluster::{Relays, Request};
use fakeapi::{FakeApi, Fault, ReceivedRequest, namespace, service, slice};
use kubeapi::Timing;
use serde_json::Value;

use crate::support::{Edge, Folder, WEB, folder, quick, request};

const TOKEN: &str = "for relays";
const NEW: &str = "10.96.0.40 http:80/TCP";
const RESOURCES: [&str; 3] = ["namespaces", "services", "endpointslices"];
/// Time that no test takes.
const NEVER: Duration = Duration::from_secs(600);

/// An API server and relays, which have the same objects at the same versions unless a test leaves one out.
struct Cluster {
    server: FakeApi,
    relays: Vec<FakeApi>,
    folder: Folder,
}

impl Cluster {
    fn new(test: &str, relays: usize) -> Cluster {
        let relays = (0..relays).map(|_| {
            let relay = FakeApi::start_tls();
            relay.act_as_relay(Duration::from_millis(20));
            relay.require_token(TOKEN);
            relay
        });
        let cluster = Cluster { server: FakeApi::start(), relays: relays.collect(), folder: folder(test) };
        let endpoints = slice("shop", "web", &["10.1.0.5", "10.1.0.6"]);
        cluster.put(&[namespace("shop"), service("shop", "web", "10.96.0.11"), endpoints]);
        cluster
    }

    /// Puts objects everywhere.
    fn put(&self, objects: &[Value]) {
        for api in self.relays.iter().chain([&self.server]) {
            api.put_all(objects.iter().cloned());
        }
    }

    fn request(&self) -> Request {
        let authorities: String = self.relays.iter().map(|relay| relay.pems().unwrap().authority.clone()).collect();
        let (authority, token) = (self.folder.join("ca.pem"), self.folder.join("token"));
        fs::write(&authority, authorities).unwrap();
        fs::write(&token, TOKEN).unwrap();
        let urls = self.relays.iter().map(|relay| relay.url().to_owned()).collect();
        let relays = Relays { urls, authority, token, server_name: None, only: false };
        Request { relays: Some(relays), ..request(&self.server) }
    }

    fn start(&self, timing: Timing) -> Edge {
        let edge = Edge::start_with(&self.request(), timing);
        edge.wait_synced();
        assert_eq!(edge.service("shop/web"), WEB);
        edge
    }
}

/// Waits for a relay as long as no test takes, and moves on at once after a failure.
fn patient() -> Timing {
    Timing {
        relay_reconnect: Duration::from_millis(10),
        relay_silence: Duration::from_secs(10),
        relay_patience: NEVER,
        relay_spread: Duration::ZERO,
        relay_behind: NEVER,
        ..quick()
    }
}

/// Asks the API server soon, and looks for relays soon.
fn impatient() -> Timing {
    Timing {
        relay_patience: Duration::from_millis(50),
        relay_spread: Duration::from_millis(50),
        relay_behind: Duration::from_millis(200),
        ..patient()
    }
}

fn is_list(seen: &ReceivedRequest) -> bool {
    seen.is_streaming_list() || !seen.is_watch() && seen.parameter("limit") == "500"
}

fn lists(api: &FakeApi) -> usize {
    api.seen().iter().filter(|seen| is_list(seen)).count()
}

/// Waits for a watch of each resource from this request on.
fn wait_watches(api: &FakeApi, from: usize) {
    let watches = |seen: &[ReceivedRequest], resource: &str| {
        seen[from..].iter().any(|seen| seen.resource == resource && seen.is_watch() && !seen.is_streaming_list())
    };
    api.wait_seen("watches", |seen| RESOURCES.iter().all(|resource| watches(seen, resource)));
}

#[test]
fn watches_a_relay_with_a_token_the_profile_and_compression() {
    let cluster = Cluster::new("relay", 1);
    let edge = cluster.start(patient());
    cluster.put(&[service("shop", "new", "10.96.0.40")]);
    edge.wait_service("shop/new", NEW);
    let seen = cluster.relays[0].seen();
    assert!(!seen.is_empty() && cluster.server.seen().is_empty());
    for request in seen {
        assert_eq!(request.authorization, format!("Bearer {TOKEN}"));
        assert_eq!((request.profile.as_str(), request.accept_encoding.as_str()), ("dns-1", "gzip"));
    }
    assert_eq!(edge.watch_failures(), 0.0);
}

#[test]
fn asks_a_relay_for_the_names_of_pods_where_they_name_endpoints() {
    let cluster = Cluster::new("relay_pods", 1);
    let edge = Edge::start_with(&Request { endpoint_pod_names: true, ..cluster.request() }, patient());
    edge.wait_synced();
    let seen = cluster.relays[0].seen();
    assert!(!seen.is_empty() && seen.iter().all(|request| request.profile == "dns-pods-1"), "{seen:?}");
}

#[test]
fn asks_an_api_server_for_neither_without_relays() {
    let api = crate::support::shop();
    let edge = Edge::start(&request(&api));
    edge.wait_synced();
    for request in api.seen() {
        assert_eq!((request.profile.as_str(), request.accept_encoding.as_str()), ("", ""));
    }
}

#[test]
fn the_api_server_takes_over_after_a_time_and_the_relay_again_without_lists() {
    let cluster = Cluster::new("relay_takeover", 1);
    let edge = cluster.start(impatient());
    let relay = &cluster.relays[0];
    let listed = lists(relay);
    relay.down();
    cluster.put(&[service("shop", "new", "10.96.0.40")]);
    edge.wait_service("shop/new", NEW);
    wait_watches(&cluster.server, 0);
    let asked = relay.seen().len();
    relay.up();
    wait_watches(relay, asked);
    cluster.put(&[service("shop", "back", "10.96.0.41")]);
    edge.wait_service("shop/back", "10.96.0.41 http:80/TCP");
    assert_eq!((lists(relay), lists(&cluster.server)), (listed, 0));
    // A relay ignores the limit of a list, so that each question selects an object.
    let is_whole =
        |seen: &&ReceivedRequest| seen.parameter("limit") == "1" && seen.parameter("fieldSelector").is_empty();
    assert_eq!(relay.seen().iter().filter(is_whole).count(), 0);
}

#[test]
fn with_relays_only_the_api_server_is_never_asked() {
    let cluster = Cluster::new("relay_only", 1);
    let mut request = cluster.request();
    request.relays.as_mut().unwrap().only = true;
    let edge = Edge::start_with(&request, impatient());
    edge.wait_synced();
    let relay = &cluster.relays[0];
    relay.down();
    edge.wait("failures", |_| edge.watch_failures() >= 20.0);
    cluster.put(&[service("shop", "new", "10.96.0.40")]);
    relay.up();
    edge.wait_service("shop/new", NEW);
    assert!(cluster.server.seen().is_empty());
    assert_eq!(lists(relay), RESOURCES.len());
}

#[test]
fn a_relay_that_is_behind_is_left_and_nothing_goes_back() {
    let cluster = Cluster::new("relay_behind", 2);
    let edge = cluster.start(patient());
    // Which one is used first is random: the other one lags.
    let first = usize::from(lists(&cluster.relays[0]) == 0);
    let (ahead, behind) = (&cluster.relays[first], &cluster.relays[1 - first]);
    ahead.put(service("shop", "web", "10.96.0.77"));
    let changed = "10.96.0.77 http:80/TCP [10.1.0.5 10.1.0.6 http:8080/TCP]";
    edge.wait_service("shop/web", changed);
    ahead.down();
    let refused = "portolan_kubernetes_watch_failures_total{resource=\"services\",reason=\"ahead\"}";
    edge.wait_metric(refused, 3.0);
    assert_eq!(edge.service("shop/web"), changed);
    behind.put(service("shop", "web", "10.96.0.77"));
    wait_watches(behind, 0);
    behind.put(service("shop", "new", "10.96.0.40"));
    edge.wait_service("shop/new", NEW);
    assert_eq!(lists(behind), 0);
}

#[test]
fn a_silent_relay_is_left() {
    let cluster = Cluster::new("relay_silent", 2);
    let edge = cluster.start(Timing { relay_silence: Duration::from_millis(500), ..patient() });
    for relay in &cluster.relays {
        relay.fault("services", Fault::Silence);
    }
    let silent = "portolan_kubernetes_watch_failures_total{resource=\"services\",reason=\"silent\"}";
    edge.wait_metric(silent, 2.0);
    cluster.relays[0].heal("services");
    cluster.put(&[service("shop", "new", "10.96.0.40")]);
    edge.wait_service("shop/new", NEW);
    assert!(cluster.server.seen().is_empty());
}

#[test]
fn a_list_after_a_lost_position_is_not_older() {
    let cluster = Cluster::new("relay_gone", 1);
    let edge = cluster.start(patient());
    let relay = &cluster.relays[0];
    relay.compact();
    relay.script("services", [Some(Fault::Status(503, None)), None, Some(Fault::Status(410, None))]);
    relay.drop_connections();
    let is_bound = |seen: &ReceivedRequest| {
        let version = seen.parameter("resourceVersion").parse::<u64>().unwrap_or_default();
        seen.resource == "services" && is_list(seen) && version >= 3
    };
    relay.wait_seen("a list with a bound", |seen| seen.iter().any(is_bound));
    relay.put(service("shop", "new", "10.96.0.40"));
    edge.wait_service("shop/new", NEW);
    assert!(cluster.server.seen().is_empty());
}

#[test]
fn an_older_event_of_a_relay_is_refused() {
    let cluster = Cluster::new("relay_older", 1);
    let edge = cluster.start(patient());
    let mut old = service("shop", "web", "10.96.0.99");
    old["metadata"]["resourceVersion"] = "1".into();
    let event = serde_json::json!({ "type": "MODIFIED", "object": old });
    cluster.relays[0].inject("services", &event.to_string());
    edge.wait_metric("portolan_kubernetes_watch_failures_total{resource=\"services\",reason=\"older\"}", 1.0);
    assert_eq!(edge.service("shop/web"), WEB);
}

#[test]
fn a_relay_that_saw_a_restoration_is_listed_without_a_bound() {
    let cluster = Cluster::new("relay_restored", 1);
    let edge = cluster.start(patient());
    cluster.put(&[service("shop", "new", "10.96.0.40")]);
    edge.wait_service("shop/new", NEW);
    let relay = &cluster.relays[0];
    relay.delete("services", "shop", "new");
    edge.wait_service("shop/new", "none");
    relay.script("services", [Some(Fault::Restored)]);
    relay.put_back(3);
    relay.drop_connections();
    let is_free = |seen: &ReceivedRequest| {
        seen.resource == "services" && is_list(seen) && seen.parameter("resourceVersion").is_empty()
    };
    relay.wait_seen("a second list without a bound", |seen| seen.iter().filter(|seen| is_free(seen)).count() == 2);
    relay.put(service("shop", "again", "10.96.0.41"));
    edge.wait_service("shop/again", "10.96.0.41 http:80/TCP");
    assert!(cluster.server.seen().is_empty());
}

#[test]
fn the_api_server_proves_a_restoration_if_all_are_behind() {
    let cluster = Cluster::new("all_restored", 1);
    let edge = cluster.start(impatient());
    cluster.put(&[service("shop", "new", "10.96.0.40"), service("shop", "more", "10.96.0.41")]);
    edge.wait_service("shop/more", "10.96.0.41 http:80/TCP");
    for api in cluster.relays.iter().chain([&cluster.server]) {
        api.delete("services", "shop", "new");
        api.put_back(3);
        api.drop_connections();
    }
    cluster.server.wait_seen("a consistent read", |seen| seen.iter().any(ReceivedRequest::is_proof));
    edge.wait_service("shop/new", "none");
    cluster.server.wait_seen("a list", |seen| seen.iter().any(is_list));
    cluster.put(&[service("shop", "again", "10.96.0.42")]);
    edge.wait_service("shop/again", "10.96.0.42 http:80/TCP");
}

#[test]
fn a_relay_with_another_authority_is_not_trusted() {
    let cluster = Cluster::new("relay_untrusted", 1);
    let request = cluster.request();
    let other = FakeApi::start_tls();
    fs::write(&request.relays.as_ref().unwrap().authority, &other.pems().unwrap().authority).unwrap();
    let edge = Edge::start_with(&request, impatient());
    edge.wait_synced();
    assert_eq!(edge.service("shop/web"), WEB);
    assert!(cluster.relays[0].seen().is_empty());
}
