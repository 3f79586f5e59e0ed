//! Forwarding over TLS, HTTPS and QUIC: one server with a certificate, and others that forward queries to it.

use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Client, Folder, Server, certify, page, wait_until};
use testkit::ports::free_port;
use wire::{Rcode, Type};

const SCHEMES: [&str; 3] = ["tls", "https", "quic"];
const HOSTS: &str = "hosts /dev/null {\n192.0.2.1 www.example.org\n}";

fn path(folder: &Folder, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Starts a server that answers over all encrypted transports. Returns the address of each.
fn serve(folder: &Folder, lines: &str) -> (Server, Vec<(&'static str, SocketAddr)>) {
    let keys = SCHEMES.map(|scheme| format!("{scheme}://.:0")).join(" ");
    let (certificate, key) = (path(folder, "cert.pem"), path(folder, "key.pem"));
    let corefile = format!("{keys} {{\nbind 127.0.0.1\ntls {certificate} {key}\n{lines}\n}}\n");
    let mut server = Server::start(&folder.write("upstream", &corefile));
    let addresses = SCHEMES.map(|scheme| (scheme, server.address_of(&format!("{scheme}://127.0.0.1:0"))));
    (server, addresses.to_vec())
}

/// Server that forwards to an upstream.
struct Forwarding {
    server: Server,
    client: Client,
    metrics: SocketAddr,
}

/// Starts a server that forwards all queries to an upstream.
fn forward(folder: &Folder, to: &str, options: &str) -> Forwarding {
    let ca = path(folder, "ca.pem");
    let corefile = format!(
        ".:0 {{\nbind 127.0.0.1\nerrors\nprometheus localhost:0\nforward . {to} {{\ntls {ca}\nmax_fails 0\n{options}\n}}\n}}\n"
    );
    let name = to.replace(|c: char| !c.is_alphanumeric(), "-");
    let mut server = Server::start(&folder.write(&name, &corefile));
    let client = Client::new(server.address_of("dns://127.0.0.1:0"));
    let metrics = server.address_of("localhost:0");
    Forwarding { server, client, metrics }
}

fn metric(metrics: SocketAddr, series: &str) -> f64 {
    let shown = page(metrics, "/metrics").expect("metrics").1;
    let line = shown.lines().find_map(|line| line.strip_prefix(series));
    line.map_or(0.0, |value| value.trim().parse().expect("a number"))
}

fn expect_address(client: &mut Client) {
    let answer = client.ask("www.example.org.", Type::A).expect("an answer");
    assert_eq!((answer.rcode(), answer.ede()), (Rcode::NOERROR, None), "{:?}", answer.0);
    assert_eq!(answer.addresses(), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
}

#[test]
fn forwards_over_each_encrypted_transport_and_keeps_the_connection() {
    let folder = Folder::new("encrypted");
    certify(&folder, &["dns.example.org", "127.0.0.1"]);
    let (_upstream, addresses) = serve(&folder, HOSTS);
    for (scheme, to) in addresses {
        let methods: &[&str] = if scheme == "https" { &["", "doh_method GET"] } else { &[""] };
        for method in methods {
            let Forwarding { server: _server, mut client, metrics } =
                forward(&folder, &format!("{scheme}://{to}"), method);
            for _ in 0..20 {
                expect_address(&mut client);
            }
            let proto = if scheme == "tls" { "tcp-tls" } else { scheme };
            let labels = format!("{{proxy_name=\"forward\",to=\"{to}\",proto=\"{proto}\"}}");
            let count = |name| metric(metrics, &format!("coredns_proxy_conn_cache_{name}_total{labels}"));
            let (hits, misses) = (count("hits"), count("misses"));
            assert!(hits + misses == 20.0 && (1.0..=4.0).contains(&misses), "{scheme} {method}: {hits} and {misses}");
        }
    }
}

/// Starts a server over HTTPS that offers HTTP/3 at a port, and serves it there if `is_true`. Returns its address and
/// that of its metrics.
fn offer_http3(folder: &Folder, port: u16, is_true: bool) -> (Server, SocketAddr, SocketAddr) {
    let http3 = if is_true { format!(" https3://.:{port}") } else { String::new() };
    let (certificate, key) = (path(folder, "cert.pem"), path(folder, "key.pem"));
    let corefile = format!(
        "https://.:0{http3} {{\nbind 127.0.0.1\nprometheus localhost:0\ntls {certificate} {key}\n\
         https {{\nalt_svc {port}\n}}\n{HOSTS}\n}}\n"
    );
    let mut server = Server::start(&folder.write("upstream", &corefile));
    let address = server.address_of("https://127.0.0.1:0");
    let metrics = server.address_of("localhost:0");
    (server, address, metrics)
}

#[test]
fn asks_over_http3_after_the_upstream_has_offered_it() {
    let folder = Folder::new("encrypted-http3");
    certify(&folder, &["127.0.0.1"]);
    let port = free_port();
    let (_upstream, to, metrics) = offer_http3(&folder, port, true);
    let answered = |version: &str| {
        let series = format!("coredns_dns_{version}_responses_total{{server=\"{version}://127.0.0.1:");
        let shown = page(metrics, "/metrics").expect("metrics").1;
        let lines = shown.lines().filter(|line| line.starts_with(&series));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u32>().unwrap()).sum::<u32>()
    };
    // Each worker learns of the offer from its first response.
    let workers = std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap());
    for (options, is_enabled) in [("", false), ("http3", true), ("http3\ndoh_method GET", true)] {
        let before = (answered("https"), answered("https3"));
        let Forwarding { server: _server, mut client, .. } = forward(&folder, &format!("https://{to}"), options);
        (0..20).for_each(|_| expect_address(&mut client));
        let after = (answered("https"), answered("https3"));
        let (over_tcp, over_http3) = (after.0 - before.0, after.1 - before.1);
        let expected = if is_enabled { 1..=workers.min(20) } else { 20..=20 };
        assert!(over_tcp + over_http3 == 20 && expected.contains(&over_tcp), "{options}: {over_tcp}, {over_http3}");
    }
}

/// Checks an offer that does not hold: one query of each worker waits for half of its time, the next ones not at all.
#[test]
fn asks_over_tcp_if_the_offered_port_is_silent_or_closed() {
    let folder = Folder::new("encrypted-http3-silent");
    certify(&folder, &["127.0.0.1"]);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for port in [silent.local_addr().unwrap().port(), free_port()] {
        let (_upstream, to, _) = offer_http3(&folder, port, false);
        let options = "http3\nread_timeout 4s";
        let Forwarding { server: _server, mut client, .. } = forward(&folder, &format!("https://{to}"), options);
        let is_slow = (0..20).map(|_| {
            let start = Instant::now();
            expect_address(&mut client);
            start.elapsed() >= Duration::from_secs(2)
        });
        let slow = is_slow.filter(|is_slow| *is_slow).count();
        let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let is_silent = silent.local_addr().unwrap().port() == port;
        assert!(if is_silent { (1..=workers).contains(&slow) } else { slow == 0 }, "{slow} slow answers");
    }
    silent.set_nonblocking(true).unwrap();
    assert!(silent.recv(&mut [0; 2048]).is_ok_and(|length| length >= 1200), "an initial packet of QUIC");
}

/// Checks exact server names: the name after `%` or in `tls_servername`, or else the address.
#[test]
fn refuses_certificates_for_other_names() {
    let folder = Folder::new("encrypted-names");
    certify(&folder, &["dns.example.org"]);
    let (_upstream, addresses) = serve(&folder, HOSTS);
    for (scheme, to) in addresses {
        let named = format!("{scheme}://127.0.0.1%dns.example.org:{}", to.port());
        expect_address(&mut forward(&folder, &named, "").client);
        let unnamed = format!("{scheme}://{to}");
        expect_address(&mut forward(&folder, &unnamed, "tls_servername dns.example.org").client);
        for options in ["", "tls_servername dns.example.net"] {
            let Forwarding { mut server, mut client, .. } = forward(&folder, &unnamed, options);
            let answer = client.ask("www.example.org.", Type::A).expect("an answer");
            assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(23)), "{scheme}");
            let line = server.wait_for("[ERROR] plugin/errors: 2 www.example.org. A: dial");
            assert!(line.contains("tls: failed to verify certificate"), "{scheme}: {line}");
        }
    }
}

