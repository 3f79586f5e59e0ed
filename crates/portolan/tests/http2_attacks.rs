//! Small, bounded attacks on DNS over HTTPS: other clients must be served, and memory must stay flat.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::http::{Http, HttpClient, server_name, tls_client};
use crate::support::{Folder, Server, certify};
use wire::Type;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ENHANCE_YOUR_CALM: u32 = 0xb;
/// POST to the path of DNS over HTTPS: two indexed fields, then the authority and the path as literals.
const POST: &[u8] = b"\x83\x87\x01\x03dns\x04\x0a/dns-query";
/// GET of an address that the server knows.
const GET: &[u8] = b"\x82\x87\x01\x03dns\x04\x3a/dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA29yZwAAAQAB";

struct Running {
    folder: Folder,
    server: Server,
    address: SocketAddr,
}

impl Running {
    fn start(name: &str) -> Running {
        Running::start_with(name, "")
    }

    /// Starts a server with more lines in its server block.
    fn start_with(name: &str, more: &str) -> Running {
        let folder = Folder::new(name);
        certify(&folder, &["dns.example.org"]);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let tls = format!("tls {} {}", path("cert.pem"), path("key.pem"));
        let lines = "timeouts {\nread 1s\nwrite 1s\nidle 5s\n}\nhosts /dev/null {\n192.0.2.1 www.example.org\n}";
        let text = format!("https://.:0 {{\nbind 127.0.0.1\n{tls}\n{lines}\n{more}\n}}\n");
        let mut server = Server::start(&folder.write("Corefile", &text));
        let address = server.address_of("https://127.0.0.1:0");
        Running { folder, server, address }
    }

    /// Runs an attack. Checks that a client before and one after it are served, and that little memory and time was
    /// used.
    fn withstands(&self, attack: impl FnOnce(&Running)) {
        let ca = self.folder.path().join("ca.pem");
        let mut before = HttpClient::connect(self.address, Http::Two, &ca);
        assert!(before.ask("www.example.org.", Type::A).is_some());
        let (memory, time) = (self.resident(), self.server.processor_time());
        attack(self);
        let mut after = HttpClient::connect(self.address, Http::Two, &ca);
        assert!(after.ask("www.example.org.", Type::A).is_some());
        let (grown, spent) = (self.resident().saturating_sub(memory), self.server.processor_time() - time);
        assert!(grown < 24 << 10, "{grown} KiB");
        assert!(spent < Duration::from_secs(3), "{spent:?}");
    }

    /// Returns the resident memory in KiB.
    fn resident(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    fn connect(&self, alpn: &str) -> Attacker {
        let config = tls_client(&self.folder.path().join("ca.pem"), &[alpn]);
        let tls = rustls::ClientConnection::new(Arc::new(config), server_name()).unwrap();
        let tcp = TcpStream::connect(self.address).unwrap();
        tcp.set_read_timeout(Some(crate::support::PATIENCE)).unwrap();
        tcp.set_write_timeout(Some(crate::support::PATIENCE)).unwrap();
        let mut attacker = Attacker(rustls::StreamOwned::new(tls, tcp));
        if alpn == "h2" {
            attacker.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
            assert!(attacker.send(&frame(SETTINGS, 0, 0, &[])));
        }
        attacker
    }
}

struct Attacker(rustls::StreamOwned<rustls::ClientConnection, TcpStream>);

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

impl Attacker {
    /// Returns false if the server has closed the connection.
    fn send(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).and_then(|()| self.0.flush()).is_ok()
    }

    /// Reads frames until the server closes the connection, or until the read timeout. Returns the error code of the
    /// last GOAWAY.
    fn end(&mut self) -> Option<u32> {
        let mut code = None;
        let mut head = [0; 9];
        while self.0.read_exact(&mut head).is_ok() {
            let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
            if self.0.read_exact(&mut payload).is_err() {
                break;
            }
            if head[3] == GOAWAY {
                code = payload[4..].first_chunk().map(|code| u32::from_be_bytes(*code));
            }
        }
        code
    }
}

