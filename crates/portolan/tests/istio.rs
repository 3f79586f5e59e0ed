//! Hosts of an Istio mesh: an API server with ServiceEntries that starts, changes its objects and fails, one without
//! Istio, and the answers.

use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::served::Served;
use crate::support::{Client, Folder, Server, page, wait_until};
use fakeapi::{FakeApi, service_entry};
use wire::{Rcode, Type};

/// Extended DNS Error Not Ready (RFC 8914 §4.15).
const NOT_READY: u16 = 14;

/// Zone outside the mesh.
const ZONE: &str = "@ 60 SOA ns host 1 2 3 4 5\n@ 60 NS ns\nwww 60 A 192.0.2.1\n";

/// Returns a Corefile for a mesh, with [`ZONE`] after it.
fn corefile(api: &FakeApi, options: &str) -> String {
    let url = api.url();
    format!(
        ".:0 {{
    root .
    ready localhost:0
    cache 30
    istio {{
        endpoint {url}
        fallthrough
        {options}
    }}
    file example.org.zone example.org
}}
"
    )
}

fn serve(corefile: &str) -> Served {
    let folder = Folder::new("istio");
    folder.write("example.org.zone", ZONE);
    let corefile = corefile.replace("root .", &format!("root {}", folder.path().display()));
    Served::start_in(folder, &corefile)
}

#[test]
fn answers_servfail_before_the_first_sync_and_keeps_data_in_an_outage() {
    let api = FakeApi::start();
    api.put(service_entry("shop", "pay", "pay.global", "10.0.0.1"));
    api.down();
    let mut served = serve(&corefile(&api, ""));
    for name in ["pay.global.", "www.example.org."] {
        let answer = served.client.ask(name, Type::A).expect("an answer at once");
        assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(NOT_READY)), "{name}");
    }
    assert!(!served.is_ready());
    api.up();
    served.wait_until_ready();
    assert_eq!(served.addresses("pay.global."), ["10.0.0.1"]);
    let asked = || api.seen().iter().filter(|seen| seen.resource == "serviceentries").count();
    let known = asked();
    let corefile = std::fs::read_to_string(served.folder.path().join("Corefile")).unwrap();
    served.reload(&corefile.replace("cache 30", "cache 31"));
    served.server.wait_for("Reloading complete");
    assert_eq!(served.addresses("pay.global."), ["10.0.0.1"]);
    assert_eq!(asked(), known, "nothing was listed again");
    api.down();
    served.server.wait_for("Failed to watch ");
    assert_eq!(served.addresses("pay.global."), ["10.0.0.1"]);
    assert_eq!(served.addresses("www.example.org."), ["192.0.2.1"]);
    assert!(served.is_ready());
    api.put(service_entry("shop", "pay", "pay.global", "10.0.0.2"));
    api.up();
    served.wait_for_addresses("pay.global.", &["10.0.0.2"]);
}

#[test]
fn falls_through_without_istio() {
    let api = FakeApi::start();
    let mut served = serve(&corefile(&api, ""));
    served.wait_for_addresses("www.example.org.", &["192.0.2.1"]);
    served.wait_until_ready();
    served.server.wait_for("The API server has no serviceentries");
}

/// Checks that a change among ten thousand entries reaches the answers within 20 ms.
#[test]
fn answers_reflect_a_change_among_ten_thousand_entries() {
    let api = FakeApi::start();
    let host = |at: u32| format!("h{at}.ns{}.global", at % 100);
    api.put_all((0..10_000).map(|at| service_entry("shop", &format!("e{at}"), &host(at), "10.0.0.1")));
    let mut served = serve(&corefile(&api, ""));
    served.server.wait_for("Have 10000 service entries");
    served.wait_until_ready();
    for host in ["h0.ns0.global.", "h9999.ns99.global."] {
        assert_eq!(served.addresses(host), ["10.0.0.1"]);
    }
    let times = (1..=20).map(|round| {
        let address = format!("10.0.1.{round}");
        let begin = Instant::now();
        api.put(service_entry("shop", "e4242", "h4242.ns42.global", &address));
        served.wait_for_addresses("h4242.ns42.global.", &[&address]);
        begin.elapsed()
    });
    // A busy machine delays some changes; a cost per entry would delay all.
    let fastest = times.min().unwrap();
    assert!(fastest < Duration::from_millis(20), "{fastest:?}");
    // Cached answers from other plugins do not hide a new host.
    assert_eq!(served.addresses("www.example.org."), ["192.0.2.1"]);
    api.put(service_entry("shop", "www", "www.example.org", "240.240.0.1"));
    served.wait_for_addresses("www.example.org.", &["240.240.0.1"]);
    api.delete("serviceentries", "shop", "www");
    served.wait_for_addresses("www.example.org.", &["192.0.2.1"]);
}

