//! DNS over QUIC and over HTTP/3: the whole server with its workers, and kdig. If kdig is not installed, its test
//! prints a message and is skipped.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::quic::QuicClient;
use crate::support::{Answer, Folder, Server, certify, page, query, wait_until};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use wire::{Message, Rcode, Type};

/// Server with a certificate that answers over QUIC and HTTP/3.
struct Running {
    folder: Folder,
    server: Server,
    quic: SocketAddr,
}

const QUIC: &str = "quic://127.0.0.1:0";
const HTTPS3: &str = "https3://127.0.0.1:0";

/// Corefile with these lines for `KEY.:0`.
fn corefile(folder: &Folder, keys: &str, lines: &str) -> String {
    let path = |name: &str| folder.path().join(name).display().to_string();
    format!("{keys} {{\nbind 127.0.0.1\ntls {} {}\n{lines}\n}}\n", path("cert.pem"), path("key.pem"))
}

impl Running {
    fn start(name: &str, lines: &str) -> Running {
        let folder = Folder::new(name);
        certify(&folder, &["dns.example.org", "127.0.0.1"]);
        let text = corefile(&folder, "quic://.:0", lines);
        let mut server = Server::start(&folder.write("Corefile", &text));
        let quic = server.address_of(QUIC);
        Running { folder, server, quic }
    }

    fn connect(&self) -> QuicClient {
        QuicClient::connect(self.quic, b"doq", &self.folder.path().join("ca.pem"))
    }
}

/// Query with ID 0, as DNS over QUIC requires.
fn question(name: &str, qtype: Type) -> Vec<u8> {
    query(0, name, qtype)
}

/// Asks for an address, and returns the addresses in the answer.
fn ask(client: &mut QuicClient, name: &str) -> Vec<std::net::IpAddr> {
    let messages = client.ask(&question(name, Type::A)).unwrap_or_else(|| panic!("an answer: {:?}", client.lost));
    assert_eq!(messages.len(), 1);
    Answer(messages[0].clone()).addresses()
}

const HOSTS: &str = "hosts /dev/null {\n192.0.2.1 www.example.org\n}";

#[test]
fn answers_over_quic() {
    let running = Running::start("quic", HOSTS);
    let mut client = running.connect();
    for _ in 0..100 {
        assert_eq!(ask(&mut client, "www.example.org."), ["192.0.2.1".parse::<std::net::IpAddr>().unwrap()]);
    }
    let failed = client.ask(&question("example.net.", Type::A)).unwrap();
    assert_eq!(Answer(failed[0].clone()).rcode(), Rcode::SERVFAIL);
    // A message ID other than 0 breaks the protocol.
    assert_eq!(client.ask(&query(1, "www.example.org.", Type::A)), None);
    assert_eq!(client.wait_for_close(), 2);
}

#[test]
fn clients_may_change_their_port_with_several_workers() {
    let running = Running::start("quic-ports", HOSTS);
    let mut clients: Vec<_> = (0..8).map(|_| running.connect()).collect();
    for _ in 0..25 {
        for client in &mut clients {
            client.change_port();
            // A client that moved after every query would never prove an address, and get no further streams.
            for _ in 0..3 {
                assert_eq!(ask(client, "www.example.org.").len(), 1);
            }
        }
    }
}

/// The limit of the Corefile is that of the listener, whichever workers the clients reach.
#[test]
fn a_listener_has_as_many_connections_as_the_corefile_allows() {
    let running = Running::start("quic-connections", "quic {\nmax_connections 2\n}\nwhoami");
    let mut clients = [running.connect(), running.connect()];
    for _ in 0..8 {
        assert_eq!(running.connect().wait_for_close(), 0, "too many connections");
    }
    clients.iter_mut().for_each(|client| assert_eq!(ask(client, "www.example.org.").len(), 1));
}

/// Checks the address of the client, and that workers pass datagrams on: the filter of the kernel looks into the
/// header, so all datagrams reach the same worker.
#[test]
fn a_proxy_header_precedes_each_datagram() {
    let running = Running::start("quic-proxy", "proxyproto {\ndefault use\n}\nwhoami");
    // Version 2, PROXY, IPv4 over UDP: 10.1.2.3:4660 to 192.0.2.1:853.
    let header = b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c\x0a\x01\x02\x03\xc0\0\x02\x01\x12\x34\x03\x55";
    let ca = running.folder.path().join("ca.pem");
    for _ in 0..8 {
        let mut client = QuicClient::connect_behind(header, running.quic, b"doq", &ca);
        for _ in 0..3 {
            assert_eq!(ask(&mut client, "www.example.org."), ["10.1.2.3".parse::<std::net::IpAddr>().unwrap()]);
            client.change_port();
        }
    }
}

