//! Control socket of the whole server: every command and endpoint, and what the server says in trouble.

use std::io::Read;
use std::net::UdpSocket;

use crate::support::control::ControlSocket;
use crate::support::upstream::Upstream;
use crate::support::{Client, Folder, PATIENCE, Server, page, wait_until};
use fakeapi::{FakeApi, Fault};
use serde_json::Value;
use wire::{Rcode, Type};

/// Running server with its control socket.
struct Controlled {
    server: Server,
    socket: ControlSocket,
    client: Client,
    folder: Folder,
}

impl Controlled {
    /// Serves `.` with these directives.
    fn start(directives: &str) -> Controlled {
        let folder = Folder::new("control");
        let mut server = Server::start(&folder.write("Corefile", &corefile(directives)));
        let client = Client::new(server.address_of("dns://127.0.0.1:0"));
        let socket = ControlSocket::of(&mut server);
        Controlled { server, socket, client, folder }
    }
}

fn corefile(directives: &str) -> String {
    format!(".:0 {{\n    bind 127.0.0.1\n    {directives}\n}}\n")
}

/// Directives that forward to an upstream, with a cache.
fn forwarding(upstream: impl std::fmt::Display) -> String {
    format!("prometheus localhost:0\n    cache 300\n    forward . {upstream}")
}

#[test]
fn status_shows_what_the_server_does() {
    let upstream = Upstream::start(7);
    let mut controlled = Controlled::start(&forwarding(upstream.address));
    for name in ["a.test.", "a.test.", "b.test."] {
        assert_eq!(controlled.client.ask(name, Type::A).unwrap().rcode(), Rcode::NOERROR);
    }
    let status = controlled.socket.status();
    assert_eq!((&status["serving"], &status["problems"]), (&Value::from("ready"), &Value::Array(Vec::new())));
    assert_eq!(status["process_id"], controlled.server.id());
    assert_eq!((status["corefile"]["generation"].as_u64(), status["corefile"]["blocks"].as_u64()), (Some(1), Some(1)));
    assert_eq!(status["answers"]["codes"], serde_json::json!([{ "code": "NOERROR", "answers": 3 }]));
    assert!(status["answers"]["per_second"].as_f64().unwrap() > 0.0);
    let upstreams = &status["upstreams"];
    assert_eq!((&upstreams[0]["state"], &upstreams[0]["replies"]), (&Value::from("up"), &Value::from(2)));
    let cache = &status["cache"];
    assert_eq!((&cache["entries"], &cache["hits"], &cache["misses"]), (&2.into(), &1.into(), &2.into()));
    assert!(status["resources"]["memory_bytes"].as_u64().unwrap() > 1 << 20);

    let text = controlled.socket.run(&["status"]);
    assert_eq!((text.code, text.stderr.as_str()), (0, ""), "{}", text.stdout);
    for part in ["✓ serving", "generation 1", "1 block, 0 warnings", "NOERROR 100 %", "hit 33 %", "no problems"] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }
    assert!(text.stdout.contains(&format!("✓ {} udp p99", upstream.address)), "{}", text.stdout);
}

#[test]
fn status_names_a_zone_that_was_never_transferred() {
    let controlled = Controlled::start("secondary example.org {\n transfer from 127.0.0.1:1\n }");
    let status = controlled.socket.status();
    let wanted = "zone example.org. has not been transferred yet, so its queries fail: no transfer from 127.0.0.1:1; \
                  the log has the cause";
    assert_eq!(status["problems"], serde_json::json!([{ "code": "PD-K09", "text": wanted }]));
    // It is no reason to take the replica out of the Service.
    assert_eq!(status["serving"], "ready");
}

#[test]
fn status_shows_warnings_with_their_lines() {
    let controlled = Controlled::start("hosts {\n 192.0.2.1 a.test\n }\n    forward . 127.0.0.1:1");
    let first = controlled.socket.status()["corefile"]["first_warnings"][0].as_str().unwrap().to_owned();
    assert!(first.contains("Corefile:6: "), "{first}");
    let text = controlled.socket.run(&["status"]).stdout;
    assert!(text.contains("1 warning\n               ‼ ") && text.contains("Corefile:6: "), "{text}");
}

