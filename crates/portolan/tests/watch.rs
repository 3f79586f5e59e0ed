//! `portolan tail` and `portolan top` with the whole server: what they show, and that they slow nothing down.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::support::control::{ControlSocket, Ran};
use crate::support::{Client, Folder, Server, wait_until};
use serde_json::Value;
use testkit::ports::free_port;
use wire::{Rcode, Type};

/// Running server with its control socket.
struct Watched {
    _server: Server,
    socket: ControlSocket,
    address: SocketAddr,
    client: Client,
    _folder: Folder,
}

impl Watched {
    /// Serves `.` with these directives.
    fn start(name: &str, directives: &str) -> Watched {
        let folder = Folder::new(name);
        Watched::start_in(folder, directives)
    }

    fn start_in(folder: Folder, directives: &str) -> Watched {
        Watched::start_on(0, folder, directives)
    }

    fn start_on(port: u16, folder: Folder, directives: &str) -> Watched {
        let corefile = format!(".:{port} {{\n    bind 127.0.0.1\n    {directives}\n}}\n");
        let mut server = Server::start(&folder.write("Corefile", &corefile));
        let address = server.address_of(&format!("dns://127.0.0.1:{port}"));
        let socket = ControlSocket::of(&mut server);
        Watched { _server: server, socket, address, client: Client::new(address), _folder: folder }
    }

    /// Opens a stream of events.
    fn events(&self, query: &str) -> Events {
        let (status, stream) = self.open(query);
        assert_eq!(status, 200, "{query}");
        stream
    }

