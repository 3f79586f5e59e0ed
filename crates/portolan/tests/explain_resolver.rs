//! Explanations for Pods whose resolvers ask in another way: `dnsPolicy`, `dnsConfig`, and the cluster domain of the
//! kubelet.

use std::net::IpAddr;
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

/// Server that follows the API server.
struct Bed {
    _server: Server,
    socket: ControlSocket,
    _folder: Folder,
}

impl Bed {
    fn start(api: &FakeApi) -> Bed {
        let folder = Folder::new("resolver");
        let url = api.url();
        let text = format!(".:0 {{\n bind 127.0.0.1\n kubernetes cluster.local {{\n  endpoint {url}\n }}\n}}\n");
        let mut server = Server::start(&folder.write("Corefile", &text));
        let socket = ControlSocket::of(&mut server);
        wait_until("the view is complete", || socket.run(&["ready"]).code == 0);
        Bed { _server: server, socket, _folder: folder }
    }

    /// Explains a name for a Pod of the namespace, or for an address.
    fn explain(&self, from: &str) -> Ran {
        let from = if from.parse::<IpAddr>().is_ok() { from.to_owned() } else { format!("shop/{from}") };
        self.socket.run(&["explain", "db", "--from", &from])
    }
}

/// Explains a name with a server that follows the API server.
fn explain(api: &FakeApi, from: &str) -> Ran {
    Bed::start(api).explain(from)
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
    let bed = Bed::start(&api);
    let ran = bed.explain("web");
    let search = "svc.cluster.local cluster.local · ndots 2 (dnsPolicy ClusterFirst; cluster domain assumed";
    assert!(ran.code == 0 && ran.stdout.contains(search), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("the kubelet of n1 cannot be asked: no response within 1 s"), "{}", ran.stdout);
    api.fault("pods", Fault::Stall);
    let ran = bed.explain("web");
    assert!(ran.stdout.contains("db.shop.svc.cluster.local."), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("address unknown") && ran.stdout.contains("(assumed, see PD-K02)"), "{}", ran.stdout);
    let note = "the search path is assumed: the API server did not answer within 2 s";
    assert!(ran.stdout.contains(note), "{}", ran.stdout);
    let status = bed.socket.run(&["status"]);
    assert!(status.stdout.contains("pod_lookup_time 2 in"), "{}", status.stdout);
}

