//! Forwarding to Knot DNS and to Unbound over UDP and TCP: while they run, while they are down, and after their
//! restart. If one is not installed, its test prints a message and is skipped.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::support::{Answer, Client, Folder, PATIENCE, Server, exchange_framed, page, query, wait_until};
use testkit::ports::free_port;
use wire::{Rcode, Type};

/// Name server of another project.
#[derive(Clone, Copy)]
struct Program {
    name: &'static str,
    /// Writes its configuration for a folder and a port.
    configure: fn(&Folder, u16) -> std::path::PathBuf,
    flags: &'static [&'static str],
}

const KNOT: Program = Program { name: "knotd", configure: knot_configuration, flags: &["-c"] };
const UNBOUND: Program = Program { name: "unbound", configure: unbound_configuration, flags: &["-d", "-c"] };

/// Returns the records of `large.example.test.`, which do not fit in a datagram.
fn large() -> impl Iterator<Item = String> {
    (0..20).map(|number| format!("\"{number:0200}\""))
}

fn knot_configuration(folder: &Folder, port: u16) -> std::path::PathBuf {
    let mut zone = "$ORIGIN example.test.\n@ 3600 SOA ns host 1 2 3 4 30\n@ NS ns\nns A 127.0.0.1\n".to_owned();
    zone.push_str("www 30 A 192.0.2.1\nalias 30 CNAME www\n");
    large().for_each(|text| zone.push_str(&format!("large 30 TXT {text}\n")));
    folder.write("example.test.zone", &zone);
    let path = folder.path().display();
    folder.write(
        "knot.conf",
        &format!(
            "server:\n  rundir: \"{path}\"\n  listen: 127.0.0.1@{port}\ndatabase:\n  storage: \"{path}\"\nlog:\n  - \
             target: stderr\n    any: error\nzone:\n  - domain: example.test\n    storage: \"{path}\"\n    file: \
             example.test.zone\n    zonefile-sync: -1\n    journal-content: none\n"
        ),
    )
}

fn unbound_configuration(folder: &Folder, port: u16) -> std::path::PathBuf {
    let path = folder.path().display();
    let mut text = format!(
        "server:\n interface: 127.0.0.1@{port}\n directory: \"{path}\"\n chroot: \"\"\n username: \"\"\n pidfile: \
         \"\"\n use-syslog: no\n access-control: 127.0.0.0/8 allow\n num-threads: 1\n local-zone: \"example.test.\" \
         static\n local-data: \"example.test. 3600 IN SOA ns.example.test. host.example.test. 1 2 3 4 30\"\n \
         local-data: \"www.example.test. 30 IN A 192.0.2.1\"\n"
    );
    large().for_each(|record| text.push_str(&format!(" local-data: 'large.example.test. 30 IN TXT {record}'\n")));
    text.push_str("remote-control:\n control-enable: no\n");
    folder.write("unbound.conf", &text)
}

/// Running name server, which is killed on drop.
struct Upstream(Child);

impl Drop for Upstream {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Program {
    fn is_installed(self) -> bool {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
        let found = folders.map(|folder| folder.join(self.name)).any(|path| path.is_file());
        if !found {
            crate::support::skip(format_args!("`{}` is not installed: forwarding to it is not tried", self.name));
        }
        found
    }

