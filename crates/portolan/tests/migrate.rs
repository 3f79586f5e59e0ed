//! `portolan migrate` as users run it: output, notes and exit codes.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{Folder, Server};
use serde_json::{Value, json};

/// Runs the command with standard input. Returns the exit code, standard output and standard error.
fn migrate(words: &[&str], input: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.arg("migrate").args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The command may exit before it has read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Starts a server for a hosts file.
fn server(folder: &Folder, name: &str, hosts: &str) -> (Server, SocketAddr) {
    let corefile = format!(".:0 {{\n    bind 127.0.0.1\n    hosts /dev/null {{\n{hosts}\n    }}\n}}\n");
    let mut server = Server::start(&folder.write(name, &corefile));
    let address = server.address_of("dns://127.0.0.1:0");
    (server, address)
}

#[test]
fn converts_an_older_corefile() {
    let old = "# ours\n.:53 {\n    health\n    proxy . 192.0.2.1\n    cache {$TTL}\n}\n";
    let (code, text, said) = migrate(&[], old);
    assert_eq!(text, "# ours\n.:53 {\n    health\n    forward . 192.0.2.1\n    cache {$TTL}\n}\n");
    assert!(said.contains("changed: `proxy` is `forward` (since 1.5.0)"), "{said}");
    assert!(said.contains("environment variable `TTL` is not set here"), "{said}");
    assert_eq!(code, Some(0), "{said}");
    let (code, text, _) = migrate(&["--defaults"], old);
    assert!(text.contains("health {\n        lameduck 5s\n    }\n"), "{text}");
    assert_eq!(code, Some(0));
}

#[test]
fn exit_code_tells_lost_settings_from_unusable_input() {
    let (code, _, said) = migrate(&[], ". {\n    proxy . 192.0.2.1 {\n        policy least_conn\n    }\n}\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("lost: `policy least_conn`"), "{said}");
    let (code, text, said) = migrate(&[], ". {\n    errors\n");
    assert_eq!((code, text.as_str()), (Some(2), ""), "{said}");
    let (code, _, said) = migrate(&["/nowhere"], "");
    assert!(code == Some(2) && said.contains("/nowhere"), "{said}");
    let (code, text, said) = migrate(&[], "");
    assert_eq!((code, text.as_str(), said.as_str()), (Some(2), "", "-: the file is empty\n"));
}

#[test]
fn errors_name_the_file() {
    let folder = Folder::new("migrate-files");
    let map =
        |domains: &str| format!("kind: ConfigMap\nmetadata: {{name: kube-dns}}\ndata: {{stubDomains: '{domains}'}}\n");
    let pod = |argument: &str| {
        format!("kind: Pod\nspec: {{containers: [{{image: r/k8s-dns-kube-dns:1, args: [\"{argument}\"]}}]}}\n")
    };
    let (right, wrong) = (folder.write("right.yaml", &map("{}")), folder.write("wrong.yaml", &map("{“a”: []}")));
    let (pod, wrong_pod) = (folder.write("pod.yaml", &pod("--v=2")), folder.write("flags.yaml", &pod("--nonsense")));
    std::fs::write(folder.path().join("latin1"), b".:53 {\n  # Gr\xfc\xdfe\n}\n").unwrap();
    let latin1 = folder.path().join("latin1");
    for (files, named, part) in [
        (vec![&pod, &wrong], &wrong, "invalid ConfigMap: `stubDomains`: "),
        (vec![&right, &wrong_pod], &wrong_pod, "nonsense"),
        (vec![&latin1], &latin1, "it is not UTF-8 text: byte 0xfc at line 2, column 7\n"),
    ] {
        let words: Vec<&str> = files.into_iter().map(|file| file.to_str().unwrap()).collect();
        let (code, _, said) = migrate(&words, "");
        assert!(code == Some(2) && said.contains(named.to_str().unwrap()) && said.contains(part), "{said}");
    }
}

#[test]
fn says_what_coredns_does_not_know_of_the_result() {
    let federation = "federation cluster.local {\n        prod prod.example.org\n    }";
    let old = format!(". {{\n    kubernetes cluster.local\n    {federation}\n}}\n");
    let (code, text, said) = migrate(&[], &old);
    assert_eq!(code, Some(0), "{said}");
    assert!(text.contains("federations "), "{text}");
    assert!(
        said.contains("look: CoreDNS 1.15.0 does not know `federations`: `portolan check --for coredns`"),
        "{said}"
    );
    let (_, _, said) = migrate(&[], ". {\n    proxy . 192.0.2.1\n}\n");
    assert!(!said.contains("--for coredns"), "{said}");
}

#[test]
fn prints_one_json_object() {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let old = ". {\n    proxy . 192.0.2.1 {\n        spray\n    }\n    loop\n}\n";
    let (code, text, said) = migrate(&["--json"], old);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let object = read(&text);
    assert_eq!(object["corefile"], ". {\n    forward . 192.0.2.1 {\n    }\n    loop\n}\n");
    let changed = json!({
        "what": "changed", "place": "-:2:5", "text": "`proxy` is `forward`", "directive": "proxy", "since": "1.5.0",
    });
    assert_eq!((&object["notes"][0], &object["notes"][1]["what"]), (&changed, &json!("dropped")));
    let (code, text, _) = migrate(&["--json"], ". {\n    proxy . 192.0.2.1 {\n        policy least_conn\n    }\n}\n");
    assert_eq!(code, Some(1));
    assert!(read(&text)["notes"].as_array().unwrap().iter().any(|note| note["what"] == "lost"), "{text}");
    let (code, text, said) = migrate(&["--json"], ". {\n");
    assert!(code == Some(2) && text.is_empty() && !said.is_empty(), "{text}{said}");
    // A note without a place or a directive has no such fields.
    let (_, text, _) = migrate(&["--json", "--", "--conf-file=/etc/x"], "");
    let note = read(&text)["notes"][0].clone();
    assert_eq!((&note["what"], note.get("place"), note.get("directive")), (&json!("lost"), None, None));
}

#[test]
fn converts_a_kube_dns_pod_and_a_dnsmasq_command_line() {
    let folder = Folder::new("migrate-pod");
    let map = "kind: ConfigMap\nmetadata: {name: kube-dns}\ndata:\n  stubDomains: '{\"corp.example\": [\"10.0.0.1\"], \
               \"global\": [\"10.96.0.53\"]}'\n";
    let pod = "kind: Deployment\nspec: {template: {spec: {containers: [{image: x/k8s-dns-kube-dns, args: \
               [--domain=c.local.]}]}}}\n";
    let (map, pod) = (folder.write("map.yaml", map), folder.write("pod.yaml", pod));
    let path = |path: &Path| path.display().to_string();
    let (code, text, said) = migrate(&[&path(&map), &path(&pod)], "");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("look: if istiocoredns answers") && text.contains("global:53 {"), "{said}");
    assert!(text.contains("corp.example:53 {") && text.contains("kubernetes c.local in-addr.arpa"), "{text}");
    let (code, text, said) = migrate(&["--", "--server=/corp.example/10.0.0.1#54", "--cache-size=9"], "");
    assert_eq!(code, Some(0), "{said}");
    assert!(text.contains("forward . 10.0.0.1:54"), "{text}");
    let words = ["--server=/corp.example/10.0.0.1#54", "--cache-size=9"];
    for program in ["dnsmasq", "/usr/sbin/dnsmasq"] {
        assert_eq!(migrate(&["--", program, words[0], words[1]], "").1, text);
    }
    let (code, _, said) = migrate(&["--", "--conf-file=/etc/x", "--user=nobody"], "");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("lost: dnsmasq's --conf-file") && said.contains("dropped: dnsmasq's --user"), "{said}");
}

