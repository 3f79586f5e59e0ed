//! Hosts of a mesh: with API servers of several versions, without a mesh, and from manifests. Also the log of their
//! changes.

use std::fs;
use std::time::Duration;

use cluster::mesh::Claim;
use cluster::{Kind, Request, Source};
use fakeapi::{FakeApi, Fault, object, service_entry};
use serde_json::{Value, json};
use wire::Name;

use crate::support::{Edge, folder, request};

fn mesh(api: &FakeApi) -> Request {
    Request { mesh: true, ..request(api) }
}

fn entry(name: &str, spec: &Value) -> Value {
    object("ServiceEntry", "shop", name, json!({ "spec": spec }))
}

fn of_version(version: &str, mut object: Value) -> Value {
    object["apiVersion"] = format!("networking.istio.io/{version}").into();
    object
}

/// Returns the addresses of the best claim to a host, or else the endpoints of its entry.
fn addresses(edge: &Edge, host: &str) -> String {
    let texts = |claims: &[Claim]| {
        let claim = claims.first()?;
        let ips = if claim.addresses.is_empty() { &claim.entry.endpoints[..] } else { &claim.addresses };
        Some(ips.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    };
    let name = Name::from_text(host).unwrap();
    edge.index.mesh().unwrap().find(name.as_ref(), texts).unwrap_or_else(|| "none".to_owned())
}

fn wait_addresses(edge: &Edge, host: &str, expected: &str) {
    edge.wait(&format!("{host} is {expected}"), |_| addresses(edge, host) == expected);
}

#[test]
fn finds_entries_of_every_api_version_without_a_pause() {
    for version in ["v1", "v1beta1", "v1alpha3"] {
        let api = FakeApi::start();
        api.put(of_version(version, service_entry("shop", "pay", "pay.global", "10.0.0.1")));
        api.install("WorkloadEntry", &format!("networking.istio.io/{version}"));
        // A pause between versions would be longer than this test waits.
        let pause = Duration::from_secs(600);
        let timing =
            kubeapi::Timing { pause_min: pause, pause_max: pause, absent: pause, ..kubeapi::Timing::default() };
        let edge = Edge::start_with(&mesh(&api), timing);
        edge.wait_synced();
        assert_eq!(addresses(&edge, "pay.global"), "10.0.0.1", "{version}");
        api.put(of_version(version, service_entry("shop", "pay", "pay.global", "10.0.0.2")));
        wait_addresses(&edge, "pay.global", "10.0.0.2");
        assert_eq!(
            edge.metric("portolan_kubernetes_watch_failures_total{resource=\"serviceentries\",reason=\"not_found\"}"),
            0.0
        );
    }
}

#[test]
fn serves_no_hosts_until_a_mesh_is_installed() {
    let api = FakeApi::start();
    let edge = Edge::start(&mesh(&api));
    edge.wait_synced();
    assert_eq!(addresses(&edge, "pay.global"), "none");
    let line = "[INFO] plugin/kubernetes: The API server has no serviceentries: there are none until it does";
    api.wait_seen("it is asked again and again", |seen| seen.len() > 20);
    assert_eq!(edge.logged(line), 1);
    assert_eq!(edge.logged("[ERROR]") + edge.logged("[WARNING]"), 0, "{:?}", edge.lines());
    api.put(service_entry("shop", "pay", "pay.global", "10.0.0.1"));
    wait_addresses(&edge, "pay.global", "10.0.0.1");
}

#[test]
fn keeps_hosts_while_the_api_server_is_down_or_lacks_the_crds() {
    let api = FakeApi::start();
    api.put(service_entry("shop", "pay", "pay.global", "10.0.0.1"));
    let edge = Edge::start(&mesh(&api));
    edge.wait_synced();
    api.fault("serviceentries", Fault::Status(404, None));
    api.drop_connections();
    edge.wait_log("[ERROR] plugin/kubernetes: Failed to watch serviceentries");
    assert_eq!(addresses(&edge, "pay.global"), "10.0.0.1");
    api.down();
    api.heal("serviceentries");
    api.put(service_entry("shop", "pay", "pay.global", "10.0.0.2"));
    assert_eq!(addresses(&edge, "pay.global"), "10.0.0.1");
    api.up();
    wait_addresses(&edge, "pay.global", "10.0.0.2");
}

#[test]
fn reports_invalid_entries_once_and_serves_the_others() {
    let api = FakeApi::start();
    api.put(service_entry("shop", "pay", "pay.global", "10.0.0.1"));
    api.put(entry("shape", &json!({ "hosts": "pay.global" })));
    api.put(entry("star", &json!({ "hosts": ["*"], "resolution": "DNS" })));
    api.put(entry(
        "part",
        &json!({ "hosts": ["a..b", "part.global"], "addresses": ["10.0.0.2", "x"], "resolution": "DNS" }),
    ));
    api.put(object("WorkloadEntry", "shop", "vm", json!({ "spec": { "address": "a b" } })));
    let edge = Edge::start(&mesh(&api));
    edge.wait_synced();
    assert_eq!(
        (addresses(&edge, "pay.global"), addresses(&edge, "part.global")),
        ("10.0.0.1".into(), "10.0.0.2".into())
    );
    let lines = edge.lines();
    let about = |what: &str| lines.iter().filter(|line| line.contains(what)).cloned().collect::<Vec<_>>();
    assert_eq!(
        about("shop/star"),
        [r#"[WARNING] plugin/istio: Ignoring invalid service entry: shop/star: "*" is not a host name"#]
    );
    assert_eq!(
        about("shop/part"),
        [r#"[WARNING] plugin/istio: Ignoring a part of service entry shop/part: "a..b" is not a host name"#]
    );
    assert_eq!(about("shop/vm").len(), 1);
    assert_eq!(about("shop/shape").len(), 1);
    let counted = |kind: &str, reason: &str| {
        edge.metric(&format!("portolan_kubernetes_object_errors_total{{kind=\"{kind}\",reason=\"{reason}\"}}"))
    };
    assert_eq!(counted("ServiceEntry", "invalid"), 2.0);
    assert_eq!(counted("ServiceEntry", "shape"), 1.0);
    assert_eq!(counted("WorkloadEntry", "invalid"), 1.0);
    // An entry that becomes invalid keeps its last state.
    let line = r#"{"type":"MODIFIED","object":{"metadata":{"namespace":"shop","name":"pay","resourceVersion":"99"},"spec":7}}"#;
    api.inject("serviceentries", line);
    edge.wait_log("[WARNING] plugin/kubernetes: ServiceEntry 'shop/pay' cannot be read");
    assert_eq!(addresses(&edge, "pay.global"), "10.0.0.1");
}

#[test]
fn logs_changes_like_istios_plugin_up_to_a_rate() {
    let api = FakeApi::start();
    api.put_all((0..300).map(|at| service_entry("shop", &format!("e{at}"), &format!("h{at}.global"), "10.0.0.1")));
    let edge = Edge::start(&mesh(&api));
    edge.wait_log("[INFO] plugin/istio: Have 300 service entries");
    assert_eq!(edge.logged("[INFO] plugin/istio: adding DNS mapping: "), 100);
    assert_eq!(edge.logged("[INFO] plugin/istio: changing 200 DNS mappings more"), 1);
    edge.wait_synced();
    api.put(service_entry("shop", "wild", "*.test.global", "127.255.0.2"));
    edge.wait_log("[INFO] plugin/istio: adding DNS mapping: .test.global.->[127.255.0.2]");
    edge.wait_log("[INFO] plugin/istio: Have 301 service entries");
    api.delete("serviceentries", "shop", "wild");
    edge.wait_log("[INFO] plugin/istio: removing DNS mapping: .test.global.");
}

#[test]
fn watches_configured_namespaces_and_pods() {
    let api = FakeApi::start();
    let selects =
        json!({ "hosts": ["pay.global"], "resolution": "STATIC", "workloadSelector": { "labels": { "app": "pay" } } });
    api.put(entry("pay", &selects));
    api.put(object(
        "WorkloadEntry",
        "shop",
        "vm",
        json!({ "spec": { "address": "10.9.0.1", "labels": { "app": "pay" } } }),
    ));
    let ready = json!({ "podIP": "10.1.0.1", "conditions": [{ "type": "Ready", "status": "True" }] });
    let pod = json!({ "metadata": { "labels": { "app": "pay" } }, "status": ready });
    api.put(object("Pod", "shop", "pay-1", pod));
    api.put(object("ServiceEntry", "other", "o", json!({ "spec": { "hosts": ["o.global"], "resolution": "DNS" } })));
    let request = Request { namespaces: vec!["shop".to_owned()], pods: true, ..mesh(&api) };
    let edge = Edge::start(&request);
    edge.wait_synced();
    assert_eq!(addresses(&edge, "pay.global"), "10.1.0.1 10.9.0.1");
    assert_eq!(addresses(&edge, "o.global"), "none");
    assert_eq!(edge.index.count(Kind::ServiceEntry), 1);
    assert!(api.seen().iter().all(|seen| seen.namespace == "shop"));
    assert!(edge.index.mesh().unwrap().client("10.1.0.1".parse().unwrap()).is_some());
    api.delete("pods", "shop", "pay-1");
    wait_addresses(&edge, "pay.global", "10.9.0.1");
}

#[test]
fn reads_a_mesh_from_manifests() {
    let text = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: { name: pay, resourceVersion: '1' }\n\
                spec: { hosts: [pay.global], resolution: STATIC, workloadSelector: { labels: { app: pay } } }\n---\n\
                apiVersion: networking.istio.io/v1alpha3\nkind: WorkloadEntry\nmetadata: { name: vm }\n\
                spec: { address: 10.9.0.1, labels: { app: pay } }\n---\n\
                apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: { name: bad }\nspec: 7\n---\n\
                apiVersion: v1\nkind: Pod\nmetadata: { name: p, labels: { app: pay } }\nstatus: { podIP: 10.1.0.1 }\n";
    let folder = folder("mesh");
    let file = folder.join("mesh.yaml");
    fs::write(&file, text).unwrap();
    let source = Source::Manifests(vec![folder.to_path_buf()]);
    let edge = Edge::start(&Request { mesh: true, pods: true, ..Request::new(source) });
    edge.wait_synced();
    assert_eq!(addresses(&edge, "pay.global"), "10.1.0.1 10.9.0.1");
    assert_eq!(edge.logged("[WARNING] plugin/kubernetes: ServiceEntry 'default/bad' cannot be read"), 1);
    fs::write(&file, text.replace("10.9.0.1", "10.9.0.22")).unwrap();
    wait_addresses(&edge, "pay.global", "10.1.0.1 10.9.0.22");
}