impl Attacker {
    /// Reads HTTP/1.1 until the server closes the connection.
    fn answer(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.0.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Returns the IDs of the streams that a client opens.
fn streams() -> impl Iterator<Item = u32> {
    (1..).step_by(2)
}

#[test]
fn rapid_resets_end_the_connection() {
    Running::start("h2-reset").withstands(|running| {
        let mut attacker = running.connect("h2");
        let cancelled = |stream| {
            let cancel = frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
            [frame(HEADERS, END_HEADERS, stream, POST), cancel].concat()
        };
        attacker.0.sock.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        // In small pieces, because the reason is lost when the server closes a connection with unread bytes.
        let code = (0..200).find_map(|batch| {
            let _ = attacker.send(&streams().skip(batch * 50).take(50).flat_map(cancelled).collect::<Vec<u8>>());
            attacker.end()
        });
        assert_eq!(code, Some(ENHANCE_YOUR_CALM));
    });
}

#[test]
fn endless_headers_end_the_connection() {
    Running::start("h2-continuation").withstands(|running| {
        let mut attacker = running.connect("h2");
        // A field of 16,000 bytes, which is not indexed.
        let field = [&b"\x00\x01x\x7f\x81\x7c"[..], &[b'x'; 16_000]].concat();
        let mut lives = attacker.send(&frame(HEADERS, 0, 1, POST));
        let mut sent = 0;
        while lives && sent < 10 << 20 {
            lives = attacker.send(&frame(CONTINUATION, 0, 1, &field));
            sent += field.len();
        }
        assert!(attacker.end().is_some() || !lives, "the connection ends");
    });
}

#[test]
fn empty_frames_end_the_connection() {
    Running::start("h2-empty").withstands(|running| {
        let mut attacker = running.connect("h2");
        assert!(attacker.send(&frame(HEADERS, END_HEADERS, 1, POST)));
        let frames = frame(DATA, 0, 1, &[]).repeat(1000);
        let sent = (0..100).take_while(|_| attacker.send(&frames)).count();
        assert!(attacker.end().is_some() || sent < 100, "the connection ends");
    });
}

#[test]
fn a_client_that_does_not_read_loses_its_connection() {
    Running::start("h2-window").withstands(|running| {
        let mut attackers: Vec<_> = (0..20).map(|_| running.connect("h2")).collect();
        for attacker in &mut attackers {
            // INITIAL_WINDOW_SIZE is 0.
            assert!(attacker.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])));
            let requests: Vec<u8> =
                streams().take(256).flat_map(|stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, GET)).collect();
            assert!(attacker.send(&requests));
        }
        let start = Instant::now();
        for attacker in &mut attackers {
            attacker.end();
        }
        assert!(start.elapsed() < crate::support::PATIENCE, "{:?}", start.elapsed());
    });
}

#[test]
fn pings_without_reading_the_replies_end_the_connection() {
    Running::start("h2-ping").withstands(|running| {
        let mut attacker = running.connect("h2");
        let pings = frame(PING, 0, 0, &[0; 8]).repeat(1000);
        let sent = (0..2000).take_while(|_| attacker.send(&pings)).count();
        assert!(sent < 2000, "the connection ends");
    });
}

#[test]
fn a_stream_beyond_the_limit_is_refused() {
    Running::start("h2-streams").withstands(|running| running.refuses_streams_above(250));
    let seven = "https {\nmax_streams 7\n}";
    Running::start_with("h2-seven-streams", seven).withstands(|running| running.refuses_streams_above(7));
}