    /// Starts it and waits until it answers.
    fn start(self, folder: &Folder, port: u16) -> Upstream {
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin";
        let child = Command::new(self.name)
            .env("PATH", path)
            .args(self.flags)
            .arg((self.configure)(folder, port))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let upstream = Upstream(child.expect("it starts"));
        let mut client = Client::new(SocketAddr::from(([127, 0, 0, 1], port)));
        wait_until("the upstream answers", || client.ask("www.example.test.", Type::A).is_some());
        upstream
    }
}

fn ask_over_tcp(server: SocketAddr, name: &str, qtype: Type) -> Answer {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    exchange_framed(&mut stream, &query(1, name, qtype))
}

/// Sends a query over UDP, with a timeout as long as that of forwarding.
fn ask(client: &mut Client, name: &str) -> Answer {
    let end = Instant::now() + PATIENCE;
    loop {
        match client.ask(name, Type::A) {
            Some(answer) => return answer,
            None => assert!(Instant::now() < end, "no answer for {name}"),
        }
    }
}

fn battery(program: Program) {
    if !program.is_installed() {
        return;
    }
    let folder = Folder::new(program.name);
    let port = free_port();
    let upstream = program.start(&folder, port);
    let corefile = format!(
        ".:0 {{\n errors\n prometheus localhost:0\n forward . 127.0.0.1:{port} {{\n  health_check 50ms domain \
         example.test\n  max_fails 1\n  failfast_all_unhealthy_upstreams\n }}\n}}\n"
    );
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let metrics = server.address_of("localhost:0");
    let address = server.address_of("dns://:0");
    let mut client = Client::new(address);

    answers_pass(&mut client, address);
    drop(upstream);
    failures_are_said(&mut client, &mut server);
    wait_until("the health checks see it", || ask(&mut client, "c.example.test.").ede() == Some(22));
    let shown = page(metrics, "/metrics").unwrap().1;
    let failed = format!("coredns_proxy_healthcheck_failures_total{{proxy_name=\"forward\",to=\"127.0.0.1:{port}\"}}");
    let failed = shown.lines().find_map(|line| line.strip_prefix(&failed)).expect("failed checks are counted");
    assert!(failed.trim().parse::<f64>().unwrap() >= 2.0, "{failed}");

    let _upstream = program.start(&folder, port);
    wait_until("it is asked again", || ask(&mut client, "www.example.test.").rcode() == Rcode::NOERROR);
    answers_pass(&mut client, address);
}

fn answers_pass(client: &mut Client, server: SocketAddr) {
    let known = ["192.0.2.1".parse::<std::net::IpAddr>().unwrap()];
    assert_eq!(ask(client, "www.example.test.").addresses(), known);
    assert_eq!(ask_over_tcp(server, "www.example.test.", Type::A).addresses(), known);
    assert_eq!(ask(client, "none.example.test.").rcode(), Rcode::NXDOMAIN);
    let cut = client.ask("large.example.test.", Type::TXT).unwrap();
    assert!(cut.header().flags.truncated() && cut.rcode() == Rcode::NOERROR);
    let whole = ask_over_tcp(server, "large.example.test.", Type::TXT);
    assert!(!whole.header().flags.truncated());
    assert_eq!(usize::from(whole.header().answers), large().count());
}

/// Checks the answer when the upstream is down: the error from the kernel leads to an immediate SERVFAIL with a reason.
fn failures_are_said(client: &mut Client, server: &mut Server) {
    let failed = ask(client, "a.example.test.");
    assert_eq!((failed.rcode(), failed.ede()), (Rcode::SERVFAIL, Some(23)));
    let line = server.wait_for("[ERROR] plugin/errors: 2 a.example.test. A: read udp");
    assert!(line.ends_with(": connection refused"), "{line}");
}

#[test]
fn forwards_to_knot() {
    battery(KNOT);
}

#[test]
fn forwards_to_unbound() {
    battery(UNBOUND);
}

/// Checks that no query is lost if one of two upstreams stops.
#[test]
fn loses_no_query_if_one_of_two_upstreams_fails() {
    if !(KNOT.is_installed() && UNBOUND.is_installed()) {
        return;
    }
    let folders = [KNOT, UNBOUND].map(|program| Folder::new(program.name));
    let ports = [free_port(), free_port()];
    let first = KNOT.start(&folders[0], ports[0]);
    let _second = UNBOUND.start(&folders[1], ports[1]);
    let corefile = format!(".:0 {{\n forward . 127.0.0.1:{} 127.0.0.1:{}\n}}\n", ports[0], ports[1]);
    let mut server = Server::start(&folders[0].write("Corefile", &corefile));
    let mut client = Client::new(server.address_of("dns://:0"));
    let mut first = Some(first);
    for number in 0..60 {
        if number == 20 {
            first = None;
        }
        let answer = ask(&mut client, "www.example.test.");
        assert_eq!(answer.rcode(), Rcode::NOERROR, "question {number}, {}", first.is_some());
    }
}