/// The log and the status say once what was not read, and the names stay.
#[test]
fn a_reload_keeps_what_it_cannot_read_now() {
    let folder = Folder::new("control");
    for name in ["file", "auto"] {
        folder.write(&format!("db.{name}.test"), "@ 60 SOA ns host 1 1 1 1 1\nwww 60 A 192.0.2.1\n");
    }
    folder.write("hosts", "192.0.2.1 www.hosts.test\n");
    let text = |more: &str| {
        let served =
            "file db.file.test file.test\n auto auto.test {\n directory .\n }\n hosts hosts {\n fallthrough\n }";
        corefile(&format!("root {}\n {served}\n {more}", folder.path().display()))
    };
    let mut server = Server::start(&folder.write("Corefile", &text("")));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    let socket = ControlSocket::of(&mut server);
    folder.write("db.file.test", "@ 60 SOA ns");
    folder.write("db.auto.test", "@ 60 SOA ns");
    std::fs::remove_file(folder.path().join("hosts")).unwrap();
    folder.write("Corefile", &text("nsid changed"));
    server.signal("USR1");
    server.wait_for("Reloading complete");
    for name in ["www.file.test.", "www.auto.test.", "www.hosts.test."] {
        assert_eq!(client.ask(name, Type::A).map(|answer| answer.rcode()), Some(Rcode::NOERROR), "{name}");
    }
    let warnings = socket.status()["corefile"]["first_warnings"].to_string();
    for kept in
        ["db.file.test:1:12: ", "db.auto.test:1:12: ", "the zone stays as it was", "its entries stay as they were"]
    {
        assert!(warnings.contains(kept), "{kept}: {warnings}");
    }
}

/// A warning ends when the file has been read again, and begins without a reload.
#[test]
fn status_shows_the_present_problems_of_files() {
    let folder = Folder::new("control-files");
    let repair = || {
        folder.write("db.file.test", "@ 60 SOA ns host 1 1 1 1 1\nwww 60 A 192.0.2.1\n");
        folder.write("zones/db.auto.test", "@ 60 SOA ns host 1 1 1 1 1\nwww 60 A 192.0.2.1\n");
        folder.write("hosts", "192.0.2.1 www.hosts.test\n");
        folder.write("weights", "www.hosts.test\n192.0.2.1 2\n");
    };
    let destroy = || {
        folder.write("db.file.test", "@ 60 SOA ns");
        folder.write("zones/db.auto.test", "@ 60 SOA ns");
        std::fs::remove_file(folder.path().join("hosts")).unwrap();
        folder.write("weights", "www.hosts.test\n192.0.2.1 many\n");
    };
    std::fs::create_dir(folder.path().join("zones")).unwrap();
    repair();
    let lines = [
        "file db.file.test file.test {\n reload 20ms\n }",
        "auto auto.test {\n directory zones\n reload 20ms\n }",
        "hosts hosts hosts.test {\n reload 20ms\n }",
        "loadbalance weighted weights {\n reload 20ms\n }",
    ];
    let served = lines.join("\n ");
    let text = corefile(&format!("root {}\n {served}", folder.path().display()));
    let mut server = Server::start(&folder.write("Corefile", &text));
    let socket = ControlSocket::of(&mut server);
    let warnings = || socket.status()["corefile"]["warnings"].as_u64();
    assert_eq!(warnings(), Some(0));
    destroy();
    wait_until("each file has a warning", || warnings() == Some(4));
    let texts = socket.status()["corefile"]["first_warnings"].to_string();
    let parts = ["db.file.test:1:12: ", "db.auto.test:1:12: ", "the zone stays as", "its entries stay as", "weights:2"];
    for part in parts {
        assert!(texts.contains(part), "{part}: {texts}");
    }
    server.signal("USR1");
    server.wait_for("Reloading complete");
    assert_eq!(warnings(), Some(4), "{}", socket.status()["corefile"]["first_warnings"]);
    repair();
    wait_until("no file has a warning", || warnings() == Some(0));
}