impl Running {
    fn refuses_streams_above(&self, most: u8) {
        const REFUSED_STREAM: u32 = 7;
        const MAX_CONCURRENT_STREAMS: u16 = 3;
        let mut attacker = self.connect("h2");
        // Requests without their bodies stay open.
        let sent = usize::from(most) + 44;
        let requests: Vec<u8> =
            streams().take(sent).flat_map(|stream| frame(HEADERS, END_HEADERS, stream, POST)).collect();
        assert!(attacker.send(&requests));
        let (mut refused, mut advertised) = (Vec::new(), None);
        let mut head = [0; 9];
        while refused.len() < 44 && attacker.0.read_exact(&mut head).is_ok() {
            let mut payload = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
            attacker.0.read_exact(&mut payload).unwrap();
            if head[3] == RST_STREAM {
                assert_eq!(payload, REFUSED_STREAM.to_be_bytes());
                refused.push(u32::from_be_bytes([head[5], head[6], head[7], head[8]]));
            } else if head[3] == SETTINGS {
                let mut settings = payload.chunks_exact(6);
                let setting = settings.find(|setting| setting[..2] == MAX_CONCURRENT_STREAMS.to_be_bytes());
                advertised = advertised.or(setting.map(|setting| setting[2..].to_vec()));
            }
        }
        assert!(refused.into_iter().eq(streams().skip(most.into()).take(44)));
        assert_eq!(advertised, Some(u32::from(most).to_be_bytes().to_vec()));
    }
}

#[test]
fn http1_pipelining_without_reading_ends_the_connection() {
    Running::start("h1-pipeline").withstands(|running| {
        let mut attacker = running.connect("http/1.1");
        let requests =
            "GET /dns-query?dns=AAABAAABAAAAAAAAA3d3dwdleGFtcGxlA29yZwAAAQAB HTTP/1.1\r\nHost: x\r\n\r\n".repeat(500);
        let sent = (0..2000).take_while(|_| attacker.send(requests.as_bytes())).count();
        assert!(sent < 2000, "the connection ends");
    });
}

#[test]
fn http1_chunks_are_bounded() {
    Running::start("h1-chunks").withstands(|running| {
        let head = b"POST /dns-query HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let extended = format!("1;{}\r\nx\r\n", "x".repeat(5000));
        // Chunks of one byte, with and without extensions, that never end.
        for chunks in ["1\r\nx\r\n".repeat(1000), extended] {
            let mut attacker = running.connect("http/1.1");
            let mut lives = attacker.send(head);
            let mut sent = 0;
            while lives && sent < 10 << 20 {
                lives = attacker.send(chunks.as_bytes());
                sent += chunks.len();
            }
            assert!(!lives || !attacker.answer().starts_with("HTTP/1.1 200"), "{sent} bytes");
        }
    });
}

#[test]
fn http1_fields_are_bounded() {
    Running::start("h1-fields").withstands(|running| {
        for field in ["X: y\r\n".to_owned(), format!("X: {}", "y".repeat(1000))] {
            let mut attacker = running.connect("http/1.1");
            let mut lives = attacker.send(b"GET / HTTP/1.1\r\n");
            let mut sent = 0;
            while lives && sent < 1 << 20 {
                lives = attacker.send(field.as_bytes());
                sent += field.len();
            }
            let answer = attacker.answer();
            assert!(!lives || answer.starts_with("HTTP/1.1 431"), "{sent} bytes: {answer}");
        }
    });
}

#[test]
fn slow_requests_end_at_the_deadline() {
    Running::start("h1-slow").withstands(|running| {
        let body = "POST /dns-query HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n";
        for head in ["POST /dns-query HTTP/1.1\r\nX: ", body] {
            let mut attacker = running.connect("http/1.1");
            let start = Instant::now();
            let mut lives = attacker.send(head.as_bytes());
            attacker.0.sock.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
            while lives && start.elapsed() < crate::support::PATIENCE {
                // Waits for 200 ms, unless the server answers or closes the connection.
                let mut byte = [0; 1024];
                lives = attacker.0.read(&mut byte).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
                    && attacker.send(b"x");
            }
            let taken = start.elapsed();
            assert!((Duration::from_millis(800)..crate::support::PATIENCE).contains(&taken), "{head}: {taken:?}");
        }
    });
}