#[test]
fn answers_are_never_truncated() {
    let folder = Folder::new("quic-long");
    let records: String = (0..250).map(|number| format!("long IN TXT \"{number:0>220}\"\n")).collect();
    let zone = folder
        .write("zone", &format!("$ORIGIN example.org.\n$TTL 60\n@ IN SOA ns host 1 2 3 4 5\n@ IN NS ns\n{records}"));
    let running = Running::start("quic-long-server", &format!("file {} example.org", zone.display()));
    let mut client = running.connect();
    let messages = client.ask(&question("long.example.org.", Type::TXT)).unwrap();
    let message = Message::parse(&messages[0]).unwrap();
    assert_eq!((message.header().answers, message.header().flags.truncated()), (250, false));
    assert!(messages[0].len() > 50_000);
}

#[test]
fn transfers_a_zone_in_many_messages() {
    let folder = Folder::new("quic-transfer");
    let records: String = (0..5000).map(|number| format!("name{number} IN TXT \"{number:0>100}\"\n")).collect();
    let zone = folder
        .write("zone", &format!("$ORIGIN example.org.\n$TTL 60\n@ IN SOA ns host 1 2 3 4 5\n@ IN NS ns\n{records}"));
    let lines = format!("file {} example.org\ntransfer example.org {{\nto *\n}}", zone.display());
    let running = Running::start("quic-transfer-server", &lines);
    let mut client = running.connect();
    let messages = client.ask(&question("example.org.", Type::AXFR)).unwrap();
    let count: u16 = messages.iter().map(|message| Message::parse(message).unwrap().header().answers).sum();
    assert!(messages.len() > 5, "{}", messages.len());
    assert_eq!(count, 5000 + 3);
    assert!(client.ask(&question("name1.example.org.", Type::TXT)).is_some(), "the connection stays open");
}

#[test]
fn forwards_queries_of_clients_over_quic() {
    let folder = Folder::new("quic-upstream");
    let text = format!(".:0 {{\nbind 127.0.0.1\n{HOSTS}\n}}\n");
    let mut upstream = Server::start(&folder.write("Corefile", &text));
    let to = upstream.address_of("dns://127.0.0.1:0");
    let running = Running::start("quic-forward", &format!("forward . {to}"));
    let mut client = running.connect();
    let streams: Vec<_> = (0..50)
        .map(|_| {
            let message = question("www.example.org.", Type::A);
            client.send(&[&u16::try_from(message.len()).unwrap().to_be_bytes(), message.as_slice()].concat())
        })
        .collect();
    for stream in streams {
        let answer = client.read(stream).expect("an answer");
        assert_eq!(Answer(answer[2..].to_vec()).addresses().len(), 1);
    }
}

#[test]
fn a_reload_keeps_connections_and_an_end_closes_them() {
    let mut running = Running::start("quic-reload", HOSTS);
    let mut client = running.connect();
    assert_eq!(ask(&mut client, "www.example.org.").len(), 1);
    let text = corefile(&running.folder, "quic://.:0", "hosts /dev/null {\n192.0.2.2 new.example.org\n}");
    running.folder.write("Corefile", &text);
    running.server.signal("USR1");
    running.server.wait_for("Reloading complete");
    wait_until("the new answer", || !ask(&mut client, "new.example.org.").is_empty());
    running.server.signal("TERM");
    assert_eq!(client.wait_for_close(), 0);
    assert_eq!(running.server.wait(), Some(0));
}

#[test]
fn a_restarted_server_tells_clients_that_their_connections_are_lost() {
    let mut running = Running::start("quic-restart", HOSTS);
    let mut client = running.connect();
    assert_eq!(ask(&mut client, "www.example.org.").len(), 1);
    let text = corefile(&running.folder, &format!("quic://.:{}", running.quic.port()), HOSTS);
    running.server.signal("KILL");
    running.server.wait();
    let mut server = Server::start(&running.folder.write("again", &text));
    server.address_of("quic://");
    assert_eq!(client.ask(&question("www.example.org.", Type::A)), None);
    assert_eq!(client.lost, Some(quinn_proto::ConnectionError::Reset));
    assert_eq!(ask(&mut running.connect(), "www.example.org.").len(), 1);
}

#[test]
fn counts_responses_like_coredns() {
    let mut running = Running::start("quic-metrics", &format!("{HOSTS}\nprometheus 127.0.0.1:0"));
    let metrics = running.server.address_of("127.0.0.1:0");
    let mut client = running.connect();
    for _ in 0..3 {
        ask(&mut client, "www.example.org.");
    }
    assert_eq!(client.ask(&query(1, "www.example.org.", Type::A)), None);
    let text = page(metrics, "/metrics").unwrap().1;
    for line in [
        "coredns_dns_quic_responses_total{server=\"quic://127.0.0.1:0\",status=\"0x0\"} 3",
        "coredns_dns_quic_responses_total{server=\"quic://127.0.0.1:0\",status=\"0x2\"} 1",
        "coredns_dns_requests_total{server=\"quic://127.0.0.1:0\",zone=\".\",view=\"\",proto=\"udp\",family=\"1\",\
         type=\"A\"} 3",
    ] {
        assert!(text.contains(line), "{line}");
    }
}

