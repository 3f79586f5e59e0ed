//! `portolan explain` beside the answer: the address of the pod in `--from NAMESPACE/POD`, what it says if the
//! address is not known, and suggestions.

use std::net::UdpSocket;
use std::process::Command;

use crate::support::control::{ControlSocket, Ran};
use crate::support::{Client, Folder, Server};
use fakeapi::{FakeApi, Fault, object};
use serde_json::json;
use wire::Type;

/// EndpointSlice whose ready endpoint is the pod web-1, and a dual-stack pod.
const CLUSTER: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: 10.96.0.8, ports: [{port: 80}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints:
- {addresses: [10.244.3.8], conditions: {ready: true}, targetRef: {kind: Pod, name: web-1}}
---
{apiVersion: v1, kind: Pod, metadata: {name: both, namespace: shop}, status: {podIPs: [{ip: 10.244.9.9}, {ip: 'fd00::9'}]}}
";

/// Rules of *acl* that refuse the pod.
const BLOCKED: &str = "acl {\n        block net 10.244.3.0/24 fd00::/64\n    }";

/// Explains from files, with these lines above *kubernetes*.
fn offline(lines: &str, words: &[&str]) -> Ran {
    let folder = Folder::new("explain-client");
    let corefile =
        format!(".:53 {{\n    {lines}\n    kubernetes cluster.local\n    cache 30\n    forward . 192.0.2.53\n}}\n");
    folder.write("Corefile", &corefile);
    folder.write("cluster.yaml", CLUSTER);
    let files = ["--conf", "Corefile", "--manifests", "cluster.yaml"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.current_dir(folder.path()).args([&["explain"], words, &files].concat());
    command.output().expect("the command runs").into()
}

#[track_caller]
fn assert_shows(ran: &Ran, code: i32, texts: &[&str]) {
    for text in texts {
        assert!(ran.stdout.contains(text), "`{text}` is missing:\n{}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_pod_of_a_slice_gets_the_answer_that_acl_gives_it() {
    let ran = offline(BLOCKED, &["www.example.org.", "--from", "shop/web-1"]);
    assert_shows(&ran, 1, &["from shop/web-1 (10.244.3.8)", "REFUSED", "applies to 10.244.3.8 [PE-L01]"]);
}

#[test]
fn another_result_for_the_other_address_of_a_pod_is_shown() {
    let ran = offline(BLOCKED, &["www.example.org.", "--from", "shop/both"]);
    let note = "note  from fd00::9, another address of the client, www.example.org. is REFUSED";
    assert_shows(&ran, 3, &["from shop/both (10.244.9.9, fd00::9)", note]);
    let ran = offline("acl {\n        block net 10.9.0.0/16\n    }", &["www.example.org.", "--from", "shop/both"]);
    assert_shows(&ran, 0, &["from shop/both (10.244.9.9, fd00::9)"]);
    assert!(!ran.stdout.contains("note"), "{}", ran.stdout);
}

#[test]
fn rules_by_address_are_named_if_the_address_is_not_known() {
    let ran = offline(BLOCKED, &["www.example.org.", "--from", "shop/gone"]);
    let unknown = "note  the address is not known: the manifests have neither the Pod nor an endpoint of it";
    let assumed = "note  the search path is assumed: the manifests have neither the Pod nor an endpoint of it";
    let rules = "note  rules by address could not be judged: acl (Corefile:2); name the address with `--from ADDRESS`";
    assert_shows(&ran, 3, &[unknown, rules, assumed]);
    let ran = offline("loadbalance", &["www.example.org.", "--from", "shop/gone"]);
    assert_shows(&ran, 0, &["from shop/gone (address unknown, rules see 0.0.0.0)", assumed]);
    assert_eq!(ran.stdout.matches("note").count(), 1, "{}", ran.stdout);
}

#[test]
fn a_service_with_nothing_behind_it_is_named_although_it_is_answered() {
    let lost = CLUSTER.replace("kubernetes.io/service-name: web", "kubernetes.io/service-name: wbe");
    let unready = CLUSTER.replace("ready: true", "ready: false");
    let explain = |cluster: &str, options: &str| {
        let folder = Folder::new("explain-nothing-behind");
        folder.write("Corefile", &format!(".:53 {{\n    kubernetes cluster.local {{\n        {options}\n    }}\n}}\n"));
        folder.write("cluster.yaml", cluster);
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.current_dir(folder.path()).args(["explain", "web", "--from", "shop/web-1", "--conf", "Corefile"]);
        Ran::from(command.args(["--manifests", "cluster.yaml"]).output().expect("the command runs"))
    };
    let why = "why   Service shop/web has no endpoint, so nothing answers at its address: does its selector match a \
               pod? [PE-K14]";
    let advice = "kubectl -n shop get pods --show-labels: compare the selector with the labels";
    assert_shows(&explain(&lost, "ttl 5"), 1, &["NOERROR", "10.96.0.8", why, advice]);
    let why = "why   Service shop/web has no ready endpoint (1 not ready), so nothing answers at its address [PE-K14]";
    assert_shows(
        &explain(&unready, "ttl 5"),
        1,
        &[why, "do    kubectl -n shop describe pod web-1", "not ready  web-1"],
    );
    assert_shows(&explain(CLUSTER, "ttl 5"), 0, &["NOERROR", "[PE-S01]"]);
    assert_shows(&explain(&lost, "noendpoints"), 0, &["NOERROR", "[PE-S01]"]);
}

#[test]
fn advice_against_wasted_queries_leads_to_the_same_answer() {
    let advice = |lines: &str, name: &str| {
        let ran = offline(lines, &[name, "--from", "shop/web-1"]);
        let advice = ran.stdout.lines().find_map(|line| line.strip_prefix("  do    ")).map(str::to_owned);
        (advice.unwrap_or_default(), ran.stdout)
    };
    // With a dot at its end, this name goes to the upstream, and `ndots 2` changes nothing.
    let (found, stdout) = advice("loadbalance", "web.shop");
    assert_eq!(found, "the whole name: web.shop.svc.cluster.local., or autopath in the Corefile", "{stdout}");
    let whole = offline("loadbalance", &["web.shop.svc.cluster.local.", "--from", "shop/web-1"]);
    assert!(whole.stdout.contains("NOERROR  10.96.0.8") && !whole.stdout.contains("  do "), "{}", whole.stdout);
    for (lines, name, expected) in [
        (
            "loadbalance",
            "www.example.org",
            "dnsConfig ndots 2, a dot at the end of the name, or autopath in the Corefile",
        ),
        ("loadbalance", "example.org", "a dot at the end of the name, or autopath in the Corefile"),
        ("autopath @kubernetes", "web.shop", "the whole name: web.shop.svc.cluster.local."),
        ("autopath @kubernetes", "www.example.org", "dnsConfig ndots 2, or a dot at the end of the name"),
    ] {
        let (found, stdout) = advice(lines, name);
        assert_eq!(found, expected, "{lines} {name}: {stdout}");
    }
}

#[test]
fn a_missing_port_is_explained_by_those_that_exist() {
    let folder = Folder::new("explain-ports");
    folder.write("Corefile", ".:53 {\n    kubernetes cluster.local\n}\n");
    let ports = "[{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]";
    folder.write(
        "cluster.yaml",
        &CLUSTER.replace("clusterIP: 10.96.0.8, ports: [{port: 80}]", &format!("clusterIP: 10.96.0.8, ports: {ports}")),
    );
    for (name, why) in [
        ("_grpc._tcp.web", "Service shop/web has no port grpc for tcp; it has _http._tcp, _dns._udp [PE-K11]"),
        ("_sctp.web", "Service shop/web has no named port for sctp; it has _http._tcp, _dns._udp [PE-K11]"),
    ] {
        let name = format!("{name}.shop.svc.cluster.local.");
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.current_dir(folder.path()).args(["explain", &name, "SRV", "--conf", "Corefile"]);
        let ran = Ran::from(command.args(["--manifests", "cluster.yaml"]).output().expect("the command runs"));
        assert!(ran.code == 1 && ran.stdout.contains(why), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn every_plugin_that_looks_at_the_client_is_named() {
    for (lines, name, expected) in [
        ("acl test {\n block net 10.0.0.0/8\n }", "a.test.", true),
        ("acl test {\n block net 10.0.0.0/8\n }", "a.other.", false),
        ("acl {\n block type TXT net 10.0.0.0/8\n }", "a.test.", false),
        ("acl {\n block type AAAA\n }", "a.test.", false),
        ("dns64 64:ff9b::/96", "a.test.", false),
        ("rewrite edns0 subnet set 24 56", "a.test.", true),
        ("rewrite edns0 local set 0xffee {client_ip}", "a.test.", true),
        ("rewrite edns0 local set 0xffee {qname}", "a.test.", false),
        ("template IN A test {\n answer \"{{ .Name }} 60 IN A 192.0.2.1\"\n }", "a.test.", false),
        ("template IN TXT test {\n answer \"{{ .Name }} 60 IN TXT {{ .Remote }}\"\n }", "a.test. TXT", true),
        (
            "template IN A test {\n expr incidr(client_ip(), '10.0.0.0/8')\n answer \"{{ .Name }} 60 IN A \
             192.0.2.1\"\n fallthrough\n }",
            "a.test.",
            true,
        ),
        ("view inside {\n expr incidr(client_ip(), '10.0.0.0/8')\n }", "a.test.", true),
        ("view inside {\n expr type() == 'A'\n }", "a.test.", false),
        ("autopath @kubernetes\n kubernetes other.local {\n pods verified\n }", "web.shop.svc.other.local.", false),
    ] {
        let words: Vec<&str> = name.split(' ').collect();
        let ran = offline(lines, &[&words[..], &["--from", "shop/gone"]].concat());
        let is_named = ran.stdout.contains("could not be judged");
        assert!(is_named == expected && (ran.code == 3) == expected, "{lines}\n{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn an_autopath_for_pods_of_the_namespace_is_named() {
    let folder = Folder::new("explain-autopath");
    folder.write(
        "Corefile",
        ".:53 {\n    autopath @kubernetes\n    kubernetes cluster.local {\n        pods verified\n    }\n    forward \
         . 192.0.2.53\n}\n",
    );
    folder.write("cluster.yaml", CLUSTER);
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.current_dir(folder.path());
    command.args(["explain", "www.test", "--from", "shop/gone", "--conf", "Corefile", "--manifests", "cluster.yaml"]);
    let ran: Ran = command.output().expect("the command runs").into();
    assert_shows(&ran, 3, &["rules by address could not be judged: autopath (Corefile:2)"]);
}

#[test]
fn a_failure_over_tcp_after_a_truncated_answer_says_so() {
    // An upstream that truncates every answer and has no TCP.
    let upstream = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, peer)) = upstream.recv_from(&mut buffer) {
            // QR and TC, and no record after the question.
            (buffer[2], buffer[11]) = (0x83, 0);
            let end = (12 + buffer[12..length].iter().position(|byte| *byte == 0).unwrap()) + 5;
            let _ = upstream.send_to(&buffer[..end], peer);
        }
    });
    let folder = Folder::new("explain-truncated");
    let corefile = format!(".:0 {{\n    bind 127.0.0.1\n    forward . {address} {{\n        prefer_udp\n    }}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let dns = server.address_of("dns://127.0.0.1:0");
    let socket = ControlSocket::of(&mut server);
    assert!(Client::new(dns).ask("big.test.", Type::A).is_some());
    let status = socket.run(&["status"]).stdout;
    assert!(status.contains("over TCP: ") && status.contains("connection refused"), "{status}");
    let ran = socket.run(&["explain", "big.test.", "--fresh"]);
    let command = format!("`dig big.test. @127.0.0.1 -p {} +tcp`", address.port());
    assert!(ran.stdout.contains("over TCP: ") && ran.stdout.contains(&command), "{}", ran.stdout);
}

#[test]
fn a_running_server_reads_the_pod_from_the_api_server() {
    let api = FakeApi::with_shop();
    let ips = json!({"status": {"podIP": "10.244.3.8", "podIPs": [{"ip": "10.244.3.8"}]}});
    api.put(object("Pod", "shop", "web-1", ips));
    let folder = Folder::new("explain-pod");
    let cluster = format!("kubernetes cluster.local {{\n        endpoint {}\n    }}", api.url());
    let corefile = format!(".:0 {{\n    bind 127.0.0.1\n    {BLOCKED}\n    {cluster}\n    forward . 192.0.2.53\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let socket = ControlSocket::of(&mut server);
    assert_eq!(socket.run(&["status", "--wait", "20s"]).code, 0);
    let explain = |pod: &str| socket.run(&["explain", "www.example.org.", "--from", pod]);
    assert_shows(&explain("shop/web-1"), 1, &["from shop/web-1 (10.244.3.8)", "applies to 10.244.3.8 [PE-L01]"]);
    assert_shows(&explain("shop/gone"), 3, &["there is no pod `gone` with an address in shop", "could not be judged"]);
    api.fault("pods", Fault::Status(403, None));
    let reason = "no EndpointSlice refers to the Pod, and the API server refuses to list Pods (403)";
    assert_shows(&explain("shop/gone"), 3, &[reason, "could not be judged: acl ("]);
}

#[test]
fn suggests_the_zone_of_the_cluster_for_a_misspelt_one() {
    let folder = Folder::new("explain-zone");
    folder.write("cluster.yaml", CLUSTER);
    folder.write("Corefile", ".:53 {\n    kubernetes cluster.local\n    forward . 192.0.2.53\n}\n");
    for (name, advice) in [
        ("web.shop.svc.cluster.locla.", Some("did you mean web.shop.svc.cluster.local.?")),
        ("web.shop.svc.clustr.local.", Some("did you mean web.shop.svc.cluster.local.?")),
        ("www.example.org.", None),
        ("web.shop.svc.local.", None),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
        command.args(["explain", name, "--conf", "Corefile", "--manifests", "cluster.yaml"]);
        let ran: Ran = command.current_dir(folder.path()).output().unwrap().into();
        let found = ran.stdout.lines().find_map(|line| line.trim_start().strip_prefix("do "));
        let found = found.map(str::trim).filter(|advice| advice.starts_with("did you mean"));
        assert_eq!(found, advice, "{}{}", ran.stdout, ran.stderr);
    }
}
