//! `portolan explain` against the whole server and from files: the cases that operators ask about, and the examples of
//! `docs/explain.md`.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::control::{ControlSocket, Ran};
use crate::support::pages::{console, matches};
use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, Server, wait_until};
use fakeapi::{FakeApi, Fault, service, slice};
use wire::{Class, Flags, Header, MessageBuf, Name, Owner, Rcode, Request, Section, Type};

const PAGE: &str = include_str!("../../../docs/explain.md");
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs the command in a directory, without a server.
fn run_in(directory: &Path, words: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.current_dir(directory).args(words).output().expect("the command runs").into()
}

#[track_caller]
fn assert_explains(ran: &Ran, code: i32, expected: &str) {
    assert!(matches(expected, &ran.stdout), "expected:\n{expected}\n\nfound:\n{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, code, "{}", ran.stdout);
}

/// Manifests of two namespaces, with a headless Service without ready endpoints.
const CLUSTER: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: billing}}
---
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: shop}, spec: {clusterIP: 10.96.44.7, ports: [{port: 5432}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: None, ports: [{port: 80}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
ports: [{port: 5432}]
endpoints:
- {addresses: [10.244.5.7]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80}]
endpoints:
- {addresses: [10.244.3.8], conditions: {ready: false}, hostname: web-2, targetRef: {kind: Pod, name: web-2}}
- {addresses: [10.244.1.20], conditions: {ready: false}, hostname: web-0, targetRef: {kind: Pod, name: web-0}}
- {addresses: [10.244.2.31], conditions: {ready: false}, hostname: web-1, targetRef: {kind: Pod, name: web-1}}
";

const COREFILE: &str = ".:53 {
    kubernetes cluster.local
    cache 30
    forward . 192.0.2.53
}
corp:5300 {
    whoami
}
";

/// Explains from files.
fn offline(words: &[&str]) -> Ran {
    offline_with(COREFILE, words)
}

/// Explains from files, with this Corefile.
fn offline_with(corefile: &str, words: &[&str]) -> Ran {
    let folder = Folder::new("explain");
    folder.write("Corefile", corefile);
    folder.write("cluster.yaml", CLUSTER);
    let files = ["--conf", "Corefile", "--manifests", "cluster.yaml"];
    run_in(folder.path(), &[&["explain"], words, &files].concat())
}

#[test]
fn case_1_found_through_the_search_path() {
    assert_explains(
        &offline(&["db", "A", "--from", "shop/web-7d9f"]),
        0,
        "db A from shop/web-7d9f (address unknown, rules see 0.0.0.0) search shop.svc.cluster.local svc.cluster.local cluster.local · ndots 5 (assumed, see PD-K02)
           db.shop.svc.cluster.local. NOERROR 10.96.44.7 .:53 › kubernetes Corefile:2 Service shop/db, ClusterIP
           note the search path is assumed: the manifests have neither the Pod nor an endpoint of it
           why first name of the search path; TTL 5 s [PE-S01]",
    );
}

#[test]
fn case_2_wrong_namespace() {
    assert_explains(
        &offline(&["db", "A", "--from", "billing/job-x"]),
        1,
        "db A from billing/job-x (address unknown, rules see 0.0.0.0) search billing.svc.cluster.local svc.cluster.local cluster.local · ndots 5 (assumed, see PD-K02)
           db.billing.svc.cluster.local. NXDOMAIN .:53 › kubernetes Corefile:2 namespace billing exists, it has no Service db
           db.svc.cluster.local. NXDOMAIN .:53 › kubernetes Corefile:2 no namespace db
           db.cluster.local. NXDOMAIN .:53 › kubernetes Corefile:2 not below svc or pod
           db. not asked .:53 › forward Corefile:4 upstream 192.0.2.53:53
             192.0.2.53:53 udp up
           note the search path is assumed: the manifests have neither the Pod nor an endpoint of it
           why no Service db in billing [PE-K02]
           do a Service db is in shop: ask for db.shop",
    );
}

/// Returns the line with the advice.
#[track_caller]
fn advice_of(ran: &Ran) -> String {
    let advice = ran.stdout.lines().find_map(|line| line.trim_start().strip_prefix("do"));
    advice.unwrap_or_else(|| panic!("no advice:\n{}{}", ran.stdout, ran.stderr)).trim().to_owned()
}

#[test]
fn advice_names_what_may_be_meant() {
    let web = "did you mean web.shop.svc.cluster.local.?";
    for (name, from, expected) in [
        ("wbe.shop.svc.cluster.local.", None, web),
        ("_http._tcp.webb.shop.svc.cluster.local.", None, web),
        ("web.shpo.svc.cluster.local.", None, web),
        ("shop.web.svc.cluster.local.", None, web),
        ("web.shop.cluster.local.", None, web),
        ("web.shop.scv.cluster.local.", None, web),
        ("web.svc.cluster.local.", None, "a Service web is in shop: ask for web.shop"),
        ("db.other.svc.cluster.local.", None, "a Service db is in shop: ask for db.shop"),
        ("nothing.shopp.svc.cluster.local.", None, "did you mean the namespace shop?"),
        ("10-244-1-20.shopp.pod.cluster.local.", None, "did you mean the namespace shop?"),
        ("nothing.shop.svc.cluster.local.", None, "Check the name and the namespace of the Service"),
        ("wbe", Some("shop/x"), web),
    ] {
        let from = from.map_or(Vec::new(), |from| vec!["--from", from]);
        assert_eq!(advice_of(&offline(&[&[name][..], &from].concat())), expected, "{name}");
    }
}

#[test]
fn a_misspelled_namespace_in_a_short_name_is_suggested() {
    let corefile = ".:53 {\n    kubernetes cluster.local\n}\nwbe:53 shpo:53 {\n    template ANY ANY {\n        rcode \
                    NXDOMAIN\n    }\n}\n";
    let ran = offline_with(corefile, &["web.shpo", "--from", "billing/x"]);
    assert_eq!(advice_of(&ran), "did you mean web.shop.svc.cluster.local.?", "{}", ran.stdout);
    let ran = offline_with(corefile, &["wbe", "--from", "billing/x"]);
    assert_eq!(advice_of(&ran), "Check the name and the namespace of the Service", "{}", ran.stdout);
}

#[test]
fn aliases_that_lead_to_themselves_are_named() {
    let alias = |name: &str, target: &str| {
        format!(
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: {name}, namespace: shop}}, spec: {{type: \
             ExternalName, externalName: {target}}}}}\n"
        )
    };
    let folder = Folder::new("explain-aliases");
    let aliases = [("a", "b.shop.svc.cluster.local"), ("b", "a.shop.svc.cluster.local"), ("out", "back.test")];
    let gone = alias("gone", "nope.shop.svc.cluster.local") + &alias("in", "db.shop.svc.cluster.local");
    let aliases: String = aliases.iter().map(|(name, target)| alias(name, target)).collect();
    let address = alias("address", "192.0.2.9");
    folder.write("cluster.yaml", &format!("{CLUSTER}{aliases}{gone}{address}"));
    folder.write("zone", "@ 60 IN SOA ns h 1 2 3 4 5\n@ 60 IN NS ns\nx 60 IN CNAME y\ny 60 IN CNAME x\n");
    folder.write(
        "Corefile",
        ".:53 {\n    kubernetes cluster.local\n    file zone zone.test\n    template IN A back.test {\n        answer \
         \"{{ .Name }} 60 IN CNAME out.shop.svc.cluster.local.\"\n    }\n}\n",
    );
    for (name, why) in [
        (
            "a.shop.svc.cluster.local.",
            "the alias leads back to itself: a.shop.svc.cluster.local. → b.shop.svc.cluster.local. → \
             a.shop.svc.cluster.local. [PE-K12]",
        ),
        (
            "gone.shop.svc.cluster.local.",
            "the alias leads to nope.shop.svc.cluster.local., which does not exist [PE-K13]",
        ),
        (
            "gone.shop.svc.cluster.local. TXT",
            "the alias leads to nope.shop.svc.cluster.local., which does not exist [PE-K13]",
        ),
        (
            "in.shop.svc.cluster.local. TXT",
            "the alias leads to db.shop.svc.cluster.local., which has no record of type TXT [PE-K06]",
        ),
        ("shop.svc.cluster.local. ANY", "shop.svc.cluster.local. exists without a record [PE-K06]"),
        (
            "address.shop.svc.cluster.local.",
            "Service shop/address has the address 192.0.2.9 as its externalName, and an alias needs a name [PE-K15]",
        ),
        ("x.zone.test.", "the alias leads back to itself: x.zone.test. → y.zone.test. → x.zone.test. [PE-A03]"),
        (
            "back.test.",
            "the alias leads back to itself: back.test. → out.shop.svc.cluster.local. → back.test. [PE-A03]",
        ),
    ] {
        let rest = ["--conf", "Corefile", "--manifests", "cluster.yaml"];
        let arguments: Vec<&str> = ["explain"].into_iter().chain(name.split(' ')).chain(rest).collect();
        let ran = run_in(folder.path(), &arguments);
        let found = ran.stdout.lines().find_map(|line| line.trim_start().strip_prefix("why"));
        assert_eq!(found.map(str::trim), Some(why), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, 1, "{}", ran.stdout);
    }
}

