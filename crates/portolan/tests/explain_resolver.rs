//! Explanations for Pods whose resolvers ask in another way: `dnsPolicy`, `dnsConfig`, and the cluster domain of the
//! kubelet.

use std::process::Command;

use fakeapi::{FakeApi, Fault, object, service, slice};
use serde_json::{Value, json};

use crate::support::control::{ControlSocket, Ran};
use crate::support::{Folder, Server, wait_until};

/// API server with Pods of one namespace on the node `n1`.
fn api(pods: &[(&str, Value)]) -> FakeApi {
    let api = FakeApi::with_shop();
    api.put_all([service("shop", "db", "10.96.44.7"), slice("shop", "db", &["10.244.0.9"])]);
    for (name, spec) in pods {
        let mut spec = spec.clone();
        spec["nodeName"] = json!("n1");
        let pod = json!({ "spec": spec, "status": { "podIP": "10.244.0.77" } });
        api.put(object("Pod", "shop", name, pod));
    }
    api
}

fn kubelet(api: &FakeApi, domain: &str) {
    api.put_document("/api/v1/nodes/n1/proxy/configz", json!({ "kubeletconfig": { "clusterDomain": domain } }));
}

/// Explains a name with a server that follows the API server.
fn explain(api: &FakeApi, pod: &str) -> Ran {
    let folder = Folder::new("resolver");
    let url = api.url();
    let text = format!(".:0 {{\n bind 127.0.0.1\n kubernetes cluster.local {{\n  endpoint {url}\n }}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &text));
    let socket = ControlSocket::of(&mut server);
    wait_until("the view is complete", || socket.run(&["ready"]).code == 0);
    socket.run(&["explain", "db", "--from", &format!("shop/{pod}")])
}

#[test]
fn the_domain_of_the_kubelet_counts_and_not_that_of_the_corefile() {
    let api = api(&[("web", json!({}))]);
    kubelet(&api, "other.example");
    let ran = explain(&api, "web");
    let search = "search shop.svc.other.example svc.other.example other.example · ndots 5 (dnsPolicy ClusterFirst)";
    assert!(ran.stdout.contains(search), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.code == 1 && ran.stdout.contains("db.shop.svc.other.example."), "{}", ran.stdout);
    assert!(!ran.stdout.contains("assumed"), "{}", ran.stdout);
}

#[test]
fn says_why_the_domain_is_assumed() {
    let api = api(&[(
        "web",
        json!({ "dnsConfig": { "searches": ["corp.example"], "options": [{ "name": "ndots", "value": "2" }] } }),
    )]);
    let ran = explain(&api, "web");
    let search = "search shop.svc.cluster.local svc.cluster.local cluster.local corp.example · ndots 2 \
                  (dnsPolicy ClusterFirst; cluster domain assumed, see PD-K02)";
    assert!(ran.code == 0 && ran.stdout.contains(search), "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("note  the cluster domain is assumed: the kubelet of n1 cannot be asked"),
        "{}",
        ran.stdout
    );
    api.fault("pods", Fault::Status(403, None));
    let ran = explain(&api, "web");
    assert!(ran.stdout.contains("· ndots 5 (assumed, see PD-K02)"), "{}{}", ran.stdout, ran.stderr);
}

/// A node that is down is a reason to ask for an explanation.
#[test]
fn explains_without_a_kubelet_or_an_api_server_that_responds() {
    let api = api(&[("web", json!({ "dnsConfig": { "options": [{ "name": "ndots", "value": "2" }] } }))]);
    kubelet(&api, "other.example");
    api.fault("/api/v1/nodes/n1/proxy/configz", Fault::Stall);
    let ran = explain(&api, "web");
    let search = "svc.cluster.local cluster.local · ndots 2 (dnsPolicy ClusterFirst; cluster domain assumed";
    assert!(ran.code == 0 && ran.stdout.contains(search), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("the kubelet of n1 cannot be asked: no response within 1 s"), "{}", ran.stdout);
    api.fault("pods", Fault::Stall);
    let ran = explain(&api, "web");
    assert!(ran.stdout.contains("db.shop.svc.cluster.local."), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("address unknown") && ran.stdout.contains("(assumed, see PD-K02)"), "{}", ran.stdout);
}

#[test]
fn a_pod_that_asks_other_servers_is_named() {
    let api = api(&[
        ("default", json!({ "dnsPolicy": "Default" })),
        ("node", json!({ "hostNetwork": true })),
        ("both", json!({ "hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet" })),
        (
            "own",
            json!({ "dnsPolicy": "None", "dnsConfig": { "nameservers": ["192.0.2.53"], "searches": ["corp.example"] } }),
        ),
    ]);
    kubelet(&api, "cluster.local");
    for pod in ["default", "node"] {
        let ran = explain(&api, pod);
        assert!(
            ran.code == 3 && ran.stdout.contains("search without domains · ndots 1 (dnsPolicy Default)"),
            "{}",
            ran.stdout
        );
        assert!(ran.stdout.contains("it asks the nameservers of its node"), "{}", ran.stdout);
    }
    let ran = explain(&api, "own");
    assert!(ran.code == 3 && ran.stdout.contains("search corp.example · ndots 1 (dnsPolicy None)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("nameservers of its dnsConfig: 192.0.2.53;"), "{}", ran.stdout);
    let ran = explain(&api, "both");
    assert!(ran.code == 0 && ran.stdout.contains("(dnsPolicy ClusterFirst)"), "{}", ran.stdout);
}

#[test]
fn manifests_have_the_settings_of_a_pod() {
    let folder = Folder::new("resolver");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\n\
               spec:\n  dnsConfig:\n    searches: [corp.example]\n    options: [{name: ndots, value: \"3\"}]\n  containers: []\n\
               status: {podIP: 10.244.0.8}\n";
    let manifest = folder.write("pod.yaml", pod).display().to_string();
    let corefile = folder.write("Corefile", ".:53 {\n kubernetes cluster.local\n}\n");
    let corefile = corefile.display().to_string();
    let words = ["explain", "db", "--from", "shop/web", "--conf", &corefile, "--manifests", &manifest];
    let ran: Ran = Command::new(env!("CARGO_BIN_EXE_portolan")).args(words).output().unwrap().into();
    let search = "cluster.local corp.example · ndots 3 (dnsPolicy ClusterFirst; cluster domain assumed";
    assert!(ran.stdout.contains(search), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains("note"), "no kubelet was asked: {}", ran.stdout);
}
