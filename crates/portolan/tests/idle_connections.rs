//! Memory that an idle connection takes, by transport.
//!
//! To measure a release build:
//!
//! ```sh
//! cargo build --release -p portolan
//! PORTOLAN_BINARY=target/release/portolan cargo test -p portolan --test integration idle_connections -- --nocapture
//! ```

use std::any::Any;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::http::{Http, HttpClient, server_name, tls_client};
use crate::support::quic::QuicClient;
use crate::support::{Folder, Server, certify, exchange_framed, query};
use wire::Type;

/// Numbers of listeners, without and with `PORTOLAN_BINARY`. Each of them allows 200 connections over QUIC.
const LISTENERS: [usize; 2] = [1, 4];
/// Connections to each listener.
const CONNECTIONS: usize = 150;
/// Time in which the allocator returns free memory to the system, several times over.
const SETTLING: Duration = Duration::from_secs(4);
/// Time in which a client acknowledges everything.
const ACKNOWLEDGING: Duration = Duration::from_millis(30);
/// Factor by which a debug build may exceed the limits: its futures are larger.
const DEBUG: usize = 2;

/// Client connection, kept open.
type Held = Box<dyn Any>;

/// Transport, and the most KiB that an idle connection may take.
struct Row {
    name: &'static str,
    scheme: &'static str,
    limit: usize,
    connect: fn(SocketAddr, &Path) -> Held,
}

const ROWS: [Row; 5] = [
    Row { name: "TLS", scheme: "tls", limit: 12, connect: over_tls },
    Row { name: "HTTP/1.1", scheme: "https", limit: 20, connect: |to, ca| over_http(to, Http::One, ca) },
    Row { name: "HTTP/2", scheme: "https", limit: 20, connect: |to, ca| over_http(to, Http::Two, ca) },
    Row { name: "QUIC", scheme: "quic", limit: 24, connect: over_quic },
    Row { name: "HTTP/3", scheme: "https3", limit: 24, connect: over_http3 },
];

/// Connects over TLS and asks a query.
fn over_tls(to: SocketAddr, ca: &Path) -> Held {
    let tls = rustls::ClientConnection::new(Arc::new(tls_client(ca, &[])), server_name()).unwrap();
    let mut stream = rustls::StreamOwned::new(tls, TcpStream::connect(to).unwrap());
    exchange_framed(&mut stream, &query(0, "www.example.org.", Type::A));
    Box::new(stream)
}

fn over_http(to: SocketAddr, http: Http, ca: &Path) -> Held {
    let mut client = HttpClient::connect(to, http, ca);
    assert!(client.ask("www.example.org.", Type::A).is_some());
    Box::new(client)
}

fn over_quic(to: SocketAddr, ca: &Path) -> Held {
    let mut client = QuicClient::connect(to, b"doq", ca);
    assert!(client.ask(&query(0, "www.example.org.", Type::A)).is_some());
    acknowledge(client)
}

fn over_http3(to: SocketAddr, ca: &Path) -> Held {
    let mut client = QuicClient::connect(to, b"h3", ca);
    let message = query(0, "www.example.org.", Type::A);
    // HEADERS: POST (index 20), https (23), the path and the content type as literals with indexed names. DATA: the
    // message.
    let mut section = b"\0\0\xd4\xd7\x50\x03dns\x51\x0a/dns-query\x5f\x1d\x17application/dns-message".to_vec();
    section.splice(..0, [1, u8::try_from(section.len()).unwrap()]);
    let stream = client.send(&[&section[..], &[0, u8::try_from(message.len()).unwrap()], &message].concat());
    assert!(client.read(stream).is_some_and(|response| response.len() > message.len()));
    acknowledge(client)
}

fn acknowledge(mut client: QuicClient) -> Held {
    let start = Instant::now();
    assert!(client.run_until(|_| start.elapsed() > ACKNOWLEDGING));
    Box::new(client)
}

/// Server with several listeners of one scheme.
struct Running {
    server: Server,
    ca: PathBuf,
    addresses: Vec<SocketAddr>,
    _folder: Folder,
}

/// Returns true if the test measures a given binary.
fn is_measurement() -> bool {
    std::env::var_os("PORTOLAN_BINARY").is_some()
}

impl Running {
    fn start(scheme: &str) -> Running {
        let folder = Folder::new(&format!("idle-{scheme}"));
        certify(&folder, &["dns.example.org"]);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let listeners = LISTENERS[usize::from(is_measurement())];
        let ports: Vec<u16> = (0..listeners).map(|_| testkit::ports::free_port()).collect();
        let keys: Vec<String> = ports.iter().map(|port| format!("{scheme}://.:{port}")).collect();
        let text = format!(
            "{} {{\nbind 127.0.0.1\ntls {} {}\ntimeouts {{\nidle 1h\n}}\nhosts /dev/null {{\n192.0.2.1 \
             www.example.org\n}}\n}}\n",
            keys.join(" "),
            path("cert.pem"),
            path("key.pem")
        );
        let corefile = folder.write("Corefile", &text);
        let binary = std::env::var_os("PORTOLAN_BINARY").map(PathBuf::from);
        let mut server = match &binary {
            Some(binary) => Server::start_program(binary, &["-conf".as_ref(), corefile.as_os_str()]),
            None => Server::start(&corefile),
        };
        let addresses = ports.iter().map(|port| server.address_of(&format!("{scheme}://127.0.0.1:{port}"))).collect();
        Running { server, ca: path("ca.pem").into(), addresses, _folder: folder }
    }

    fn connect(&self, row: &Row, each: usize) -> Vec<Held> {
        let connect = |to: &SocketAddr| (0..each).map(|_| (row.connect)(*to, &self.ca)).collect::<Vec<_>>();
        self.addresses.iter().flat_map(connect).collect()
    }

    /// Returns the resident memory in bytes.
    fn resident(&self) -> usize {
        std::thread::sleep(SETTLING);
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }
}

#[test]
fn an_idle_connection_takes_little_memory() {
    net::raise_descriptor_limit();
    let mut exceeded = Vec::new();
    for row in &ROWS {
        let running = Running::start(row.scheme);
        // The first connections allocate what all share.
        drop(running.connect(row, 5));
        let before = running.resident();
        let held = running.connect(row, CONNECTIONS);
        let each = running.resident().saturating_sub(before) / held.len();
        println!("{}: {:.1} KiB per idle connection", row.name, each as f64 / 1024.0);
        if each > row.limit * 1024 * if is_measurement() { 1 } else { DEBUG } {
            exceeded.push((row.name, each));
        }
    }
    assert_eq!(exceeded, []);
}