/// Checks that health checks use the transport of the upstream, and that no query is lost to a connection of an earlier
/// process.
#[test]
fn an_upstream_that_is_down_is_found_again_and_a_restart_costs_no_query() {
    let folder = Folder::new("encrypted-restart");
    certify(&folder, &["127.0.0.1"]);
    for scheme in SCHEMES {
        let (certificate, key) = (path(&folder, "cert.pem"), path(&folder, "key.pem"));
        let port = free_port();
        let corefile = format!("{scheme}://.:{port} {{\nbind 127.0.0.1\ntls {certificate} {key}\n{HOSTS}\n}}\n");
        let file = folder.write("upstream", &corefile);
        let start = || {
            let mut upstream = Server::start(&file);
            upstream.address_of(&format!("{scheme}://127.0.0.1:{port}"));
            upstream
        };
        let upstream = start();
        let options = "health_check 50ms\nmax_fails 1\nfailfast_all_unhealthy_upstreams";
        let Forwarding { mut server, mut client, .. } =
            forward(&folder, &format!("{scheme}://127.0.0.1:{port}"), options);
        expect_address(&mut client);
        drop(upstream);
        wait_until("the upstream is down", || {
            client.ask("www.example.org.", Type::A).is_some_and(|answer| answer.ede() == Some(22))
        });
        server.wait_for(&format!("upstream 127.0.0.1:{port} is down: 2 health checks failed: dial"));
        let upstream = start();
        server.wait_for(&format!("upstream 127.0.0.1:{port} is up again"));
        expect_address(&mut client);
        drop(upstream);
        let _upstream = start();
        expect_address(&mut client);
    }
}