    /// Requests a stream, and returns the status of the response with the stream behind its head.
    fn open(&self, query: &str) -> (u16, Events) {
        let mut stream = self.socket.connect();
        write!(stream, "GET /v1/events?{query} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut events = Events(BufReader::new(stream));
        let status = events.line().split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        while !events.line().is_empty() {}
        (status, events)
    }

    fn top(&self, by: &str) -> Value {
        self.socket.json(&["top", "--once", "--by", by])
    }
}

/// Stream of events.
struct Events(BufReader<UnixStream>);

impl Events {
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Returns the next event. Lengths of chunks are left out.
    fn next(&mut self) -> Value {
        loop {
            let line = self.line();
            if line.starts_with('{') {
                return serde_json::from_str(&line).expect("JSON");
            }
        }
    }
}

/// Directives with an answer, a denial and a failure.
const ANSWERS: &str = "hosts {\n 192.0.2.7 a.test\n 192.0.2.8 b.test\n fallthrough other.test\n }";

/// Directives with hosts, and an upstream that refuses for names below corp.
fn with_broken_upstream() -> String {
    let nobody = testkit::ports::free_address();
    format!("forward corp {nobody}\n    hosts {{\n 192.0.2.7 a.test\n fallthrough corp\n }}")
}

/// Returns the groups of a response of `top`.
fn keys(top: &Value) -> Vec<&str> {
    top["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect()
}

#[test]
fn a_tail_shows_the_query_that_was_asked() {
    let mut watched = Watched::start("watch-tail", ANSWERS);
    let mut events = watched.events("");
    assert_eq!(watched.client.ask("A.test.", Type::A).unwrap().rcode(), Rcode::NOERROR);
    let event = events.next()["query"].take();
    assert_eq!((&event["name"], &event["qtype"], &event["rcode"]), (&"A.test.".into(), &"A".into(), &"NOERROR".into()));
    assert_eq!((&event["plugin"], &event["zone"], &event["answers"]), (&"hosts".into(), &".".into(), &1.into()));
    assert_eq!((&event["transport"], &event["truncated"]), (&"udp".into(), &false.into()));
    assert_eq!((&event["client"]["address"], &event["client"]["kind"]), (&"127.0.0.1".into(), &"host".into()));
    let took = event["took_seconds"].as_f64().unwrap();
    assert!(took > 0.0 && took < 5.0, "{took}");
    assert!(event["time"].as_str().unwrap().ends_with('Z') && event["ede"].is_null(), "{event}");

    // A type without records is an answer without records.
    assert!(watched.client.ask("b.test.", Type::AAAA).is_some());
    let event = events.next()["query"].take();
    assert_eq!((&event["name"], &event["qtype"], &event["answers"]), (&"b.test.".into(), &"AAAA".into(), &0.into()));
}

#[test]
fn a_tail_shows_a_failure_with_its_upstream() {
    let mut watched = Watched::start("watch-failure", &with_broken_upstream());
    let mut events = watched.events("rcode=SERVFAIL");
    assert!(watched.client.ask("a.test.", Type::A).is_some());
    assert_eq!(watched.client.ask("git.corp.", Type::A).unwrap().rcode(), Rcode::SERVFAIL);
    let event = events.next()["query"].take();
    assert_eq!(
        (&event["name"], &event["plugin"], &event["zone"]),
        (&"git.corp.".into(), &"forward".into(), &".".into())
    );
    assert_eq!(event["ede"], 23, "{event}");
    assert!(event["upstream"].as_str().unwrap().starts_with("127.0.0.1:"), "{event}");
}

#[test]
fn a_filter_that_matches_nothing_shows_nothing() {
    let mut watched = Watched::start("watch-filter", ANSWERS);
    let nothing = watched.socket.spawn(&["tail", "--name", "*.nothing.test", "--for", "2s", "-o", "json"]);
    let mut other = watched.events("name=a.test");
    for _ in 0..20 {
        assert!(watched.client.ask("a.test.", Type::A).is_some());
        assert_eq!(other.next()["query"]["name"], "a.test.");
    }
    let ran: Ran = nothing.wait_with_output().unwrap().into();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{\"ended\":{\"after_seconds\":2}}\n"), "{}", ran.stderr);
}

#[test]
fn a_bad_filter_is_refused_with_a_reason() {
    let watched = Watched::start("watch-refused", ANSWERS);
    for (words, reason) in [
        (&["--rcode", "NOSUCH"][..], "`rcode`: `NOSUCH` is not a response code such as NXDOMAIN, or DROPPED"),
        (&["--client", "10.0.0.0/40"], "`client`: `10.0.0.0/40` is not an IP address or a network"),
        (&["-n", "shop"], "no server block has *kubernetes*"),
        (&["--pod", "web"], "`--pod web` needs `--namespace`, or `NAMESPACE/web`"),
        (&["--plugin", "!hosts,forwrad"], "there is no plugin `forwrad`; did you mean `forward`?"),
        (&["--for", "2h"], "invalid value '2h' for '--for <DURATION>': expected a duration from 1s to 1h"),
        (&["--for", "0s"], "expected a duration from 1s to 1h"),
    ] {
        let ran = watched.socket.run(&[&["tail"], words].concat());
        assert!(ran.code == 2 && ran.stderr.contains(reason), "{words:?}: {}", ran.stderr);
    }
    for seconds in [0, 3601] {
        let (status, body) = watched.socket.request("GET", &format!("/v1/events?seconds={seconds}"), "");
        let expected = format!("`seconds`: `{seconds}` is out of range; use 1–3600");
        assert!(status == 400 && body.contains(&expected), "{body}");
    }
}

#[test]
fn last_shows_failures_from_before_anybody_looked() {
    let mut watched = Watched::start("watch-last", &with_broken_upstream());
    for name in ["a.test.", "one.corp.", "two.corp.", "three.corp."] {
        assert!(watched.client.ask(name, Type::A).is_some(), "{name}");
    }
    let names = |words: &[&str]| {
        let ran = watched.socket.run(&[&["tail", "-o", "logfmt"], words].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let name = |line: &str| line.split(' ').find_map(|pair| pair.strip_prefix("name=")).map(str::to_owned);
        ran.stdout.lines().filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--last", "100"]), ["one.corp.", "two.corp.", "three.corp."]);
    assert_eq!(names(&["--last", "2"]), ["two.corp.", "three.corp."]);
    assert_eq!(names(&["--last", "100", "--name", "o*.corp,one.corp"]), ["one.corp."]);
    let line = watched.socket.run(&["tail", "--last", "1"]).stdout;
    for part in
        ["127.0.0.1 (host)", "three.corp.", "SERVFAIL", "forward", "EDE 23 (the connection to the upstream failed)"]
    {
        assert!(line.contains(part), "{part}: {line}");
    }
    let none = watched.socket.run(&["tail", "--last", "100", "--rcode", "NXDOMAIN"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.contains("no recorded failure matches") && none.stderr.contains("NXDOMAIN"), "{}", none.stderr);
}

#[test]
fn a_stuck_reader_delays_no_answer_and_is_told_what_it_missed() {
    let mut watched = Watched::start("watch-stuck", ANSWERS);
    let mut stuck = watched.events("");
    for _ in 0..4_000 {
        assert!(watched.client.ask("a.test.", Type::A).is_some());
    }
    let (mut seen, mut left_out) = (0, 0);
    while seen + left_out < 4_000 {
        let event = stuck.next();
        match event["left_out"]["lines"].as_u64() {
            Some(lines) => left_out += lines,
            None => seen += 1,
        }
    }
    assert!(left_out > 500 && seen > 500, "{seen} {left_out}");
    assert_eq!(seen + left_out, 4_000);
}

#[test]
fn the_number_of_streams_is_bounded() {
    let mut watched = Watched::start("watch-streams", ANSWERS);
    let mut open: Vec<Events> = (0..4).map(|_| watched.events("")).collect();
    let (status, mut refused) = watched.open("");
    let mut reason = String::new();
    refused.0.get_mut().set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    // The connection stays open, so the text has no end.
    wait_until("the reason", || {
        let _ = refused.0.read_to_string(&mut reason);
        reason.contains("4 streams are open, the maximum; end one, or use `tail --last 20`")
    });
    assert_eq!(status, 503, "{reason}");
    // The others continue, and one that its client leaves makes room.
    assert!(watched.client.ask("a.test.", Type::A).is_some());
    assert!(open.iter_mut().all(|events| events.next()["query"]["name"] == "a.test."));
    open.pop();
    wait_until("the place is free", || watched.open("").0 == 200);
}

#[test]
fn names_the_pods_that_ask() {
    let folder = Folder::new("watch-pods");
    let manifests = folder.write("cluster.yaml", CLUSTER);
    let directives = format!("kubernetes cluster.local {{\n manifests {}\n }}", manifests.display());
    let mut watched = Watched::start_in(folder, &directives);
    let mut pod = Client::at("127.0.0.9".parse().unwrap(), watched.address);
    let mut node = Client::at("127.0.0.10".parse().unwrap(), watched.address);
    let answered = |client: &mut Client| {
        client.ask("web.shop.svc.cluster.local.", Type::A).is_some_and(|a| a.rcode() == Rcode::NOERROR)
    };
    wait_until("the cluster is known", || answered(&mut pod));
    let mut all = watched.events("");
    let mut shop = watched.events("namespace=shop");
    let mut service = watched.events("namespace=shop&pod=db-0");
    assert!(answered(&mut watched.client) && answered(&mut node) && answered(&mut pod));
    let mut next = || all.next()["query"]["client"].take();
    assert_eq!(next()["kind"], "host");
    assert_eq!(next()["kind"], "node");
    let client = next();
    assert_eq!(
        (&client["kind"], &client["namespace"], &client["pod"]),
        (&"pod".into(), &"shop".into(), &"db-0".into())
    );
    // The node's address is that of an endpoint of the namespace as well.
    assert_eq!(shop.next()["query"]["client"]["address"], "127.0.0.10");
    assert_eq!(shop.next()["query"]["client"]["address"], "127.0.0.9");
    assert_eq!(service.next()["query"]["client"]["address"], "127.0.0.9");

    let top = watched.top("pod");
    let keys = keys(&top);
    assert!(keys.contains(&"shop/db-0") && keys.contains(&"127.0.0.10 (node)"), "{keys:?}");
    let namespaces = watched.top("ns");
    assert!(namespaces["rows"].as_array().unwrap().iter().any(|row| row["key"] == "shop"), "{namespaces}");
}

/// Service with a pod, and another one in another namespace with which it shares the address of a node.
const CLUSTER: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Namespace
metadata: {name: logging}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.11, ports: [{port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-a, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 80, protocol: TCP}]
endpoints:
- {addresses: [127.0.0.9], hostname: db-0, conditions: {ready: true}}
- {addresses: [127.0.0.10], conditions: {ready: true}}
---
apiVersion: v1
kind: Service
metadata: {name: agent, namespace: logging}
spec: {clusterIP: 10.96.0.12, ports: [{port: 80, protocol: TCP}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: agent-a, namespace: logging, labels: {kubernetes.io/service-name: agent}}
addressType: IPv4
ports: [{port: 80, protocol: TCP}]
endpoints:
- {addresses: [127.0.0.10], conditions: {ready: true}}
"#;

#[test]
fn identity_pods_names_pods_without_a_service() {
    let folder = Folder::new("watch-identity");
    let manifests = folder.write("cluster.yaml", PODS);
    let directives = format!("kubernetes cluster.local {{\n manifests {}\n identity pods\n }}", manifests.display());
    let mut watched = Watched::start_in(folder, &directives);
    let [mut job, mut agent, mut stranger] =
        ["127.0.0.9", "127.0.0.10", "127.0.0.11"].map(|address| Client::at(address.parse().unwrap(), watched.address));
    wait_until("the cluster is known", || {
        let answer = watched.client.ask("web.shop.svc.cluster.local.", Type::A);
        answer.is_some_and(|answer| answer.rcode() == Rcode::NOERROR)
    });
    let mut all = watched.events("");
    let mut selected = watched.events("namespace=shop&pod=job-x2k8p");
    for client in [&mut job, &mut agent, &mut stranger] {
        assert!(client.ask("a.shop.svc.cluster.local.", Type::A).is_some());
    }
    let mut next = || all.next()["query"]["client"].take();
    let client = next();
    let pod = (&client["kind"], &client["namespace"], &client["pod"]);
    assert_eq!(pod, (&"pod".into(), &"shop".into(), &"job-x2k8p".into()));
    assert_eq!((next()["kind"].take(), next()["kind"].take()), ("node".into(), "host".into()));
    assert_eq!(selected.next()["query"]["client"]["address"], "127.0.0.9");
    let top = watched.top("pod");
    let keys = keys(&top);
    for key in ["shop/job-x2k8p", "127.0.0.10 (node)", "127.0.0.11 (host)"] {
        assert!(keys.contains(&key), "{key}: {keys:?}");
    }
}

/// Pod that no Service selects, and one on the network of its node.
const PODS: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.11, ports: [{port: 80, protocol: TCP}]}
---
apiVersion: v1
kind: Pod
metadata: {name: job-x2k8p, namespace: shop}
status: {podIP: 127.0.0.9}
---
apiVersion: v1
kind: Pod
metadata: {name: agent-abcde, namespace: shop}
spec: {hostNetwork: true}
status: {podIP: 127.0.0.10}
";

#[test]
fn top_counts_queries_by_their_groups() {
    let mut watched = Watched::start("watch-top", &with_broken_upstream());
    for (name, times) in [("a.test.", 6), ("missing.test.", 3), ("git.corp.", 1)] {
        for _ in 0..times {
            assert!(watched.client.ask(name, Type::A).is_some(), "{name}");
        }
    }
    let top = watched.top("name");
    assert_eq!((&top["total"]["queries"], &top["sampled_one_of"]), (&10.into(), &1.into()));
    let rows = top["rows"].as_array().unwrap();
    let of = |row: &Value| (row["key"].as_str().unwrap().to_owned(), row["counts"]["queries"].as_u64().unwrap());
    let expected =
        [("a.test.", 6), ("missing.test.", 3), ("git.corp.", 1)].map(|(name, times)| (name.to_owned(), times));
    assert_eq!(rows.iter().map(of).collect::<Vec<_>>(), expected);
    assert_eq!((&rows[0]["counts"]["useful"], &rows[0]["counts"]["waste"]), (&6.into(), &1.0.into()));
    assert!(rows[1]["counts"]["waste"].is_null());

    let pod = watched.top("waste")["rows"][0].take();
    assert_eq!((&pod["key"], &pod["top_name"]), (&"127.0.0.1 (host)".into(), &"a.test.".into()));
    let waste = pod["counts"]["waste"].as_f64().unwrap();
    assert!((waste - 10.0 / 6.0).abs() < 0.01, "{waste}");
    assert!(pod["counts"]["p99_seconds"].as_f64().unwrap() > 0.0);

    let keys = |by: &str| {
        let rows = watched.top(by)["rows"].take();
        let mut keys: Vec<String> =
            rows.as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect();
        keys.sort_unstable();
        keys
    };
    assert_eq!((keys("zone"), keys("ns")), (vec![".".to_owned()], vec!["(unknown)".to_owned()]));
    assert!(keys("rcode").contains(&"SERVFAIL".to_owned()) && keys("rcode").contains(&"NOERROR".to_owned()));
    assert!(keys("upstream").len() == 1 && keys("upstream")[0].starts_with("127.0.0.1:"));

    let text = watched.socket.run(&["top", "--once", "--by", "name"]).stdout;
    assert!(text.contains(" q/s · p99 ≤ ") && text.contains(" a.test. ") && text.contains("1.0×"), "{text}");
}

#[test]
fn probes_are_not_shown_as_queries_of_clients() {
    let port = free_port();
    let directives = format!(
        "loop\n    probe own 127.0.0.1:{port} a.test. 1s {{\n address 127.0.0.1:0\n }}\n    hosts {{\n 192.0.2.7 a.test\n }}"
    );
    let mut watched = Watched::start_on(port, Folder::new("watch-probes"), &directives);
    let mut events = watched.events("");
    assert!(watched.client.ask("client.test.", Type::MX).is_some());
    let mut kinds = BTreeMap::new();
    while kinds.len() < 3 {
        let event = events.next()["query"].take();
        kinds.insert(event["qtype"].to_string(), event["client"]["kind"].clone());
    }
    // One of the client, of *probe* and of *loop*.
    let expected = [("\"A\"", "probe"), ("\"HINFO\"", "probe"), ("\"MX\"", "host")];
    assert_eq!(kinds, expected.map(|(qtype, kind)| (qtype.to_owned(), kind.into())).into());
    for (by, client) in [("pod", "127.0.0.1 (host)"), ("ns", "(unknown)")] {
        let top = watched.top(by);
        let mut keys = keys(&top);
        keys.sort_unstable();
        let mut expected = [client, "(probes)"];
        expected.sort_unstable();
        assert_eq!(keys, expected, "{top}");
    }
}

#[test]
fn privacy_hides_names() {
    for (option, shown) in [("hash", None), ("suffix", Some("*.a.test."))] {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let answers = ANSWERS.replace("other.test", "slow.test");
        let directives =
            format!("control {{\n privacy names={option}\n }}\n    forward slow.test {address}\n    {answers}");
        let mut watched = Watched::start(&format!("watch-privacy-{option}"), &directives);
        let mut events = watched.events("");
        assert!(watched.client.ask("secret.deep.a.test.", Type::A).is_some());
        let name = events.next()["query"]["name"].as_str().unwrap().to_owned();
        let is_hash = |name: &str| {
            let hash = name.strip_suffix(".a.test.");
            hash.is_some_and(|hash| hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
        };
        assert!(shown.map_or_else(|| is_hash(&name), |shown| name == shown), "{name}");
        let top = watched.socket.run(&["top", "--once", "--by", "name"]).stdout;
        assert!(!top.contains("secret") && !top.contains("deep") && top.contains("a.test."), "{top}");
        watched.client.send("secret.deep.slow.test.", Type::A);
        wait_until("it waits", || watched.socket.json(&["requests"])["exchanges"] == 1);
        let requests = watched.socket.run(&["requests"]).stdout;
        assert!(requests.contains(".slow.test.") && !requests.contains("secret"), "{requests}");
        assert!(shown.is_none() || requests.contains(" *.slow.test. "), "{requests}");
        let archive = watched.socket.bytes(&["report"]);
        let mut report = String::new();
        flate2::read::GzDecoder::new(&*archive).read_to_string(&mut report).unwrap();
        assert!(report.contains(".slow.test.") && !report.contains("secret"), "{report}");
        let refused = watched.socket.run(&["tail", "--name", "secret.deep.a.test"]);
        assert!(refused.code == 2 && refused.stderr.contains("hides names"), "{}", refused.stderr);
    }
}