#[test]
fn status_says_that_nothing_counts_without_prometheus() {
    let mut controlled = Controlled::start("whoami");
    assert!(controlled.client.ask("a.test.", Type::A).is_some());
    let text = controlled.socket.run(&["status"]).stdout;
    assert!(text.contains("Answers      not counted: no server block has `prometheus`"), "{text}");
    assert!(text.contains("Cache        none"), "{text}");
}

#[test]
fn status_names_an_upstream_that_is_down() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    drop(silent);
    let directives = format!("forward . {address} {{\n max_fails 1\n health_check 20ms\n }}");
    let mut controlled = Controlled::start(&directives);
    controlled.client.ask("a.test.", Type::A);
    wait_until("it is down", || controlled.socket.status()["upstreams"][0]["state"] == "down");
    let status = controlled.socket.run(&["status"]);
    assert_eq!(status.code, 1, "{}", status.stdout);
    let expected = format!("✗ {address} udp");
    assert!(status.stdout.contains(&expected) && status.stdout.contains("PD-U02  upstream"), "{}", status.stdout);
}

#[test]
fn status_says_that_many_queries_are_refused() {
    let mut controlled = Controlled::start("prometheus localhost:0\n    acl {\n block type TXT\n }\n    whoami");
    let status = controlled.socket.run(&["status"]);
    assert_eq!(status.code, 0, "{}", status.stdout);
    for at in 0..110 {
        let qtype = if at % 11 == 0 { Type::TXT } else { Type::A };
        controlled.client.ask("a.test.", qtype);
    }
    let status = controlled.socket.run(&["status"]);
    assert_eq!(status.code, 1, "{}", status.stdout);
    assert!(status.stdout.contains("PD-T06  REFUSED is 9 % of 110 answers in "), "{}", status.stdout);
}

#[test]
fn status_names_an_upstream_that_refuses_queries() {
    let folder = Folder::new("control-refusing");
    let corefile = folder.write(
        "Corefile",
        ".:0 {\n    bind 127.0.0.1\n    control off\n    template ANY ANY {\n rcode REFUSED\n }\n}\n",
    );
    let mut refusing = Server::start(&corefile);
    let address = refusing.address_of("dns://127.0.0.1:0");
    let mut controlled = Controlled::start(&format!("forward . {address}"));
    (0..3).for_each(|_| _ = controlled.client.ask("git.corp.", Type::A));
    let status = controlled.socket.run(&["status"]);
    assert!(status.code == 1 && status.stdout.contains(&format!("‼ {address} udp")), "{}", status.stdout);
    let problem = format!("PD-T06  upstream {address}: REFUSED 3 of 3 replies");
    assert!(status.stdout.contains(&problem), "{}", status.stdout);
    drop(refusing);
}

/// Upstream whose replies the test sends.
struct Scripted(UdpSocket);

impl Scripted {
    fn new() -> Scripted {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Scripted(socket)
    }

    /// Receives a query, and replies to it after some replies with other message IDs.
    fn reply_after(&self, wrong: u16) -> Vec<u8> {
        let mut query = [0; 512];
        let (length, from) = self.0.recv_from(&mut query).expect("a query");
        let mut reply = query[..length].to_vec();
        // QR, RA and one address for an hour.
        (reply[2], reply[3], reply[7]) = (0x81, 0x80, 1);
        let question_end = wire::question_end(&reply).unwrap();
        reply.truncate(question_end);
        reply[10..12].fill(0);
        reply.extend_from_slice(b"\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02\x01");
        let id = u16::from_be_bytes([reply[0], reply[1]]);
        for number in 1..=wrong {
            let mut forged = reply.clone();
            forged[..2].copy_from_slice(&id.wrapping_add(number).to_be_bytes());
            self.0.send_to(&forged, from).unwrap();
        }
        self.0.send_to(&reply, from).unwrap();
        reply
    }
}