/// Checks the lengths of queries: blocks of 128 bytes (RFC 8467 §4.1).
#[test]
fn pads_queries_over_encrypted_transports_if_configured() {
    let folder = Folder::new("encrypted-padded");
    certify(&folder, &["127.0.0.1"]);
    let (certificate, key) = (path(&folder, "cert.pem"), path(&folder, "key.pem"));
    let keys = format!("dns://.:0 {}", SCHEMES.map(|scheme| format!("{scheme}://.:0")).join(" "));
    let long = format!("{}.example.org", "long".repeat(15));
    let corefile = format!(
        "{keys} {{\nbind 127.0.0.1\ntls {certificate} {key} {{\npad_responses\n}}\nlog . \"query of {{size}} bytes\"\n\
         hosts /dev/null {{\n192.0.2.1 www.example.org {long}\n}}\n}}\n"
    );
    let mut upstream = Server::start(&folder.write("upstream", &corefile));
    let addresses =
        ["dns", "tls", "https", "quic"].map(|scheme| (scheme, upstream.address_of(&format!("{scheme}://127.0.0.1:0"))));
    for (scheme, to) in addresses {
        for options in ["", "pad_queries", "pad_queries\ndoh_method GET"] {
            let Forwarding { server: _server, mut client, .. } = forward(&folder, &format!("{scheme}://{to}"), options);
            for name in ["www.example.org", &long] {
                assert_eq!(client.ask(&format!("{name}."), Type::A).expect("an answer").addresses().len(), 1);
                let is_padded = upstream.wait_for("query of ").ends_with("query of 128 bytes");
                assert_eq!(is_padded, scheme != "dns" && !options.is_empty(), "{scheme} {options} {name}");
            }
        }
    }
}