#[test]
fn answers_over_http3() {
    let folder = Folder::new("http3");
    certify(&folder, &["dns.example.org", "127.0.0.1"]);
    let text = corefile(&folder, "https3://.:0", &format!("{HOSTS}\nprometheus 127.0.0.1:0"));
    let mut server = Server::start(&folder.write("Corefile", &text));
    let (address, metrics) = (server.address_of(HTTPS3), server.address_of("127.0.0.1:0"));
    let mut client = QuicClient::connect(address, b"h3", &folder.path().join("ca.pem"));
    let message = query(77, "www.example.org.", Type::A);
    // HEADERS: POST (index 20), https (23), the authority and the path as literals. DATA: the message.
    let mut section = vec![0, 0, 0xd4, 0xd7, 0x50, 3];
    section.extend_from_slice(b"dns\x51\x0a/dns-query");
    let mut request = vec![1, u8::try_from(section.len()).unwrap()];
    request.extend_from_slice(&section);
    request.extend_from_slice(&[0, u8::try_from(message.len()).unwrap()]);
    request.extend_from_slice(&message);
    for _ in 0..3 {
        let stream = client.send(&request);
        let response = client.read(stream).expect("a response");
        let head = usize::from(response[1]) + 2;
        // The index of `:status: 200`, and the content type of DNS messages.
        assert_eq!(response[4..6], [0xd9, 0xec]);
        assert!(response[..head].windows(10).any(|part| part == b"max-age=36"), "{:?}", &response[..head]);
        let answer = Answer(response[head + 2..].to_vec());
        assert_eq!((answer.header().id, answer.addresses().len()), (77, 1));
    }
    let text = page(metrics, "/metrics").unwrap().1;
    assert!(text.contains("coredns_dns_https3_responses_total{server=\"https3://127.0.0.1:0\",status=\"200\"} 3"));
}

/// Verifier that accepts every certificate, and counts them. A session that is resumed has no certificate.
#[derive(Debug, Default)]
struct Counting(AtomicUsize);

impl ServerCertVerifier for Counting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

#[test]
fn clients_resume_their_sessions_with_any_worker_and_early_data_is_never_allowed() {
    for (key, listener, alpn) in [("quic://.:0", QUIC, &b"doq"[..]), ("https3://.:0", HTTPS3, b"h3")] {
        let folder = Folder::new("quic-resume");
        certify(&folder, &["dns.example.org"]);
        let mut server = Server::start(&folder.write("Corefile", &corefile(&folder, key, HOSTS)));
        let address = server.address_of(listener);
        let verifier = Arc::new(Counting::default());
        let mut tls = crate::support::quic::tls_config(alpn, &folder.path().join("ca.pem"));
        tls.dangerous().set_certificate_verifier(Arc::clone(&verifier) as Arc<dyn ServerCertVerifier>);
        tls.enable_early_data = true;
        let tls = Arc::new(tls);
        for _ in 0..20 {
            assert!(!QuicClient::connect_with(address, &tls).has_early_data(), "{key}");
        }
        assert_eq!(verifier.0.load(Ordering::Relaxed), 1, "{key}: one full handshake");
    }
}

#[test]
fn refuses_to_start_without_certificates() {
    let folder = Folder::new("quic-bare");
    for (key, message) in
        [("quic://.:0", "quic: tls.Config not set"), ("https3://.:0", "DoH3 requires TLS, no TLS config found")]
    {
        let mut server = Server::start(&folder.write("Corefile", &format!("{key} {{\nwhoami\n}}\n")));
        server.wait_for(message);
        assert_eq!(server.wait(), Some(1));
    }
}

#[test]
fn a_hundred_connections_with_256_slow_streams_harm_nobody() {
    let running = Running::start("quic-slow", HOSTS);
    let mut slow: Vec<_> = (0..100).map(|_| running.connect()).collect();
    for client in &mut slow {
        // The server closes connections that need more than the budget of all connections.
        assert!(client.occupy_all_streams() == 256 || client.lost.is_some());
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.server.id())).unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kibibytes: usize = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kibibytes < 150 << 10, "{kibibytes} KiB");
    assert_eq!(ask(&mut running.connect(), "www.example.org.").len(), 1);
}

#[test]
fn kdig_gets_answers() {
    let running = Running::start("quic-kdig", HOSTS);
    let port = running.quic.port().to_string();
    // This version of kdig does not check certificates over QUIC: its options for that switch to TCP.
    let arguments = ["+quic", "@127.0.0.1", "-p", &port, "www.example.org"];
    match Command::new("kdig").args(arguments).output() {
        Err(error) => crate::support::skip(format_args!("kdig: {error}; install the Debian package `knot-dnsutils`")),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains("status: NOERROR; id: 0") && text.contains("192.0.2.1"), "{text}");
        }
    }
}