#[test]
fn replies_that_match_no_query_are_counted_and_empty_the_cache_at_the_threshold() {
    const WRONG: u16 = 110;
    let upstream = Scripted::new();
    let address = upstream.0.local_addr().unwrap();
    let line = format!("forward . {address} {{\n unwanted_reply_threshold 200\n }}");
    let mut controlled = Controlled::start(&format!("prometheus localhost:0\n    cache 300\n    {line}"));
    let metrics = controlled.server.address_of("localhost:0 (/metrics)");
    let mut ask = |name: &str, asked: &[u16]| {
        controlled.client.send(name, Type::A);
        asked.iter().for_each(|wrong| _ = upstream.reply_after(*wrong));
        assert_eq!(controlled.client.receive_any().unwrap().addresses().len(), 1, "{name}");
    };
    ask("a.test.", &[0]);
    ask("a.test.", &[]);
    ask("b.test.", &[WRONG]);
    ask("a.test.", &[]);
    let status = controlled.socket.run(&["status"]);
    let problem = format!("PD-U06  upstream {address}: {WRONG} replies match no query");
    assert!(status.code == 1 && status.stdout.contains(&problem), "{}", status.stdout);

    // The reply that follows the last guess may be forged. The query is sent once more.
    ask("c.test.", &[WRONG, 0]);
    controlled.server.wait_for(&format!(
        "many replies from upstream {address} match no query, possibly an attempt to forge one: 2 cached answers \
         dropped"
    ));
    ask("a.test.", &[0]);
    let (_, text) = page(metrics, "/metrics").unwrap();
    let labels = format!("proxy_name=\"forward\",to=\"{address}\",reason=\"id\"");
    let series = format!("portolan_upstream_unwanted_replies_total{{{labels}}} {}\n", 2 * WRONG);
    assert!(text.contains(&series), "{text}");
}

#[test]
fn status_and_explain_name_an_upstream_that_loses_queries() {
    let (nobody, upstream) = (UdpSocket::bind("127.0.0.1:0").unwrap(), Upstream::start(7));
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    // Without health checks, it stays up.
    let directives = format!("forward . {address} {} {{\n policy sequential\n max_fails 0\n }}", upstream.address);
    let mut controlled = Controlled::start(&directives);
    for name in ["a.test.", "b.test."] {
        assert_eq!(controlled.client.ask(name, Type::A).unwrap().rcode(), Rcode::NOERROR);
    }
    let lossy = &controlled.socket.status()["upstreams"][0];
    assert_eq!((&lossy["state"], &lossy["failures"], &lossy["replies"]), (&"up".into(), &2.into(), &0.into()));
    let status = controlled.socket.run(&["status"]);
    assert_eq!(status.code, 1, "{}", status.stdout);
    for part in [
        format!("‼ {address} udp no replies, 2 of 2 failed, the last "),
        format!("PD-U02  upstream {address}: 2 of 2 failed, the last "),
        format!("✓ {} udp p99", upstream.address),
    ] {
        assert!(status.stdout.contains(&part), "{part}: {}", status.stdout);
    }
    // The second upstream is asked after the first one.
    let by_upstream = controlled.socket.run(&["top", "--once", "--json", "--by", "upstream"]);
    let top: Value = serde_json::from_str(&by_upstream.stdout).expect("JSON");
    assert_eq!(
        (&top["rows"][0]["key"], &top["rows"][0]["counts"]["queries"]),
        (&upstream.address.to_string().into(), &2.into())
    );
    assert_eq!(top["rows"][0]["counts"]["p99_seconds"], Value::Null, "the first upstream took the time: {top}");
    let explained = controlled.socket.run(&["explain", "a.test."]).stdout;
    assert!(explained.contains(&format!("{address}  udp  up, last failed query ")), "{explained}");
    assert!(explained.contains("connection refused"), "{explained}");
}