#[test]
fn an_invalid_entry_affects_only_itself() {
    let api = FakeApi::start();
    api.put(service_entry("shop", "pay", "pay.global", "10.0.0.1"));
    api.put(service_entry("shop", "star", "*", "10.0.0.2"));
    let mut served = serve(&corefile(&api, ""));
    served
        .server
        .wait_for("[WARNING] plugin/istio: Ignoring invalid service entry: shop/star: \"*\" is not a host name");
    served.wait_until_ready();
    let named = "\"namespace\":\"shop\",\"name\":\"pay\",\"resourceVersion\":\"99\"";
    let line = format!("{{\"type\":\"MODIFIED\",\"object\":{{\"metadata\":{{{named}}},\"spec\":\"nonsense\"}}}}");
    api.inject("serviceentries", &line);
    served.server.wait_for("ServiceEntry 'shop/pay' cannot be read, what was known of it stays");
    served.wait_for_addresses("pay.global.", &["10.0.0.1"]);
}

#[test]
fn serves_and_watches_manifests_of_a_mesh() {
    let folder = Folder::new("mesh");
    let manifest = |address: &str| {
        format!(
            "apiVersion: networking.istio.io/v1beta1\nkind: ServiceEntry\nmetadata: {{name: pay}}\n\
             spec: {{hosts: ['*.pay.global'], resolution: STATIC, endpoints: [{{address: {address}}}]}}\n"
        )
    };
    let path = folder.write("mesh.yaml", &manifest("10.0.0.1"));
    let options = format!("manifests {}", path.display());
    let corefile = format!("global:0 {{\n    istio {{\n        {options}\n    }}\n    ready localhost:0\n}}\n");
    let mut served = Served::start_in(folder, &corefile);
    served.wait_for_addresses("a.pay.global.", &["10.0.0.1"]);
    served.folder.write("mesh.yaml", &manifest("10.0.0.22"));
    served.wait_for_addresses("a.pay.global.", &["10.0.0.22"]);
}

/// Checks that either container of the pod `istiocoredns` can be replaced: the gRPC server, and the one that forwards
/// to it.
#[test]
fn replaces_either_container_of_istiocoredns() {
    let folder = Folder::new("istio-pair");
    let api = FakeApi::start();
    api.put(service_entry("shop", "pay", "pay.global", "10.0.0.1"));
    let options = format!("bind 127.0.0.1\nready 127.0.0.1:0\nistio {{\nendpoint {}\n}}", api.url());
    let asked = format!("grpc://global:0 {{\n{options}\n}}\n");
    let mut plugin = Server::start(&folder.write("plugin", &asked));
    let (to, pages) = (plugin.address_of("grpc://127.0.0.1:0"), plugin.address_of("127.0.0.1:0"));
    wait_until("it is ready", || page(pages, "/ready").is_some_and(|(status, _)| status == 200));
    let asking = format!(".:0 {{\nbind 127.0.0.1\ngrpc global {to}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &asking));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    let answer = client.ask("pay.global.", Type::A).expect("an answer");
    assert_eq!(answer.addresses(), ["10.0.0.1".parse::<IpAddr>().unwrap()]);
    let mut rcode = |name, qtype| client.ask(name, qtype).expect("an answer").rcode();
    assert_eq!(rcode("pay.global.", Type::AAAA), Rcode::NOERROR);
    assert_eq!(rcode("nobody.global.", Type::A), Rcode::NXDOMAIN);
}

#[test]
fn check_prints_the_permissions_for_istio() {
    let folder = Folder::new("istio-rbac");
    let rights = |options: &str| {
        let corefile = folder.write("Corefile", &format!("global {{\n    istio {{\n        {options}\n    }}\n}}\n"));
        let portolan = env!("CARGO_BIN_EXE_portolan");
        let output = Command::new(portolan).args(["check", "--rbac"]).arg(corefile).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let of_istio = "  - apiGroups: [\"networking.istio.io\"]\n    resources: [serviceentries, workloadentries]\n    \
                    verbs: [list, watch]\n";
    assert!(rights("ttl 5").ends_with(&format!("kind: ClusterRole\nmetadata:\n  name: portolan\nrules:\n{of_istio}")));
    assert!(rights("pods").contains("resources: [pods]"));
    let role = rights("namespaces shop");
    assert!(role.contains("kind: Role\nmetadata:\n  name: portolan\n  namespace: shop\n") && role.contains(of_istio));
    assert_eq!(rights(&format!("manifests {}", folder.path().display())), "");
}