/// Checks that a proxy in the environment gets no connection.
#[test]
fn ignores_proxies_of_the_environment() {
    let folder = Folder::new("encrypted-proxy");
    certify(&folder, &["127.0.0.1"]);
    let (_upstream, addresses) = serve(&folder, HOSTS);
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let url = format!("http://{}", proxy.local_addr().unwrap());
    let (_, to) = addresses.iter().find(|(scheme, _)| *scheme == "https").unwrap();
    let text = format!(".:0 {{\nbind 127.0.0.1\nforward . https://{to} {{\ntls {}\n}}\n}}\n", path(&folder, "ca.pem"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_portolan"));
    command.arg("-conf").arg(folder.write("Corefile", &text));
    for name in ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env(name, &url);
    }
    let mut server = Server::start_command(command);
    expect_address(&mut Client::new(server.address_of("dns://127.0.0.1:0")));
    assert!(proxy.accept().is_err(), "the proxy has no client");
}

/// Writes a certificate for 127.0.0.1 that has expired, and one that no authority has signed, each with its key.
fn certify_badly(folder: &Folder) {
    let authority = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    folder.write("ca.pem", &params.self_signed(&authority).unwrap().pem());
    let issuer = rcgen::Issuer::new(params, authority);
    for name in ["expired", "self-signed"] {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        let certificate = if name == "expired" {
            params.not_after = rcgen::date_time_ymd(2020, 2, 1);
            params.signed_by(&key, &issuer)
        } else {
            params.self_signed(&key)
        };
        folder.write(&format!("{name}.pem"), &certificate.unwrap().pem());
        folder.write(&format!("{name}.key"), &key.serialize_pem());
    }
}

#[test]
fn refuses_expired_and_self_signed_certificates() {
    let folder = Folder::new("encrypted-expired");
    certify_badly(&folder);
    for (name, error) in [("expired", "expired"), ("self-signed", "unknown authority")] {
        let keys = SCHEMES.map(|scheme| format!("{scheme}://.:0")).join(" ");
        let (certificate, key) = (path(&folder, &format!("{name}.pem")), path(&folder, &format!("{name}.key")));
        let corefile = format!("{keys} {{\nbind 127.0.0.1\ntls {certificate} {key}\n{HOSTS}\n}}\n");
        let mut upstream = Server::start(&folder.write("upstream", &corefile));
        for scheme in SCHEMES {
            let to = upstream.address_of(&format!("{scheme}://127.0.0.1:0"));
            let Forwarding { mut server, mut client, .. } = forward(&folder, &format!("{scheme}://{to}"), "");
            let answer = client.ask("www.example.org.", Type::A).expect("an answer");
            assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(23)), "{scheme} {name}");
            let line = server.wait_for("[ERROR] plugin/errors: 2 www.example.org. A: dial");
            assert!(line.contains("tls: failed to verify certificate") && line.contains(error), "{scheme}: {line}");
        }
    }
}

/// Name server of another project, which is killed on drop.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a command that Debian installs in `/usr/sbin`.
fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/usr/local/sbin");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Prints that a test is skipped. Not with a macro, because the test harness captures the output of macros.
fn skip(why: &str) {
    crate::support::skip(format_args!("{why}: forwarding to it over encrypted transports is not tried"));
}