#[test]
fn case_3_headless_without_ready_endpoints() {
    assert_explains(
        &offline(&["web.shop.svc.cluster.local."]),
        1,
        "web.shop.svc.cluster.local. A
           web.shop.svc.cluster.local. NXDOMAIN .:53 › kubernetes Corefile:2 Service shop/web, headless, 3 endpoints, 0 ready
             not ready web-0 10.244.1.20 · web-1 10.244.2.31 · web-2 10.244.3.8
           why Service shop/web is headless and has no ready endpoint [PE-K03]
           do kubectl -n shop describe pod web-0; or set publishNotReadyAddresses",
    );
    let json = offline(&["web.shop.svc.cluster.local.", "--json"]).stdout;
    let explained: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let not_ready = &explained["steps"][0]["not_ready"];
    assert_eq!(not_ready["count"], 3, "{json}");
    assert_eq!(not_ready["endpoints"][0], serde_json::json!({ "pod": "web-0", "address": "10.244.1.20" }));
}

#[test]
fn case_2_as_a_flowchart() {
    let ran = offline(&["db", "A", "--from", "billing/job-x", "--format", "mermaid"]);
    assert_eq!(ran.stdout, include_str!("golden/explain-wrong-namespace.mmd"), "{}", ran.stderr);
    assert_eq!(ran.code, 1);
    let json = offline(&["db", "--format", "json"]);
    assert_eq!((json.stdout.as_str(), json.code), (offline(&["db", "--json"]).stdout.as_str(), json.code));
    let refused = offline(&["db", "--format", "dot"]);
    assert!(refused.code == 2 && refused.stderr.contains("mermaid"), "{}", refused.stderr);
}