#[test]
fn converts_portolans_own_pod_and_one_with_exechealthz() {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/kube-dns.yaml");
    let (code, text, said) = migrate(&[&ours.display().to_string()], "");
    assert_eq!(code, Some(0), "{said}");
    assert!(text.contains("kubernetes cluster.local in-addr.arpa"), "{text}");
    let old = "kind: ReplicationController\nspec: {template: {spec: {containers: [\
               {name: kubedns, image: g/kubedns-amd64:1.9, args: [--domain=c.local.]}, \
               {name: dnsmasq, image: g/kube-dnsmasq-amd64:1.4, args: [--cache-size=9, --server=10.0.0.1]}, \
               {name: healthz, image: g/exechealthz-amd64:1.2, args: [-port=8080]}]}}}\n";
    let (code, text, said) = migrate(&[], old);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("dropped: container `healthz` (exechealthz) is not needed: "), "{said}");
    assert!(text.contains("kubernetes c.local") && text.contains("forward . 10.0.0.1"), "{text}");
}

/// Checks that notes about changes in an old version are left out for users of a newer version.
#[test]
fn notes_changes_only_for_users_of_older_versions() {
    let corefile =
        ". {\n    prometheus :9153\n    forward . 192.0.2.1 {\n        max_concurrent 1000\n    }\n    loop\n}\n";
    for (words, is_told) in [(&[][..], false), (&["--from", "1.6.9"], true), (&["--from=v1.8.0"], false)] {
        let (code, _, said) = migrate(words, corefile);
        assert_eq!((code, said.contains("names of metrics have changed")), (Some(0), is_told), "{words:?}: {said}");
    }
    let (code, _, said) = migrate(&["--from", "new"], corefile);
    assert!(code == Some(2) && said.contains("a version such as 1.6.9"), "{said}");
}