/// Checks answers of a real server, which has these records: one address, and an answer of almost 4,000 bytes.
fn expect_answers(folder: &Folder, to: &str) {
    let Forwarding { server: _server, mut client, .. } = forward(folder, to, "");
    wait_until("the upstream answers", || {
        client.ask("www.example.test.", Type::A).is_some_and(|answer| answer.rcode() == Rcode::NOERROR)
    });
    let known = ["192.0.2.1".parse::<IpAddr>().unwrap()];
    assert_eq!(client.ask("www.example.test.", Type::A).unwrap().addresses(), known, "{to}");
    assert_eq!(client.ask("none.example.test.", Type::A).unwrap().rcode(), Rcode::NXDOMAIN, "{to}");
    let cut = client.ask("large.example.test.", Type::TXT).unwrap();
    assert!(cut.header().flags.truncated(), "{to}");
}

/// Returns the records of `large.example.test.`, which do not fit in a datagram.
fn large() -> impl Iterator<Item = String> {
    (0..20).map(|number| format!("\"{number:0200}\""))
}

#[test]
fn forwards_to_unbound_over_tls_and_https() {
    if command("unbound").arg("-V").status().is_err() {
        return skip("`unbound` is not installed");
    }
    let folder = Folder::new("encrypted-unbound");
    certify(&folder, &["127.0.0.1"]);
    let [plain, tls, https] = [(); 3].map(|()| free_port());
    let home = folder.path().display();
    let mut text = format!(
        "server:\n interface: 127.0.0.1@{plain}\n interface: 127.0.0.1@{tls}\n interface: 127.0.0.1@{https}\n tls-port: {tls}\n \
         https-port: {https}\n tls-service-key: \"{home}/key.pem\"\n tls-service-pem: \"{home}/cert.pem\"\n directory: \"{home}\"\n \
         chroot: \"\"\n username: \"\"\n pidfile: \"\"\n use-syslog: no\n access-control: 127.0.0.0/8 allow\n num-threads: 1\n \
         local-zone: \"example.test.\" static\n local-data: \"www.example.test. 30 IN A 192.0.2.1\"\n"
    );
    large().for_each(|record| text.push_str(&format!(" local-data: 'large.example.test. 30 IN TXT {record}'\n")));
    text.push_str("remote-control:\n control-enable: no\n");
    let file = folder.write("unbound.conf", &text);
    let _unbound = Program(command("unbound").args(["-d", "-c"]).arg(file).spawn().expect("it starts"));
    expect_answers(&folder, &format!("tls://127.0.0.1:{tls}"));
    expect_answers(&folder, &format!("https://127.0.0.1:{https}"));
}

#[test]
fn forwards_to_knot_over_quic() {
    let folder = Folder::new("encrypted-knot");
    certify(&folder, &["127.0.0.1"]);
    let (home, port, plain) = (folder.path().display(), free_port(), free_port());
    let mut zone =
        "$ORIGIN example.test.\n@ 3600 SOA ns host 1 2 3 4 30\n@ NS ns\nns A 127.0.0.1\nwww 30 A 192.0.2.1\n"
            .to_owned();
    large().for_each(|text| zone.push_str(&format!("large 30 TXT {text}\n")));
    folder.write("example.test.zone", &zone);
    let file = folder.write(
        "knot.conf",
        &format!(
            "server:\n  rundir: \"{home}\"\n  listen: 127.0.0.1@{plain}\n  listen-quic: 127.0.0.1@{port}\n  \
             cert-file: \"{home}/cert.pem\"\n  key-file: \"{home}/key.pem\"\ndatabase:\n  storage: \"{home}\"\nzone:\n  \
             - domain: example.test\n    storage: \"{home}\"\n    file: example.test.zone\n    zonefile-sync: -1\n    \
             journal-content: none\n"
        ),
    );
    // Knot DNS has QUIC since 3.3.
    match command("knotc").arg("-c").arg(&file).arg("conf-check").status() {
        Ok(status) if status.success() => {}
        Ok(_) => return skip("this version of `knotd` has no QUIC"),
        Err(_) => return skip("`knotd` is not installed"),
    }
    let _knot = Program(command("knotd").arg("-c").arg(file).spawn().expect("it starts"));
    expect_answers(&folder, &format!("quic://127.0.0.1:{port}"));
}
