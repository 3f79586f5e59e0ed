//! DNS over TLS in both directions: one server with a certificate, and others that forward queries to it.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use crate::support::http::{server_name, tls_client};
use crate::support::{Client, Folder, Server, certify, certify_all, exchange_framed};
use engine::tls::{ClientTls, TlsMaker};
use engine::{Fetch, Io};
use metrics::Registry;
use net::TokioIo;
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
        let until = io.now() + crate::support::PATIENCE;
        let fetch = Fetch { address: &address, tls: Some(&tls), path: "/metrics", post: None, until };
        assert_eq!(io.fetch(fetch).await, Ok(200));
        assert_ne!(io.fetch(Fetch { tls: None, ..fetch }).await, Ok(200));
    });
}

/// Server over TLS with a certificate of its folder.
struct Encrypted {
    folder: Folder,
    server: Server,
    address: SocketAddr,
}

impl Encrypted {
    fn start(name: &str, options: &str) -> Encrypted {
        let folder = Folder::new(name);
        certify(&folder, &["dns.example.org"]);
        let server = Server::start(&Encrypted::write(&folder, 0, options));
        let mut encrypted = Encrypted { folder, server, address: SocketAddr::from(([0; 4], 0)) };
        encrypted.address = encrypted.server.address_of("tls://127.0.0.1:0");
        encrypted
    }

    fn write(folder: &Folder, port: u16, options: &str) -> std::path::PathBuf {
        let path = |name: &str| folder.path().join(name).display().to_string();
        let tls = format!("tls {} {} {{\n{options}\n}}", path("cert.pem"), path("key.pem"));
        folder.write("Corefile", &format!("tls://.:{port} {{\nbind 127.0.0.1\n{tls}\nwhoami\n}}\n"))
    }

    fn client(&self) -> Arc<rustls::ClientConfig> {
        let mut config = tls_client(&self.folder.path().join("ca.pem"), &[]);
        config.enable_early_data = true;
        Arc::new(config)
    }

    /// Asks over a new connection. Returns true if the client resumed its session, and whether early data was offered.
    fn ask(&self, config: &Arc<rustls::ClientConfig>) -> (bool, bool) {
        let mut tls = rustls::ClientConnection::new(Arc::clone(config), server_name()).expect("a client");
        let takes_early_data = tls.early_data().is_some();
        let mut tcp = TcpStream::connect(self.address).expect("a connection");
        tcp.set_read_timeout(Some(crate::support::PATIENCE)).expect("a timeout");
        let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
        let query = crate::support::query(1, "www.example.org.", Type::A);
        let length = u16::try_from(query.len()).expect("a query").to_be_bytes();
        stream.write_all(&[&length[..], &query].concat()).expect("room");
        let mut head = [0; 14];
        stream.read_exact(&mut head).expect("an answer");
        let is_resumed = tls.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
        (is_resumed, takes_early_data)
    }
}

/// Checks that all workers and the configuration after a reload have the same keys.
#[test]
fn clients_resume_their_sessions_with_any_worker_and_after_a_reload() {
    let mut running = Encrypted::start("tls-resume", "");
    let client = running.client();
    assert_eq!(running.ask(&client), (false, false));
    let resumed = |running: &Encrypted| (0..50).filter(|_| running.ask(&client) == (true, false)).count();
    assert_eq!(resumed(&running), 50, "early data is never allowed");
    Encrypted::write(&running.folder, 0, "# another text");
    running.server.signal("USR1");
    running.server.wait_for("Reloading complete");
    assert_eq!(resumed(&running), 50);
    // A ticket skips the verification of client certificates, so another policy has other keys.
    Encrypted::write(&running.folder, 0, "client_auth request");
    running.server.signal("USR1");
    running.server.wait_for("Reloading complete");
    assert_eq!(running.ask(&client), (false, false));
}

#[test]
fn a_renewed_certificate_does_not_end_connections() {
    let mut running = Encrypted::start("tls-renew", "");
    let mut tls = rustls::ClientConnection::new(running.client(), server_name()).expect("a client");
    let mut tcp = TcpStream::connect(running.address).expect("a connection");
    let mut stream = rustls::Stream::new(&mut tls, &mut tcp);
    let query = crate::support::query(1, "www.example.org.", Type::A);
    let mut ask = || drop(exchange_framed(&mut stream, &query));
    ask();
    certify_all(&running.folder, "ca", &[("cert", "key", &["dns.example.org"])]);
    running.server.signal("USR1");
    running.server.wait_for("Reloading complete");
    ask();
    assert_eq!(running.ask(&running.client()), (false, false), "the new authority is trusted");
}

#[test]
fn writes_the_secrets_of_sessions_if_asked_to() {
    let folder = Folder::new("tls-keylog-file");
    let file = folder.path().join("keys.log");
    let mut running = Encrypted::start("tls-keylog", &format!("keylog {}", file.display()));
    running.server.wait_for("anyone who can read this file can decrypt the queries");
    running.ask(&running.client());
    let text = std::fs::read_to_string(&file).expect("the file");
    assert!(text.lines().any(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")), "{text}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).expect("the file").permissions());
    assert_eq!(mode & 0o777, 0o600);
}