#[test]
fn compares_two_servers() {
    let folder = Folder::new("migrate-check");
    let same = "        192.0.2.1 a.test";
    let (_old, old) = server(&folder, "old", same);
    let (_new, new) = server(&folder, "new", &format!("{same}\n        192.0.2.2 b.test"));
    let (old, new) = (old.to_string(), new.to_string());
    let (code, text, said) = migrate(&["--check", &old, &new, "-"], "a.test A\n");
    assert!(code == Some(0) && text.starts_with("1 query, 0 with different answers\n"), "{text}{said}");
    assert!(text.contains("\n  same: NOERROR 1\n  latency of the old server 127.0.0.1:"), "{text}");
    let (code, text, _) = migrate(&["--check", &old, &new, "-"], "a.test A\nb.test A\nb.test A\n");
    assert_eq!(code, Some(1));
    assert!(
        text.contains("b.test. A")
            && text.contains("2 queries, 1 with different answers\n  same: NOERROR 1\n  different: code 1\n"),
        "{text}"
    );
    // More queries than run concurrently; the results keep the order of the lines.
    let many: String = (0..100).map(|at| format!("a{at}.test A\nb.test TYPE{}\n", 1000 + at)).collect();
    let (code, text, _) = migrate(&["--check", &old, &new, "-"], &many);
    assert!(code == Some(1) && text.contains("200 queries, 100 with different answers\n"), "{text}");
    let types: Vec<&str> = text.lines().filter_map(|line| line.split_once("b.test. TYPE")).map(|(_, at)| at).collect();
    assert_eq!(types, (1000..1100).map(|at| at.to_string()).collect::<Vec<_>>());
}

#[test]
fn compares_ttls_only_with_the_flag() {
    let folder = Folder::new("migrate-ttl");
    let (_old, old) = server(&folder, "old", "        192.0.2.1 a.test\n        ttl 3600");
    let (_new, new) = server(&folder, "new", "        192.0.2.1 a.test\n        ttl 30");
    // One server by host name, and one with a cache, whose TTLs count down.
    let (old, new) = (format!("localhost:{}", old.port()), new.to_string());
    let (code, text, said) = migrate(&["--check", &old, &new, "-"], "a.test A\n");
    assert_eq!(code, Some(0), "{text}{said}");
    let (code, text, said) = migrate(&["--ttl", "--json", "--check", &old, &new, "-"], "a.test A\n");
    assert_eq!(code, Some(1), "{text}{said}");
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        summary["differences"][0],
        json!({"question": "a.test. A", "differs": "ttl", "old": "3600 s", "new": "30 s"})
    );
    assert_eq!((&summary["questions"], &summary["different_by_kind"]), (&json!(1), &json!({"ttl": 1})));
    assert!(summary["old"]["latency_ms"]["p50"].is_number(), "{text}");
}

#[test]
fn two_servers_that_fail_neither_agree_nor_differ() {
    let folder = Folder::new("migrate-failing");
    // A hosts plugin without a name and without a next plugin answers SERVFAIL.
    let (_old, old) = server(&folder, "old", "        192.0.2.1 a.test");
    let (_new, new) = server(&folder, "new", "        192.0.2.1 a.test");
    let (old, new) = (old.to_string(), new.to_string());
    let (code, text, said) = migrate(&["--check", &old, &new, "-"], "a.test A\nelsewhere.example A\n");
    assert_eq!(code, Some(0), "{text}{said}");
    assert!(text.starts_with("undecided: elsewhere.example. A\n  both servers answered SERVFAIL\n"), "{text}");
    assert!(
        text.contains(
            "2 queries, 0 with different answers\n  same: NOERROR 1\n  undecided, because both servers answered \
             SERVFAIL: 1\n"
        ),
        "{text}"
    );
    let (_, text, _) = migrate(&["--json", "--check", &old, &new, "-"], "a.test A\nelsewhere.example A\n");
    let summary: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&summary["undecided"], &summary["undecided_questions"]), (&json!(1), &json!(["elsewhere.example. A"])));
}

#[test]
fn two_silent_servers_are_not_equal() {
    // These sockets are bound but never answer.
    let silent = [(); 2].map(|()| std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
    let [old, new] = silent.each_ref().map(|socket| socket.local_addr().unwrap().to_string());
    let (code, text, said) = migrate(&["--check", &old, &new, "-"], "a.test A\n");
    let wanted = format!("both servers, {old} and {new}, have not answered the query; giving up\n");
    assert_eq!((code, text.as_str(), said), (Some(2), "", wanted));
}

#[test]
fn gives_up_on_a_server_that_is_silent_from_the_start() {
    let folder = Folder::new("migrate-silent");
    let (_old, old) = server(&folder, "old", "        192.0.2.1 a.test");
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (old, new) = (old.to_string(), silent.local_addr().unwrap().to_string());
    let questions: String = (0..500).map(|at| format!("a{at}.test A\n")).collect();
    let (code, text, said) = migrate(&["--check", &old, &new, "-"], &questions);
    let wanted = format!("the new server {new} has not answered any of the first 10 queries; giving up\n");
    assert_eq!((code, text.as_str(), said), (Some(2), "", wanted));
    // Fewer questions do not make the server better.
    let (code, text, said) = migrate(&["--check", &old, &new, "-"], "a.test A\n");
    let wanted = format!("the new server {new} has not answered the query; giving up\n");
    assert_eq!((code, text.as_str(), said), (Some(2), "", wanted));
}
