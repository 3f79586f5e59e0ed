//! DNS over TLS in both directions: one server with a certificate, and others that forward queries to it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};

use engine::tls::{ClientTls, TlsMaker};
use engine::{Fetch, Io};
use metrics::Registry;
use net::TokioIo;
use support::{Client, Folder, Server, certify};
use transport::tls::Rustls;
use wire::{Rcode, Type};

#[test]
fn forwards_queries_over_tls() {
    let folder = Folder::new("tls");
    certify(&folder, &["dns.example.org", "127.0.0.1"]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let corefile = format!(
        "tls://.:0 {{\nbind 127.0.0.1\ntls {} {}\nhosts /dev/null {{\n192.0.2.1 www.example.org\n}}\n}}\n",
        path("cert.pem"),
        path("key.pem")
    );
    let mut upstream = Server::start(&folder.write("upstream", &corefile));
    let to = upstream.address_of("tls://127.0.0.1:0");

    let ca = path("ca.pem");
    for (name, options, rcode) in [
        ("by-name", format!("tls {ca}\ntls_servername dns.example.org"), Rcode::NOERROR),
        ("by-address", format!("tls {ca}"), Rcode::NOERROR),
        ("another-name", format!("tls {ca}\ntls_servername dns.example.net"), Rcode::SERVFAIL),
        ("unknown-authority", format!("tls {}\ntls_servername dns.example.org", path("cert.pem")), Rcode::SERVFAIL),
    ] {
        let corefile = format!(".:0 {{\nbind 127.0.0.1\nforward . tls://{to} {{\n{options}\n}}\n}}\n");
        let mut server = Server::start(&folder.write(name, &corefile));
        let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
        // The second query reuses the open connection.
        for _ in 0..2 {
            let answer = client.ask("www.example.org.", Type::A).expect("an answer");
            assert_eq!(answer.rcode(), rcode, "{name}");
            let known: &[IpAddr] = if rcode == Rcode::NOERROR { &["192.0.2.1".parse().unwrap()] } else { &[] };
            assert_eq!(answer.addresses(), known, "{name}");
        }
    }
}

/// Starts a proxy that reports each client as 10.1.2.3, in the same segment as the first bytes of the client.
fn proxy(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut server = TcpStream::connect(to).expect("the server");
            let mut first = [0; 4096];
            let length = client.read(&mut first).expect("a greeting");
            let start = [b"PROXY TCP4 10.1.2.3 192.0.2.1 4660 853\r\n", &first[..length]].concat();
            server.write_all(&start).expect("room");
            let (mut from, mut into) = (client.try_clone().expect("a copy"), server.try_clone().expect("a copy"));
            std::thread::spawn(move || io::copy(&mut from, &mut into));
            std::thread::spawn(move || io::copy(&mut server, &mut client));
        }
    });
    address
}

#[test]
fn reads_the_proxy_header_before_the_tls_handshake() {
    let folder = Folder::new("tls-proxy");
    certify(&folder, &["127.0.0.1"]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let tls = format!("tls {} {}", path("cert.pem"), path("key.pem"));
    let corefile = format!("tls://.:0 {{\nbind 127.0.0.1\n{tls}\nproxyproto {{\ndefault use\n}}\nwhoami\n}}\n");
    let mut upstream = Server::start(&folder.write("upstream", &corefile));
    let to = proxy(upstream.address_of("tls://127.0.0.1:0"));

    let options = format!("tls {}", path("ca.pem"));
    let corefile = format!(".:0 {{\nbind 127.0.0.1\nforward . tls://{to} {{\n{options}\n}}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0"));
    let answer = client.ask("www.example.org.", Type::A).expect("an answer");
    assert_eq!(answer.addresses(), ["10.1.2.3".parse::<IpAddr>().expect("an address")]);
}

#[test]
fn serves_metrics_over_tls() {
    let folder = Folder::new("tls-metrics");
    certify(&folder, &["metrics.example.org"]);
    folder.write("web.yml", "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n");
    let web = folder.path().join("web.yml");
    let pages = format!("prometheus 127.0.0.1:0 {{\ntls {}\n}}", web.display());
    let corefile = format!(".:0 {{\nbind 127.0.0.1\n{pages}\nwhoami\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let address = server.address_of("127.0.0.1:0").to_string();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, async {
        let io = TokioIo::new(&Registry::new());
        let authorities = Some(std::fs::read(folder.path().join("ca.pem")).expect("its own authority"));
        let server_name = Some("metrics.example.org".to_owned());
        let tls = Rustls.client(&ClientTls { server_name, authorities, ..ClientTls::default() }).expect("TLS");
        let until = io.now() + support::PATIENCE;
        let fetch = Fetch { address: &address, tls: Some(&tls), path: "/metrics", post: None, until };
        assert_eq!(io.fetch(fetch).await, Ok(200));
        assert_ne!(io.fetch(Fetch { tls: None, ..fetch }).await, Ok(200));
    });
}