#[test]
fn status_shows_the_view_of_the_cluster() {
    let api = FakeApi::with_shop();
    let directives = format!("ready localhost:0\n    kubernetes cluster.local {{\n endpoint {}\n }}", api.url());
    let controlled = Controlled::start(&directives);
    let waited = controlled.socket.run(&["status", "--wait", "20s"]);
    assert_eq!(waited.code, 0, "{}", waited.stdout);
    let cluster = &controlled.socket.status()["clusters"][0];
    assert_eq!((&cluster["synced"], &cluster["source"]), (&Value::from(true), &Value::from(api.url())));
    assert!(cluster["services"].as_u64().unwrap() > 0 && cluster["endpoints"].as_u64().unwrap() > 0, "{cluster}");
    let names: Vec<&str> =
        cluster["resources"].as_array().unwrap().iter().map(|resource| resource["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["namespaces", "services", "endpointslices"]);
    assert!(cluster["age_seconds"].as_f64().unwrap() < 60.0);

    api.fault("services", Fault::Status(403, None));
    api.drop_connections();
    wait_until("the watch fails", || controlled.socket.run(&["status"]).code == 1);
    let status = controlled.socket.run(&["status"]);
    assert!(status.stdout.contains("PD-R01  watch of services has been failing for"), "{}", status.stdout);
    assert_eq!(controlled.socket.status()["clusters"][0]["resources"][1]["state"], "failing");
    api.heal("services");
    wait_until("it works", || controlled.socket.run(&["status"]).code == 0);
}

#[test]
fn status_of_a_server_that_is_not_ready_is_trouble() {
    let api = FakeApi::with_shop();
    api.down();
    let controlled = Controlled::start(&format!("kubernetes cluster.local {{\n endpoint {}\n }}", api.url()));
    let status = controlled.socket.run(&["status", "--wait", "300ms"]);
    assert_eq!(status.code, 1, "{}", status.stdout);
    assert!(status.stdout.contains("✗ not ready: kubernetes"), "{}", status.stdout);
}

#[test]
fn shows_and_flushes_cached_answers() {
    let upstream = Upstream::start(7);
    let mut controlled = Controlled::start(&forwarding(upstream.address));
    let names = ["a.test.", "www.a.test.", "b.test."];
    names.iter().for_each(|name| drop(controlled.client.ask(name, Type::A)));
    let Controlled { socket, .. } = &controlled;

    let cached = socket.json(&["cache", "get", "WWW.a.test"]);
    let entry = &cached["entries"][0];
    assert_eq!((&entry["qtype"], &entry["rcode"], &entry["ttl"]), (&"A".into(), &"NOERROR".into(), &300.into()));
    let record = entry["records"][0].as_str().unwrap();
    assert!(record.starts_with("www.a.test. ") && record.ends_with(" IN A 192.0.2.7"), "{record}");
    assert_eq!(socket.run(&["cache", "get", "www.a.test", "A"]).code, 0);
    let none = socket.run(&["cache", "get", "www.a.test", "AAAA"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, "www.a.test. is not in the cache\n"));

    let removed = |words: &[&str]| socket.json(words)["removed"].as_u64().unwrap();
    assert_eq!(removed(&["cache", "flush", "test."]), 0);
    assert_eq!(removed(&["cache", "flush", "--below", "a.test"]), 2);
    assert_eq!(removed(&["cache", "flush", "B.TEST."]), 1);
    let asked = upstream.asked();
    names.iter().for_each(|name| drop(controlled.client.ask(name, Type::A)));
    assert_eq!(upstream.asked(), asked + 3);
    let flushed = controlled.socket.run(&["cache", "flush", "--all"]);
    assert_eq!((flushed.code, flushed.stdout.as_str()), (0, "removed 3 entries from 1 cache\n"));
    let user = net::own_user();
    controlled.server.wait_for(&format!("3 entries removed by a request of user {user} over the control socket"));

    for (words, reason) in [
        (&["cache", "get", "a..b"][..], "`a..b` is not a domain name"),
        (&["cache", "get", "a.test", "NOTYPE"], "`NOTYPE` is not a record type"),
    ] {
        let refused = controlled.socket.run(words);
        assert!(refused.code == 2 && refused.stderr.contains(reason), "{}", refused.stderr);
    }
}

#[test]
fn reload_waits_for_the_outcome() {
    let controlled = Controlled::start("whoami");
    let Controlled { socket, folder, .. } = &controlled;
    let before = socket.status()["corefile"]["hash"].clone();
    folder.write("Corefile", &corefile("whoami\n    nsid x"));
    let reloaded = socket.run(&["reload"]);
    assert_eq!(reloaded.code, 0, "{}{}", reloaded.stdout, reloaded.stderr);
    assert!(reloaded.stdout.starts_with("✓ generation 2, sha "), "{}", reloaded.stdout);
    assert_ne!(socket.status()["corefile"]["hash"], before);

    folder.write("Corefile", &corefile("whoamy"));
    let refused = socket.run(&["reload"]);
    assert_eq!(refused.code, 1, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stdout.contains("unknown directive `whoamy`"), "{}", refused.stdout);
    let status = socket.run(&["status"]);
    assert!(status.code == 1 && status.stdout.contains("PD-C03  the last reload failed"), "{}", status.stdout);
    assert!(status.stdout.contains("; did you mean `whoami`?"), "{}", status.stdout);
    assert!(status.stdout.contains("✗ generation 2"), "{}", status.stdout);

    folder.write("Corefile", &corefile("whoami"));
    assert_eq!(socket.run(&["reload"]).code, 0);
    assert_eq!(socket.run(&["status"]).code, 0);
}

#[test]
fn reload_moves_and_closes_the_socket() {
    let mut controlled = Controlled::start("whoami");
    let path = controlled.folder.path().join("control.sock").display().to_string();
    controlled.folder.write("Corefile", &corefile(&format!("whoami\n    control {path}")));
    assert_eq!(controlled.socket.run(&["reload"]).code, 0);
    controlled.server.wait_for(&format!("user {} requests a reload over the control socket", net::own_user()));
    let moved = ControlSocket::of(&mut controlled.server);
    assert_eq!(moved.0, path);
    assert_eq!(moved.run(&["status"]).code, 0);
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    wait_until("the old one is closed", || controlled.socket.run(&["status"]).code == 2);

    controlled.folder.write("Corefile", &corefile("whoami\n    control off"));
    assert_eq!(moved.run(&["reload"]).code, 0);
    wait_until("it is closed", || moved.run(&["status"]).code == 2);
}

#[test]
fn changes_a_log_level_for_some_time() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    drop(silent);
    let mut controlled = Controlled::start(&format!("forward . {address}"));
    let set = controlled.socket.run(&["loglevel", "forward=debug", "--for", "1m"]);
    assert_eq!(set.code, 0, "{}", set.stderr);
    assert!(set.stdout.starts_with("forward  debug  1 m left\n"), "{}", set.stdout);
    let user = net::own_user();
    controlled.server.wait_for(&format!("user {user} sets the log level of forward to debug for 60 s"));
    controlled.client.ask("a.test.", Type::A);
    controlled.server.wait_for("[DEBUG] plugin/forward: ");
    assert_eq!(controlled.socket.json(&["loglevel"])["temporary"][0]["plugin"], "forward");
    assert_eq!(controlled.socket.run(&["loglevel", "forward=info", "--for", "0s"]).code, 0);
    assert_eq!(controlled.socket.json(&["loglevel"])["temporary"], Value::Array(Vec::new()));

    for (words, reason) in [
        (["loglevel", "forwards=debug", "--for", "1s"], "there is no plugin `forwards`; did you mean `forward`?"),
        (["loglevel", "forward=debug", "--for", "25h"], "the maximum is 86400 s (a day)"),
        (["loglevel", "forward=loud", "--for", "1s"], "expected PLUGIN=LEVEL"),
    ] {
        let refused = controlled.socket.run(&words);
        assert!(refused.code == 2 && refused.stderr.contains(reason), "{}", refused.stderr);
    }
}

#[test]
fn shows_queries_that_wait_for_an_upstream() {
    // Nobody answers.
    let upstream = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    let mut controlled = Controlled::start(&format!("forward . {address}"));
    let none = controlled.socket.run(&["requests"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, "no query waits for an upstream\n"));
    controlled.client.send("slow.test.", Type::AAAA);
    controlled.client.send("slow.test.", Type::AAAA);
    let mut requests = Value::Null;
    wait_until("both wait", || {
        requests = controlled.socket.json(&["requests"]);
        requests["oldest"][0]["waiting"] == 2
    });
    let exchange = &requests["oldest"][0];
    assert_eq!((&exchange["name"], &exchange["qtype"]), (&"slow.test.".into(), &"AAAA".into()));
    assert_eq!((&exchange["plugin"], &exchange["client"]), (&"forward".into(), &"127.0.0.1".into()));
    assert_eq!(exchange["upstream"], address.to_string());
    wait_until("it is slow", || controlled.socket.run(&["requests"]).code == 1);
    let text = controlled.socket.run(&["requests"]).stdout;
    assert!(text.contains(&format!("slow.test.  forward {address}  127.0.0.1 and 1 more")), "{text}");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let mut controlled = Controlled::start("forward . 127.0.0.1:1");
    assert_eq!(controlled.client.ask("a.test.", Type::A).unwrap().rcode(), Rcode::SERVFAIL);
    for words in [
        &["status"][..],
        &["status", "--json"],
        &["requests"],
        &["ready"],
        &["explain", "a.test"],
        &["loglevel"],
        &["top", "--once"],
        &["tail", "--last", "1"],
        &["report"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let ran = controlled.socket.run_into(words, full);
        let expected = "cannot write to standard output: no space left on device\n";
        assert_eq!((ran.code, ran.stderr.as_str()), (2, expected), "{words:?}");
        // A reader that has seen enough is no error.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ran = controlled.socket.run_into(words, std::fs::File::from(std::os::fd::OwnedFd::from(writer)));
        assert!(ran.code != 2 && ran.stderr.is_empty(), "{words:?}: {} {}", ran.code, ran.stderr);
    }
    let ran = controlled.socket.run(&["report", "--output", "/nonexistent/report"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (2, "cannot write /nonexistent/report: no such file or directory\n"));
}

#[test]
fn report_has_no_secrets() {
    let directives =
        "prometheus localhost:0\n    tsig {\n secret key. NoTCJU+DMqFWywaPyxSijrDEA/eC3nK0xi3AMEZuPVk=\n }\n    whoami";
    let controlled = Controlled::start(directives);
    let archive = controlled.socket.bytes(&["report"]);
    let mut text = String::new();
    flate2::read::GzDecoder::new(&*archive).read_to_string(&mut text).unwrap();
    for part in
        ["portolan-report/version.txt", "✓ serving", "\"serving\": \"ready\"", "coredns_build_info", "listening on"]
    {
        assert!(text.contains(part), "{part}");
    }
    assert!(text.contains("secret [removed] [removed]") && !text.contains("NoTCJU"));

    let file = controlled.folder.path().join("report.tar.gz");
    let written = controlled.socket.run(&["report", "--output", &file.display().to_string()]);
    let size = std::fs::metadata(&file).unwrap().len();
    assert_eq!(written.stdout, format!("wrote {size} bytes to {}\n", file.display()), "{}", written.stderr);
    let listed = std::process::Command::new("tar").arg("tzf").arg(&file).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("portolan-report/Corefile\n") && listed.contains("portolan-report/log.txt\n"), "{listed}");
}

#[test]
fn no_place_shows_what_may_be_secret() {
    // Nothing listens on port 1, so the log has the URL in an error.
    let directives = "errors\n    pprof 127.0.0.1:0\n    trace zipkin http://127.0.0.1:1/api?apikey=S3CR3T\n    \
                      on startup true --token=S3CR3T\n    whoami";
    let mut controlled = Controlled::start(directives);
    assert!(controlled.client.ask("a.test.", Type::A).is_some());
    let told = controlled.server.wait_for("connection refused");
    assert!(told.contains("http://127.0.0.1:1/api?[removed]: connection refused"), "{told}");
    // A reload that fails shows lines of the Corefile.
    let broken = corefile(&directives.replace("whoami", "whoami --password=S3CR3T"));
    controlled.folder.write("Corefile", &broken);
    let reloaded = controlled.socket.run(&["reload"]);
    assert!(reloaded.code == 1 && !reloaded.stdout.contains("S3CR3T"), "{}", reloaded.stdout);
    let failed = controlled.server.wait_for("Restart failed");
    assert!(!failed.contains("S3CR3T"), "{failed}");
    for words in [&["status"][..], &["status", "--json"], &["explain", "a.test."], &["doctor", "--json"]] {
        let ran = controlled.socket.run(words);
        assert!(!format!("{}{}", ran.stdout, ran.stderr).contains("S3CR3T"), "{words:?}: {}", ran.stdout);
    }
    for path in ["/", "/v1/status", "/v1/doctor", "/v1/events?last=50"] {
        assert!(!controlled.socket.request("GET", path, "").1.contains("S3CR3T"), "{path}");
    }
    let mut text = String::new();
    let archive = controlled.socket.bytes(&["report"]);
    flate2::read::GzDecoder::new(&*archive).read_to_string(&mut text).unwrap();
    assert!(text.contains("connection refused") && !text.contains("S3CR3T"), "{text}");
}

/// Directives with a mistake near a secret, and a part of the message about it.
const MISTAKES: [(&str, &str); 7] = [
    ("tsig {\nsecret kea. S3CR3T-K\n}", "`[removed]` is not a secret"),
    ("tsig {\nsecret S3CR3T\n}", "`secret` takes 2 arguments, but 1 was given"),
    ("tsig {\nsecret S3CR3T\n}", "usage: secret NAME KEY"),
    ("tsig {\nsekret kea. S3CR3T\n}", "sekret kea. [removed]"),
    ("etcd {\npasword S3CR3T S3CR3T\n}", "valid properties: path, endpoint, credentials, tls"),
    ("forward . https://bob:S3CR3T@127.0.0.1", "`https://[removed]@127.0.0.1`: `[removed]@127.0.0.1` is not"),
    ("on startup curl -H \"S3CR3T\" \"S3CR3T", "on startup curl [removed] [removed]"),
];

#[test]
fn no_message_about_a_corefile_shows_its_secrets() {
    let controlled = Controlled::start("whoami");
    for (directives, expected) in MISTAKES {
        let path = controlled.folder.write("Corefile", &corefile(directives));
        let mut started = Server::start(&path);
        let lines: Vec<String> = std::iter::from_fn(|| started.next_line()).collect();
        let reloaded = controlled.socket.run(&["reload"]);
        for text in [lines.join("\n"), reloaded.stdout] {
            assert!(text.contains(expected) && !text.contains("S3CR3T"), "{directives}: {text}");
        }
        for path in ["/", "/v1/status", "/v1/doctor"] {
            assert!(!controlled.socket.request("GET", path, "").1.contains("S3CR3T"), "{path}");
        }
    }
    let mut text = String::new();
    let archive = controlled.socket.bytes(&["report"]);
    flate2::read::GzDecoder::new(&*archive).read_to_string(&mut text).unwrap();
    assert!(text.contains("Restart failed") && !text.contains("S3CR3T"), "{text}");
}

#[test]
fn every_endpoint_is_in_the_openapi_document() {
    let controlled = Controlled::start("whoami");
    let (status, document) = controlled.socket.request("GET", "/v1/openapi.json", "");
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!((status, document["openapi"].as_str()), (200, Some("3.1.0")));
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let (status, body) = controlled.socket.request(&method.to_uppercase(), path, "");
            assert!(matches!(status, 200 | 400), "{method} {path}: {status} {body}");
        }
    }
}

