//! The log with a slow or stopped reader, and its JSON format.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use crate::support::{Client, Folder, PATIENCE, Server, page, wait_until};
use wire::{Rcode, Type};

/// Corefile that logs about 2 KiB per query, so that a few hundred queries fill pipe and queue.
const COREFILE: &str = ".:0 {
    log . \"{name} {name} {name} {name} {name} {name} {name} {name}\"
    errors
    hosts {
        192.0.2.1 LONG
    }
    prometheus localhost:0
}
";
const QUERIES: u16 = 1500;

fn long_name() -> String {
    format!("{}test.", format!("{}.", "a".repeat(60)).repeat(4))
}

/// Server whose output is not read after the first lines.
struct Stalled {
    child: Child,
    output: BufReader<ChildStdout>,
    dns: SocketAddr,
    metrics: SocketAddr,
}

impl Stalled {
    fn start(corefile: &Path) -> Stalled {
        let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
            .arg("-conf")
            .arg(corefile)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut output = BufReader::new(child.stdout.take().expect("its output"));
        let (mut dns, mut metrics) = (None, None);
        while dns.is_none() || metrics.is_none() {
            let mut line = String::new();
            assert!(output.read_line(&mut line).expect("a line") > 0, "it ended");
            let Some((_, rest)) = line.split_once("listening on ") else { continue };
            let (address, name) = rest.trim_end().split_once(" for ").expect("its name");
            let port = address.parse::<SocketAddr>().expect("an address").port();
            let local = Some(SocketAddr::from(([127, 0, 0, 1], port)));
            *if name.starts_with("dns://") { &mut dns } else { &mut metrics } = local;
        }
        Stalled { child, output, dns: dns.unwrap(), metrics: metrics.unwrap() }
    }

    /// Sends queries until the pipe and the queue are full. Panics if one is not answered.
    fn fill(&self) {
        let mut client = Client::new(self.dns);
        for number in 0..QUERIES {
            let answer = client.ask(&long_name(), Type::A);
            assert_eq!(answer.map(|answer| answer.rcode()), Some(Rcode::NOERROR), "query {number}");
        }
    }

    fn dropped(&self) -> u64 {
        let text = page(self.metrics, "/metrics").expect("the page").1;
        let value = text.lines().find_map(|line| line.strip_prefix("portolan_log_lines_dropped_total "));
        value.and_then(|value| value.parse().ok()).expect("the counter")
    }