/// The API servers of several clusters are asked at the same time, so those that do not respond take 2 s together.
#[test]
fn explains_although_the_api_servers_of_several_clusters_do_not_respond() {
    let (first, second) = (api(&[]), api(&[("web", json!({ "dnsPolicy": "Default" }))]));
    let folder = Folder::new("resolver-clusters");
    let block = |key: &str, zone: &str, url: &str| {
        format!("{key}:0 {{\n bind 127.0.0.1\n kubernetes {zone} {{\n  endpoint {url}\n }}\n}}\n")
    };
    let corefile = block(".", "cluster.local", first.url()) + &block("other.local", "other.local", second.url());
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let socket = ControlSocket::of(&mut server);
    wait_until("both views are complete", || socket.run(&["ready"]).code == 0);
    first.fault("pods", Fault::Stall);
    let ran = socket.run(&["explain", "db", "--from", "shop/web"]);
    assert!(ran.stdout.contains("(dnsPolicy Default)"), "{}{}", ran.stdout, ran.stderr);
    second.fault("pods", Fault::Stall);
    let ran = socket.run(&["explain", "db", "--from", "shop/web"]);
    let note = "the search path is assumed: the API server did not answer within 2 s";
    assert!(ran.stdout.contains(note), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_pod_that_asks_other_servers_is_named() {
    let api = api(&[
        ("default", json!({ "dnsPolicy": "Default" })),
        ("node", json!({ "hostNetwork": true })),
        ("more", json!({ "dnsPolicy": "Default", "dnsConfig": { "nameservers": ["10.96.0.10"] } })),
        ("asks", json!({ "dnsPolicy": "None", "dnsConfig": { "nameservers": ["10.96.0.10", "192.0.2.53"] } })),
        ("late", json!({ "dnsPolicy": "None", "dnsConfig": { "nameservers": ["192.0.2.53", "10.96.0.10"] } })),
        ("both", json!({ "hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet" })),
        (
            "own",
            json!({
                "dnsPolicy": "None",
                "dnsConfig": { "nameservers": ["192.0.2.53"], "searches": ["corp.example"] },
            }),
        ),
    ]);
    kubelet(&api, "cluster.local");
    api.put(service("kube-system", "kube-dns", "10.96.0.10"));
    let bed = Bed::start(&api);
    for (pod, policy, note) in [
        ("default", "(dnsPolicy Default)", "note  dnsPolicy Default: it asks the nameservers of its node"),
        ("node", "(dnsPolicy Default, by hostNetwork)", "where dnsPolicy ClusterFirst has the effect of Default"),
        ("more", "(dnsPolicy Default)", "it asks the cluster DNS, 10.96.0.10, only if those before it do not respond"),
    ] {
        let ran = bed.explain(pod);
        let search = format!("search without domains · ndots 1 {policy}");
        assert!(ran.code == 3 && ran.stdout.contains(&search), "{pod}: {}", ran.stdout);
        assert!(ran.stdout.contains(note), "{pod}: {}", ran.stdout);
    }
    let ran = bed.explain("asks");
    let note = "in this order: 10.96.0.10, 192.0.2.53; the first is the cluster DNS";
    assert!(ran.code != 3 && ran.stdout.contains(note), "{} {}", ran.code, ran.stdout);
    let ran = bed.explain("late");
    assert!(ran.code == 3 && ran.stdout.contains("10.96.0.10, only if those before it"), "{}", ran.stdout);
    let ran = bed.explain("own");
    assert!(ran.code == 3 && ran.stdout.contains("search corp.example · ndots 1 (dnsPolicy None)"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("nameservers of its dnsConfig: 192.0.2.53; the cluster DNS, 10.96.0.10, is not among"),
        "{}",
        ran.stdout
    );
    let ran = bed.explain("both");
    assert!(ran.code == 0 && ran.stdout.contains("(dnsPolicy ClusterFirst)"), "{}", ran.stdout);
}

#[test]
fn the_address_of_a_pod_is_as_good_as_its_name() {
    let api = api(&[("web", json!({ "dnsConfig": { "options": [{ "name": "ndots", "value": "2" }] } }))]);
    kubelet(&api, "other.example");
    let bed = Bed::start(&api);
    let ran = bed.explain("10.244.0.77");
    assert!(ran.stdout.starts_with("db  A  from shop/web (10.244.0.77)"), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("other.example · ndots 2 (dnsPolicy ClusterFirst)"), "{}", ran.stdout);
    // The endpoint of a Service has no Pod here, so the namespace is known, and the resolver is not.
    let ran = bed.explain("10.244.0.9");
    assert!(ran.stdout.contains("10.244.0.9 (namespace shop)"), "{}{}", ran.stdout, ran.stderr);
    let note = "note  the search path is assumed: no such Pod was found";
    assert!(ran.stdout.contains("(assumed, see PD-K02)") && ran.stdout.contains(note), "{}", ran.stdout);
    api.fault("pods", Fault::Status(403, None));
    let ran = bed.explain("10.244.0.9");
    let note = "the search path is assumed: the API server refuses to list Pods (403";
    assert!(ran.stdout.contains(note), "{}{}", ran.stdout, ran.stderr);
    api.heal("pods");
    api.put(object(
        "Pod",
        "shop",
        "proxy",
        json!({ "spec": { "hostNetwork": true }, "status": { "podIP": "192.0.2.1" } }),
    ));
    let ran = bed.explain("192.0.2.1");
    let note = "search path are not known: the address is that of a node, and of the Pods on its network: shop/proxy";
    assert!(ran.stdout.contains(note), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn manifests_have_the_settings_of_a_pod() {
    let folder = Folder::new("resolver");
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec:\n  dnsConfig:\n    searches: \
               [corp.example]\n    options: [{name: ndots, value: \"3\"}]\n  containers: []\nstatus: {podIP: \
               10.244.0.8}\n";
    let manifest = folder.write("pod.yaml", pod).display().to_string();
    let corefile = folder.write("Corefile", ".:53 {\n kubernetes cluster.local\n}\n");
    let corefile = corefile.display().to_string();
    for from in ["shop/web", "10.244.0.8"] {
        let words = ["explain", "db", "--from", from, "--conf", &corefile, "--manifests", &manifest];
        let ran: Ran = Command::new(env!("CARGO_BIN_EXE_portolan")).args(words).output().unwrap().into();
        let search = "cluster.local corp.example · ndots 3 (dnsPolicy ClusterFirst; cluster domain assumed";
        assert!(ran.stdout.contains("from shop/web (10.244.0.8)"), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(search), "{}{}", ran.stdout, ran.stderr);
        assert!(!ran.stdout.contains("note"), "no kubelet was asked: {}", ran.stdout);
    }
}