#[test]
fn refuses_invalid_requests_with_a_reason() {
    let controlled = Controlled::start("cache\n    whoami");
    let long = "x".repeat(70_000);
    for (method, path, body, status, reason) in [
        ("GET", "/v1/nothing", "", 404, "there is no such path"),
        ("DELETE", "/v1/status", "", 405, "does not have this method"),
        ("GET", "/v1/cache", "", 400, "`name` is missing"),
        ("GET", "/v1/cache?name=a.test&typ=A", "", 400, "unknown parameter `typ`"),
        ("POST", "/v1/cache/flush", "", 400, "the request body is invalid"),
        ("POST", "/v1/cache/flush", r#"{"scope":"name"}"#, 400, "`name` is missing"),
        ("POST", "/v1/cache/flush", r#"{"scope":"all","name":"a."}"#, 400, "the scope `all` takes no name"),
        ("POST", "/v1/cache/flush", r#"{"scope":"all","more":1}"#, 400, "unknown field `more`"),
        ("POST", "/v1/log", long.as_str(), 413, "more than 65536 bytes"),
    ] {
        let (got, body) = controlled.socket.request(method, path, body);
        assert_eq!((got, body.contains(reason)), (status, true), "{method} {path}: {body}");
    }
    assert_eq!(controlled.socket.run(&["status"]).code, 0);
}