    fn terminate(&self) {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn corefile(folder: &Folder) -> std::path::PathBuf {
    folder.write("Corefile", &COREFILE.replace("LONG", &long_name()))
}

#[test]
fn answers_and_exits_in_time_while_nobody_reads_the_log() {
    let folder = Folder::new("stalled");
    let mut server = Stalled::start(&corefile(&folder));
    assert_eq!(server.dropped(), 0);
    server.fill();
    assert!(server.dropped() > 0, "the queue is bounded");
    server.terminate();
    wait_until("the process has ended", || server.child.try_wait().expect("its status").is_some());
}

#[test]
fn reports_dropped_lines_when_the_log_is_read_again() {
    let folder = Folder::new("resumed");
    let mut server = Stalled::start(&corefile(&folder));
    server.fill();
    let (end, mut logged, mut line) = (Instant::now() + PATIENCE, 0, String::new());
    let dropped = loop {
        line.clear();
        assert!(server.output.read_line(&mut line).expect("a line") > 0 && Instant::now() < end);
        logged += u64::from(line.contains(&long_name()));
        if let Some(rest) = line.strip_prefix("[WARNING] ").filter(|rest| rest.contains("log lines were dropped")) {
            break rest.split(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a count");
        }
    };
    assert_eq!(logged + dropped, u64::from(QUERIES));
    assert_eq!(server.dropped(), dropped);
}

/// Checks that the replacements of other programs have the flag too.
#[test]
fn commands_write_json_lines() {
    let folder = Folder::new("json-commands");
    let template = folder.write("Corefile.base", ".:0 {\n whoami\n}\n").display().to_string();
    let commands: [&[&str]; 2] = [
        &["kube-dns", "--dns-port=0", "--healthz-port=0", "--prometheus-port=0", "--v=2", "--log-format=json"],
        &[
            "node",
            "-localip=127.0.0.1",
            "-setupinterface=false",
            "-setupiptables=false",
            "-interfacename=portolan-json",
            "-health-port=8080",
            "-metrics-listen-address=127.0.0.1:0",
            "-v=2",
            "-log-format=json",
            "-basecorefile",
            &template,
        ],
    ];
    for command in commands {
        let words: Vec<&OsStr> = command.iter().map(OsStr::new).collect();
        let line = Server::start_with(&words).wait_for("does nothing here");
        let event: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(event["level"], "WARN", "{line}");
        let wrong = Command::new(env!("CARGO_BIN_EXE_portolan")).args(&words).arg("-log-format=xml").output();
        let wrong = wrong.expect("the binary starts");
        let text = String::from_utf8_lossy(&wrong.stderr);
        assert_eq!((wrong.status.code(), text.trim()), (Some(2), "--log-format: 'xml' is not `text` or `json`"));
    }
}

#[test]
fn writes_json_lines() {
    let folder = Folder::new("json");
    let path = folder.write("Corefile", ".:0 {\n errors\n log\n forward . 127.0.0.1:1\n}\n");
    let mut server = Server::start_with(&["-conf".as_ref(), path.as_os_str(), "-log-format".as_ref(), "json".as_ref()]);
    let line = server.wait_for("listening on ");
    let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).expect("JSON");
    let message = read(&line)["msg"].as_str().expect("a message").to_owned();
    let port = message.rsplit_once(" for ").and_then(|(rest, _)| rest.rsplit_once(':')).expect("a port").1.to_owned();
    let mut client = Client::new(SocketAddr::from(([127, 0, 0, 1], port.parse().expect("a port"))));
    for _ in 0..2 {
        assert_eq!(client.ask("one.test.", Type::A).map(|answer| answer.rcode()), Some(Rcode::SERVFAIL));
    }
    let failed = read(&server.wait_for("\"errors\""));
    assert_eq!((&failed["level"], &failed["plugin"]), (&"ERROR".into(), &"errors".into()));
    assert!(failed["msg"].as_str().is_some_and(|text| text.starts_with("2 one.test. A: ")), "{failed}");
    assert!(failed["time"].as_str().is_some_and(|time| time.ends_with('Z')), "{failed}");
    let line = server.wait_for("\"plugin\":\"log\"");
    let logged = read(&line);
    // The keys of CoreDNS 1.15.0, in its order. The line itself is what the format of *log* says.
    let keys = [
        "time",
        "level",
        "msg",
        "plugin",
        "client_ip",
        "client_port",
        "qname",
        "qtype",
        "qclass",
        "protocol",
        "id",
        "opcode",
        "request_size",
        "dnssec_ok",
        "bufsize",
        "rcode",
        "response_size",
        "duration_seconds",
    ];
    let places: Vec<_> = keys.iter().map(|key| line.find(&format!("\"{key}\":"))).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{line}");
    assert_eq!((&logged["level"], &logged["qname"]), (&"INFO".into(), &"one.test.".into()));
    assert_eq!((&logged["rcode"], &logged["protocol"]), (&"SERVFAIL".into(), &"udp".into()));
    assert!(
        logged["client_port"].is_u64() && logged["duration_seconds"].is_number() && logged["dnssec_ok"].is_boolean()
    );
}

#[test]
fn a_failed_start_writes_a_fatal_record() {
    let folder = Folder::new("json-fatal");
    let path = folder.write("Corefile", ".:0 {\n whoamix\n}\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    let output = command.arg("-conf").arg(path).arg("-log-format=json").output().expect("the server runs");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    let record: serde_json::Value = serde_json::from_str(text.trim_end()).expect("one JSON object");
    assert_eq!((&record["level"], output.status.code()), (&"FATAL".into(), Some(1)));
    assert!(record["msg"].as_str().is_some_and(|text| text.contains("unknown directive `whoamix`")), "{record}");
}