#[test]
fn an_endpoint_that_exists_and_is_not_ready_is_named() {
    assert_explains(
        &offline(&["web-1.web.shop.svc.cluster.local."]),
        1,
        "web-1.web.shop.svc.cluster.local. A
           web-1.web.shop.svc.cluster.local. NXDOMAIN .:53 › kubernetes Corefile:2 Service shop/web, headless, 3 endpoints, 0 ready
             not ready web-0 10.244.1.20 · web-1 10.244.2.31 · web-2 10.244.3.8
           why the endpoint web-1 of Service shop/web exists and is not ready [PE-K04]
           do kubectl -n shop describe pod web-1; or set publishNotReadyAddresses",
    );
    assert_explains(
        &offline(&["web-7.web.shop.svc.cluster.local."]),
        1,
        "web-7.web.shop.svc.cluster.local. A
           web-7.web.shop.svc.cluster.local. NXDOMAIN *3 endpoints, 0 ready
             not ready web-0 10.244.1.20 · *
           why no ready endpoint of Service shop/web is called web-7 [PE-K04]
           do kubectl -n shop describe pod web-0; or set publishNotReadyAddresses",
    );
}

#[test]
fn a_service_that_empty_service_hides_shows_its_pods() {
    let folder = Folder::new("explain-hidden");
    let slice = "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: db}}
addressType: IPv4
endpoints: [{addresses: [10.244.1.30], conditions: {ready: false}POD}]
";
    let corefile = ".:53 {\n    kubernetes cluster.local {\n        ignore empty_service\n    }\n}\n";
    folder.write("Corefile", corefile);
    for (pod, shown, advice) in [
        (
            ", targetRef: {kind: Pod, name: db-x7k}",
            "not ready  db-x7k 10.244.1.30\n",
            "kubectl -n shop describe pod db-x7k; or set publishNotReadyAddresses",
        ),
        (", targetRef: {kind: Node, name: n}", "not ready  10.244.1.30\n", "Find out why its pods are not ready"),
    ] {
        folder.write("cluster.yaml", &format!("{CLUSTER}{}", slice.replace("POD", pod)));
        let files = ["explain", "db.shop.svc.cluster.local.", "--conf", "Corefile", "--manifests", "cluster.yaml"];
        let ran = run_in(folder.path(), &files);
        assert!(ran.stdout.contains(shown) && ran.stdout.contains("[PE-K05]"), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(advice_of(&ran), advice, "{}", ran.stdout);
    }
}

#[test]
fn names_a_service_import_by_its_kind() {
    let folder = Folder::new("explain-imports");
    let import = "{apiVersion: multicluster.x-k8s.io/v1alpha1, kind: ServiceImport, metadata: {name: db, namespace: \
                  shop}, spec: {type: ClusterSetIP, ips: [10.112.0.1], ports: [{port: 5432, protocol: TCP}]}}";
    folder.write("cluster.yaml", &format!("{CLUSTER}---\n{import}\n"));
    folder.write(
        "Corefile",
        ".:53 {\n    kubernetes cluster.local clusterset.local {\n        multicluster clusterset.local\n    }\n}\n",
    );
    let files = ["--conf", "Corefile", "--manifests", "cluster.yaml"];
    let ran = run_in(folder.path(), &[&["explain", "db.shop.svc.clusterset.local."][..], &files].concat());
    assert!(
        ran.stdout.contains("10.112.0.1") && ran.stdout.contains("ServiceImport shop/db, ClusterIP"),
        "{}",
        ran.stdout
    );
    let ran = run_in(folder.path(), &[&["explain", "db.shop.svc.cluster.local."][..], &files].concat());
    assert!(ran.stdout.contains("10.96.44.7") && ran.stdout.contains("Service shop/db, ClusterIP"), "{}", ran.stdout);
}

#[test]
fn case_4_external_name_after_the_search_path() {
    assert_explains(
        &offline(&["api.stripe.com", "--from", "shop/web-7d9f"]),
        0,
        "api.stripe.com A from shop/web-7d9f *
           api.stripe.com.shop.svc.cluster.local. NXDOMAIN *
           api.stripe.com.svc.cluster.local. NXDOMAIN *
           api.stripe.com.cluster.local. NXDOMAIN *
           api.stripe.com. not asked .:53 › forward Corefile:4 upstream 192.0.2.53:53
             192.0.2.53:53 udp up
           note the search path is assumed: the manifests have neither the Pod nor an endpoint of it
           why 8 queries (A and AAAA of 4 names) for one answer, which is that of an upstream [PE-S02]
           do dnsConfig ndots 2, a dot at the end of the name, or autopath in the Corefile",
    );
}

#[test]
fn the_reason_is_that_of_the_name_in_the_namespace_that_was_written() {
    for (name, why) in [
        ("nope.shop", "no Service nope in shop [PE-K02]"),
        ("web.shop", "Service shop/web is headless and has no ready endpoint [PE-K03]"),
        ("nope.shop.svc", "no Service nope in shop [PE-K02]"),
        ("nope.shop.svc.cluster.local", "no Service nope in shop [PE-K02]"),
        ("db.nowhere.svc", "there is no namespace nowhere [PE-K01]"),
        ("db.nowhere.svc.cluster.local", "there is no namespace nowhere [PE-K01]"),
        // Names of other servers, whose first label could be one of a Service.
        ("web.nowhere", "8 queries (A and AAAA of 4 names) for one answer, which is that of an upstream [PE-S02]"),
        ("www.example.org", "8 queries (A and AAAA of 4 names) for one answer, which is that of an upstream [PE-S02]"),
    ] {
        let ran = offline(&[name, "--from", "billing/api-0"]);
        let found = ran.stdout.lines().find_map(|line| line.trim_start().strip_prefix("why"));
        assert_eq!(found.map(str::trim), Some(why), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code == 0, why.contains("PE-S02"), "{}", ran.stdout);
    }
}

#[test]
fn a_complete_name_is_asked_for_without_search_domains_if_it_has_a_final_dot() {
    assert_explains(
        &offline(&["db.shop.svc.cluster.local", "--from", "shop/web-7d9f"]),
        0,
        "db.shop.svc.cluster.local A from shop/web-7d9f *
           db.shop.svc.cluster.local.shop.svc.cluster.local. NXDOMAIN * too many labels for a Service
           db.shop.svc.cluster.local.svc.cluster.local. NXDOMAIN * too many labels for a Service, and no namespace local
           db.shop.svc.cluster.local.cluster.local. NXDOMAIN * not below svc or pod
           db.shop.svc.cluster.local. NOERROR 10.96.44.7 *
           why 8 queries (A and AAAA of 4 names) for one answer [PE-S02]
           do write the name with a final dot: db.shop.svc.cluster.local.",
    );
    let ran = offline(&["nosuch.x.y.z.shop.svc.cluster.local", "--from", "shop/web-7d9f"]);
    let why = "nosuch.x.y.z.shop.svc.cluster.local. cannot exist: too many labels for a Service [PE-K07]";
    assert!(ran.stdout.contains(why), "{}", ran.stdout);
    let ran = offline(&["a.b.c.d.shop.pod.cluster.local."]);
    assert!(ran.stdout.contains("cannot exist: too many labels for a pod [PE-K07]"), "{}", ran.stdout);
}

#[test]
fn a_client_that_is_no_pod_is_named() {
    let pods = COREFILE.replace("cluster.local\n", "cluster.local {\n        identity pods\n    }\n");
    let ran = offline_with(&pods, &["db", "--from", "shop/wbe-0"]);
    let first = "db  A  from shop/wbe-0 (no known pod, rules see 0.0.0.0)   search ";
    let note = "  note  there is no pod `wbe-0` with an address in shop: rules that look at the client see 0.0.0.0\n";
    assert!(ran.stdout.starts_with(first) && ran.stdout.contains(note), "{}{}", ran.stdout, ran.stderr);
    // A pod of a namespace that is not known may exist.
    let ran = offline_with(&pods, &["db", "--from", "other/web-0"]);
    assert!(ran.stdout.contains("(address unknown, rules see 0.0.0.0)"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn names_the_address_of_a_pod_and_escapes_names_in_one_way() {
    let ran = offline(&["10-244-1-10.shop.pod.cluster.local."]);
    let why = "why   no pod with the address 10.244.1.10 in shop (pod names are disabled) [PE-K09]";
    assert!(ran.stdout.contains(why), "{}{}", ran.stdout, ran.stderr);
    let ran = offline(&["a\u{1b}b.shop.svc.cluster.local."]);
    let escaped = ran.stdout.matches("a\\027b").count();
    assert!(escaped >= 3 && !ran.stdout.contains("u{1b}"), "{}{}", ran.stdout, ran.stderr);
    let ran = offline(&["www.example.org.", "AAAA", "--from", "10.1.2.3"]);
    let advice = "To query it: `portolan explain www.example.org. AAAA --from 10.1.2.3 --fresh`";
    assert_eq!(advice_of(&ran), advice);
}

#[test]
fn an_answer_to_a_rewritten_question_says_so() {
    let corefile = ".:53 {\n    rewrite name exact web.shop.svc.cluster.local db.shop.svc.cluster.local\n    \
                    kubernetes cluster.local\n}\n";
    for name in ["web.shop", "web.shop.svc.cluster.local."] {
        let ran = offline_with(corefile, &[name, "--from", "billing/job-x"]);
        let why = "why   rewrite (Corefile:2) changes the question web.shop.svc.cluster.local. A to \
                   db.shop.svc.cluster.local. A [PE-A05]";
        assert!(ran.code == 0 && ran.stdout.contains(why), "{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn case_7_nobody_is_responsible() {
    assert_explains(
        &offline(&["host.other.", "--server", "dns://:5300"]),
        1,
        "host.other. A
           host.other. REFUSED EDE 20 no server block on dns://:5300; blocks there: corp. (Corefile:6)
           why no server block serves host.other. [PE-B01]
           do Add a server block for the zone, or check the port",
    );
}

#[test]
fn a_server_block_without_a_plugin_for_the_name_is_not_called_missing() {
    let ran = offline_with(".:53 {\n    kubernetes cluster.local\n}\n", &["x."]);
    let why = "why   no plugin of the server block answers [PE-B02]";
    assert!(ran.stdout.contains(why) && !ran.stdout.contains("no server block"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn refuses_invalid_questions() {
    for (asked, message) in [
        (&["x", "FOO"][..], "`FOO` is not a record type"),
        (&["x", "--from", "zz"], "expected NAMESPACE/POD or an IP address"),
        (&["x", "axfr"], "zone transfers are not explained; `dig ZONE AXFR @ADDRESS` asks for one"),
        (&["x", "IXFR"], "zone transfers are not explained"),
        (&["a..b"], "`a..b` is not a domain name"),
        (&["x", "--server", "dns://:1"], "there is dns://:53, dns://:5300"),
    ] {
        let ran = offline(asked);
        assert!(ran.code == 2 && ran.stderr.contains(message), "{asked:?}: {}{}", ran.stdout, ran.stderr);
    }
    let folder = Folder::new("explain-none");
    folder.write("Corefile", COREFILE);
    let ran = run_in(folder.path(), &["explain", "x", "--conf", "Corefile"]);
    assert!(ran.code == 2 && ran.stderr.contains("--manifests DIR"), "{}", ran.stderr);
}

/// Server with its control socket.
struct Running {
    server: Server,
    address: SocketAddr,
    client: Client,
    socket: ControlSocket,
    _folder: Folder,
}

fn start(directives: &str) -> Running {
    let folder = Folder::new("explain-live");
    let corefile = format!(".:0 {{\n    bind 127.0.0.1\n    {directives}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let address = server.address_of("dns://127.0.0.1:0");
    let socket = ControlSocket::of(&mut server);
    Running { server, address, client: Client::new(address), socket, _folder: folder }
}

#[test]
fn shows_the_age_of_a_cached_answer() {
    let upstream = Upstream::start(7);
    let mut running = start(&format!("cache 300\n    forward . {}", upstream.address));
    assert!(running.client.ask("a.test.", Type::A).is_some());
    let asked = upstream.asked();
    let ran = running.socket.run(&["explain", "a.test."]);
    assert_explains(
        &ran,
        0,
        "a.test. A a.test. NOERROR 192.0.2.7 .:0 › cache *Corefile:3 hit, * old, * left why cache has the answer; TTL \
         * s [PE-A01]",
    );
    let listener = &running.socket.json(&["explain", "a.test."])["listener"];
    assert_eq!(listener["name"], "dns://127.0.0.1:0");
    assert_eq!(listener["address"], running.address.to_string());
    let ran = running.socket.run(&["explain", "b.test."]);
    assert!(ran.stdout.contains("not asked") && ran.stdout.contains("udp  up"), "{}", ran.stdout);
    assert_eq!(upstream.asked(), asked, "an explanation asks nobody");
    drop(running.server);
}

/// Starts an upstream that denies every name, and returns its address.
fn denying_upstream() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let (packet, mut request) = (&buffer[..length], Request::default());
            request.read(Header::read(packet).expect("a header"), packet).expect("a query");
            let flags = Flags::default().with_response(true).with_rcode(Rcode::NXDOMAIN);
            let mut message = MessageBuf::new();
            let header = Header { id: Header::read(packet).expect("a header").id, flags, ..Header::default() };
            message.start(header, Some((request.name.as_ref(), request.qtype, Class::IN)));
            // The denial can be cached for the minimum of the SOA record, its last number.
            let root = Name::root();
            message.push(Section::Authority, Owner::Name(root.as_ref()), (Type::SOA, Class::IN, 300), |rdata| {
                rdata.name(root.as_ref());
                rdata.name(root.as_ref());
                (0..5).for_each(|_| rdata.u32(300));
            });
            let _ = socket.send_to(message.finish(None, std::iter::empty()), peer);
        }
    });
    address
}

#[test]
fn fresh_asks_and_shows_the_answer_of_the_cache() {
    let upstream = Upstream::start(7);
    let running = start(&format!("cache 300\n    forward . {}", upstream.address));
    assert_explains(
        &running.socket.run(&["explain", "a.test.", "--fresh"]),
        0,
        "a.test. A a.test. NOERROR 192.0.2.7 .:0 › cache *Corefile:3 hit, * old, * left
           asked: NOERROR 192.0.2.7 in * why cache has the answer; TTL * s [PE-A01]",
    );
    assert_eq!(upstream.asked(), 1);
    let again = running.socket.run(&["explain", "a.test.", "--fresh"]);
    let note = "note: no query was sent, because the cache has an answer for a.test.; `portolan cache flush a.test.` \
                removes it";
    assert!(again.code == 0 && again.stderr.trim() == note, "{}", again.stderr);
    assert_eq!(upstream.asked(), 1);
    let top = running.socket.run(&["top"]);
    assert!(top.stdout.contains("(probes)"), "{}{}", top.stdout, top.stderr);
}

#[test]
fn fresh_shows_what_the_server_answers_without_a_cache() {
    let upstream = Upstream::start(7);
    let denying = denying_upstream();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent = silent.local_addr().unwrap();
    let running = start(&format!(
        "forward denied.test {denying}\n    forward silent.test {silent}\n    forward . {}",
        upstream.address
    ));
    let explain = |words: &[&str]| running.socket.run(&[&["explain", "--fresh"], words].concat());
    assert_explains(
        &explain(&["a.test."]),
        0,
        "a.test. A a.test. asked: NOERROR 192.0.2.7 in * .:0 › forward *Corefile:3 upstream * *:* udp up
           why the server answers NOERROR for a.test., and no cache keeps it [PE-A04]",
    );
    assert_explains(
        &explain(&["x.denied.test.", "--from", "10.9.9.9"]),
        1,
        "x.denied.test. A from 10.9.9.9 (no known pod)
           x.denied.test. asked: NXDOMAIN in * .:0 › forward *Corefile:3 zone denied.test., upstream * *:* udp up
           note asked from 127.0.0.1: plugins that look at the client, such as acl and view, may answer differently
           why the server answers NXDOMAIN for x.denied.test., and no cache keeps it [PE-A04]",
    );
    let failed = explain(&["x.silent.test.", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&failed.stdout).expect("JSON");
    let asked = &json["steps"][0]["asked"];
    assert!(asked["rcode"] == "SERVFAIL" && asked["ede"].is_u64() && asked["ede_text"].is_string(), "{json}");
    assert!(
        failed.code == 1
            && json["do"] == format!("Ask the upstream itself: `dig x.silent.test. @127.0.0.1 -p {}`", silent.port()),
        "{json}"
    );
}

#[test]
fn fresh_goes_on_with_the_search_path_after_a_denial() {
    let (api, denying) = (FakeApi::with_shop(), denying_upstream());
    for cache in ["", "cache 300\n    "] {
        let cluster = format!("kubernetes cluster.local {{\n endpoint {}\n }}", api.url());
        let running = start(&format!("{cluster}\n    {cache}forward . {denying}"));
        assert_eq!(running.socket.run(&["status", "--wait", "20s"]).code, 0);
        // Five dots: the name itself comes before the search path.
        let words = ["explain", "a.b.c.d.e.test", "--from", "shop/x"];
        let steps = |words: &[&str]| running.socket.json(words)["steps"].as_array().expect("steps").clone();
        assert_eq!(steps(&words).len(), 1);
        let found = steps(&[&words[..], &["--fresh"]].concat());
        assert_eq!(found.len(), 4, "{found:?}");
        let shown = if cache.is_empty() { &found[0]["asked"]["rcode"] } else { &found[0]["rcode"] };
        assert_eq!(shown, "NXDOMAIN", "{found:?}");
        assert!(found[1..].iter().all(|step| step["rcode"] == "NXDOMAIN"), "{found:?}");
    }
}

#[test]
fn fresh_refuses_what_it_cannot_ask() {
    let ran = offline(&["x.test.", "--fresh"]);
    assert!(ran.code == 2 && ran.stderr.contains("`--fresh` asks a running server"), "{}", ran.stderr);
    let ran = run_in(Path::new("."), &["explain", "x.test.", "--fresh", "--socket", "http://127.0.0.1:1"]);
    assert!(ran.code == 2 && ran.stderr.contains("http://127.0.0.1:1 may be elsewhere"), "{}", ran.stderr);
}

#[test]
fn case_5_upstream_silent() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    drop(silent);
    let mut running = start(&format!("forward . {address} {{\n max_fails 1\n health_check 20ms\n }}"));
    running.client.ask("git.corp.", Type::A);
    wait_until("it is down", || running.socket.status()["upstreams"][0]["state"] == "down");
    assert_explains(
        &running.socket.run(&["explain", "git.corp."]),
        1,
        &format!(
            "git.corp. A git.corp. not asked .:0 › forward *Corefile:3 upstream {address} {address} udp down for *
             why all upstreams are down: {address} [PE-F01]
             do Check that the upstreams run and that no NetworkPolicy blocks them: `portolan status` shows their errors"
        ),
    );
}

#[test]
fn a_cached_failure_keeps_its_cause() {
    let closed = testkit::ports::free_address();
    let mut running = start(&format!("cache 30 {{\n servfail 1m\n }}\n    forward . {closed}"));
    running.client.ask("git.corp.", Type::A);
    assert_explains(
        &running.socket.run(&["explain", "git.corp."]),
        1,
        &format!(
            "git.corp. A git.corp. SERVFAIL EDE 13 .:0 › cache *Corefile:3 failure, * old, * left
             why the upstreams failed a moment ago, and the cache keeps the failure: *{closed}*connection refused* [PE-C02]
             do Find out why the upstreams fail: `portolan status` shows their state"
        ),
    );
}

#[test]
fn case_6_stale_on_purpose() {
    let upstream = Upstream::start(7);
    let mut running = start(&format!("cache 1 {{\n serve_stale 1h\n }}\n    forward . {}", upstream.address));
    assert!(running.client.ask("www.example.org.", Type::A).is_some());
    let explain = || running.socket.run(&["explain", "www.example.org."]);
    wait_until("it expires", || explain().stdout.contains("expired"));
    assert_explains(
        &explain(),
        0,
        "www.example.org. A
           www.example.org. NOERROR 192.0.2.7 EDE 3 .:0 › cache *Corefile:3 hit, expired * ago, served stale for * more
           why the answer has expired and is served stale [PE-C01]
           do If it stays so, find out why the upstreams do not answer: `portolan status` shows their state",
    );
    assert_eq!(upstream.asked(), 1, "an explanation refreshes nothing");
}

#[test]
fn case_8_known_but_old() {
    let api = FakeApi::with_shop();
    let running = start(&format!("kubernetes cluster.local {{\n endpoint {}\n }}", api.url()));
    assert_eq!(running.socket.run(&["status", "--wait", "20s"]).code, 0);
    api.fault("services", Fault::Status(403, None));
    api.drop_connections();
    wait_until("the watch fails", || running.socket.run(&["status"]).stdout.contains("PD-R01  watch of services"));
    assert_explains(
        &running.socket.run(&["explain", "new.shop.svc.cluster.local."]),
        1,
        "new.shop.svc.cluster.local. A
           new.shop.svc.cluster.local. NXDOMAIN .:0 › kubernetes *Corefile:3 namespace shop exists, it has no Service new
           why the watch of services has been failing for *403*; what was created after that is unknown [PE-V01]
           do See `portolan status` for the error of the watch",
    );
    api.heal("services");
}

#[test]
fn shows_the_version_that_kubectl_shows() {
    let api = FakeApi::with_shop();
    let running = start(&format!("kubernetes cluster.local in-addr.arpa {{\n endpoint {}\n }}", api.url()));
    assert_eq!(running.socket.run(&["status", "--wait", "20s"]).code, 0);
    let mut db = service("shop", "db", "10.96.44.7");
    api.put(db.clone());
    // An annotation changes no answer, and the version.
    db["metadata"]["annotations"] = serde_json::json!({ "note": "x" });
    let version = api.put(db).to_string();
    let explain = |name: &str| running.socket.json(&["explain", name]);
    let object = serde_json::json!({ "kind": "Service", "ns": "shop", "name": "db", "rv": version });
    wait_until("the version is known", || explain("db.shop.svc.cluster.local.")["steps"][0]["object"] == object);
    for (name, text) in [("db.shop.svc.cluster.local.", "ClusterIP"), ("10.96.44.7", "ClusterIP 10.96.44.7")] {
        let ran = running.socket.run(&["explain", name]);
        assert!(ran.stdout.contains(&format!("Service shop/db, {text}, rv {version}\n")), "{}", ran.stdout);
    }
    let of_namespace = &explain("shop.svc.cluster.local.")["steps"][0]["object"];
    assert!(of_namespace["kind"] == "Namespace" && of_namespace["rv"].is_null(), "{of_namespace}");
}

#[test]
fn a_headless_service_without_listed_endpoints_is_not_called_empty() {
    let api = FakeApi::with_shop();
    api.put_all([service("shop", "db", "None"), slice("shop", "db", &["10.244.0.9"])]);
    api.fault("endpointslices", Fault::Status(403, None));
    let running = start(&format!("kubernetes cluster.local {{\n endpoint {}\n }}", api.url()));
    let explain = |name: &str| running.socket.run(&["explain", name, "--from", "billing/job-x"]).stdout;
    wait_until("services are listed", || running.socket.run(&["status"]).stdout.contains("services 2"));
    wait_until("the watch fails", || {
        running.socket.run(&["status"]).stdout.contains("PD-R01  watch of endpointslices")
    });
    let why = "why   the API server has not listed all EndpointSlice objects yet: the watch of endpointslices has \
               been failing";
    // A failure says more than the number of queries.
    for name in ["db.shop.svc.cluster.local.", "db.shop"] {
        let of_db = explain(name);
        assert!(of_db.contains("SERVFAIL") && of_db.contains(why) && of_db.contains("[PE-K08]"), "{of_db}");
    }
    let missing = explain("new.shop.svc.cluster.local.");
    assert!(missing.contains("NXDOMAIN") && missing.contains("it has no Service new"), "{missing}");
    api.heal("endpointslices");
    wait_until("endpoints are listed", || explain("db.shop.svc.cluster.local.").contains("10.244.0.9"));
}

/// Returns the processor time of the server for one of 20 requests. The time on the clock would be that of the machine.
fn processor_time(running: &Running, ask: impl Fn()) -> Duration {
    const REQUESTS: u32 = 20;
    let before = running.server.processor_time();
    (0..REQUESTS).for_each(|_| ask());
    (running.server.processor_time() - before) / REQUESTS
}

#[test]
fn explains_within_50_milliseconds() {
    let api = FakeApi::with_shop();
    let running = start(&format!("kubernetes cluster.local {{\n endpoint {}\n }}\n    forward . 192.0.2.1", api.url()));
    assert_eq!(running.socket.run(&["status", "--wait", "20s"]).code, 0);
    let taken = processor_time(&running, || {
        let (status, body) = running.socket.request("GET", "/v1/explain?name=www.example.org&from=shop/x", "");
        assert_eq!(status, 200, "{body}");
    });
    assert!(taken < Duration::from_millis(50), "{taken:?}");
}

#[test]
fn suggests_within_50_milliseconds_among_10_000_services() {
    let api = FakeApi::start();
    let services = (0..10_000).map(|at| fakeapi::service("shop", &format!("payments-{at}"), "None"));
    api.put_all([fakeapi::namespace("shop")].into_iter().chain(services));
    let running = start(&format!("kubernetes cluster.local {{\n endpoint {}\n }}", api.url()));
    assert_eq!(running.socket.run(&["status", "--wait", "60s"]).code, 0);
    let taken = processor_time(&running, || {
        let path = "/v1/explain?name=payment-77.shop&from=shop/x";
        let (status, body) = running.socket.request("GET", path, "");
        assert!(status == 200 && body.contains("did you mean payments-77.shop.svc.cluster.local.?"), "{body}");
    });
    assert!(taken < Duration::from_millis(50), "{taken:?}");
}

#[test]
fn commands_print_what_the_page_says() {
    let commands = console(PAGE);
    assert!(commands.len() >= 4, "{}", commands.len());
    for (command, expected) in commands {
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let ran = run_in(Path::new(REPOSITORY), &words);
        assert!(matches(&expected, &ran.stdout), "{command}:\n{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn says_which_policy_and_which_line_decide() {
    let folder = Folder::new("explain-policies");
    folder.write(
        "Corefile",
        ".:53 {\n    acl {\n        allow net 10.1.0.0/16\n        block type A net 10.0.0.0/8\n    }\n    forward \
         corp. 192.0.2.1\n    forward . 192.0.2.2\n}\n",
    );
    let explain = |words: &[&str]| run_in(folder.path(), &[&["explain", "--conf", "Corefile"], words].concat());
    assert_explains(
        &explain(&["www.test.", "--from", "10.2.0.1"]),
        1,
        "\
www.test.  A  from 10.2.0.1 (no known pod)
  www.test.  REFUSED  EDE 15   .:53 › acl   Corefile:2   policy `block type A net 10.0.0.0/8`
  why   the policy `block type A net 10.0.0.0/8` applies to 10.2.0.1 [PE-L01]
  do    If the client may ask, put an `allow` policy for it before the one that decides
",
    );
    assert_explains(
        &explain(&["www.corp."]),
        0,
        "\
www.corp.  A
  www.corp.  not asked   .:53 › forward   Corefile:6   zone corp., upstream 192.0.2.1:53
    192.0.2.1:53  udp  up
  why   the answer is that of an upstream, which has not been asked [PE-F02]
  do    To query it: `portolan explain www.corp. --fresh`
",
    );
}

#[test]
fn explains_the_reverse_name_of_an_address() {
    let folder = Folder::new("explain-address");
    folder.write("Corefile", COREFILE);
    folder.write("cluster.yaml", CLUSTER);
    let conf = ["explain", "--conf", "Corefile", "--manifests", "cluster.yaml"];
    for words in [&["10.96.44.7"][..], &["10.96.44.7", "PTR"]] {
        let ran = run_in(folder.path(), &[&conf, words].concat());
        assert!(ran.stdout.starts_with("7.44.96.10.in-addr.arpa.  PTR\n"), "{}{}", ran.stdout, ran.stderr);
    }
    let ran = run_in(folder.path(), &[&conf, &["10.96.44.7", "A"][..]].concat());
    assert!(ran.stdout.starts_with("10.96.44.7  A\n"), "{}{}", ran.stdout, ran.stderr);
}
