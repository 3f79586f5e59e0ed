//! Bursts of one client: thousands of queries wait for one large answer, on every transport with connections, and the
//! client does not read; or each waits for a large answer of its own. Memory must stay within its bound, and other
//! clients must be served.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::support::http::{server_name, tls_client};
use crate::support::quic::QuicClient;
use crate::support::{Client, Folder, PATIENCE, Server, certify, query, wait_until};
use wire::{Rcode, Type};

const CONNECTIONS: usize = 50;
const QUERIES: u16 = 100;
/// Bytes of the answer.
const LARGE: usize = 60_000;
/// MiB that a burst may take in a debug build, whose futures are larger, without a memory limit: 45 to 55 were
/// measured. A release build takes 22 to 27 in a container of 170 MiB. All answers together would be 286.
const GROWTH_MAX: usize = 80;
const NAME: &str = "large.example.net.";
/// MiB that the answers to different names may take above the queries that wait for them: those that clients have not
/// read, and those that no query has taken. 3 to 4 were measured, and 54 without a bound on the latter.
const DIFFERENT_GROWTH_MAX: usize = 24;

/// Upstream over TCP that answers when the gate is open.
struct Upstream {
    address: SocketAddr,
    /// Number of queries, and whether the gate is open.
    state: Arc<(Mutex<(usize, bool)>, Condvar)>,
}

impl Upstream {
    fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new((Mutex::new((0, false)), Condvar::new()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, &state));
            }
        });
        Upstream { address, state }
    }

    fn asked(&self) -> usize {
        self.state.0.lock().unwrap().0
    }

    fn open(&self) {
        self.state.0.lock().unwrap().1 = true;
        self.state.1.notify_all();
    }
}

/// Answers the queries of one connection.
fn serve(mut stream: TcpStream, state: &(Mutex<(usize, bool)>, Condvar)) -> Option<()> {
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length).ok()?;
        let mut asked = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut asked).ok()?;
        let mut gate = state.0.lock().unwrap();
        gate.0 += 1;
        drop(state.1.wait_while(gate, |gate| !gate.1).unwrap());
        let answer = large_answer(&asked);
        let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
        stream.write_all(&[&length[..], &answer].concat()).ok()?;
    }
}

/// Answers with one TXT record of [`LARGE`] bytes.
fn large_answer(asked: &[u8]) -> Vec<u8> {
    let question = 12 + asked[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    let texts: Vec<u8> = [&[255][..], &[b'x'; 255]].concat().repeat(LARGE / 256);
    let head = [&asked[..2], &[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]].concat();
    let length = u16::try_from(texts.len()).unwrap().to_be_bytes();
    [&head, &asked[12..question], &[0xc0, 12, 0, 16, 0, 1, 0, 0, 1, 44], &length, &texts].concat()
}

/// Connection of a client with queries that it has sent.
#[allow(dead_code, reason = "it is held, not read")]
enum Held {
    Tcp(TcpStream),
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
    Quic(Box<QuicClient>),
}

type Burst = fn(SocketAddr, &Path) -> Held;

/// Queries for one name, with their lengths in front.
fn pipelined() -> Vec<u8> {
    let one = |id| {
        let message = query(id, NAME, Type::TXT);
        [&u16::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
    };
    (0..QUERIES).flat_map(one).collect()
}

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

fn over_tcp(to: SocketAddr, _: &Path) -> Held {
    let mut stream = connect(to);
    stream.write_all(&pipelined()).unwrap();
    Held::Tcp(stream)
}

fn encrypted(to: SocketAddr, ca: &Path, alpn: &[&str], bytes: &[u8]) -> Held {
    let tls = rustls::ClientConnection::new(Arc::new(tls_client(ca, alpn)), server_name()).unwrap();
    let mut stream = rustls::StreamOwned::new(tls, connect(to));
    stream.write_all(bytes).unwrap();
    stream.flush().unwrap();
    Held::Tls(Box::new(stream))
}

fn over_tls(to: SocketAddr, ca: &Path) -> Held {
    encrypted(to, ca, &[], &pipelined())
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A literal field without indexing (RFC 7541 §6.2.2).
fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// POST requests of HTTP/2, one on each stream. The windows are small, so that the server must keep the answers.
fn requests(path: &str, content_type: &str, body: impl Fn(u16) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &*frame(4, 0, 0, &[])].concat();
    let head: Vec<u8> = [(":method", "POST"), (":scheme", "https"), (":authority", "dns.example.org"), (":path", path)]
        .into_iter()
        .chain([("content-type", content_type), ("te", "trailers")])
        .flat_map(|(name, value)| field(name, value))
        .collect();
    for id in 0..QUERIES {
        let stream = 2 * u32::from(id) + 1;
        bytes.extend([frame(1, 4, stream, &head), frame(0, 1, stream, &body(id))].concat());
    }
    bytes
}

fn over_https(to: SocketAddr, ca: &Path) -> Held {
    let body = |id| query(id, NAME, Type::TXT);
    encrypted(to, ca, &["h2"], &requests("/dns-query", "application/dns-message", body))
}

fn over_grpc(to: SocketAddr, ca: &Path) -> Held {
    // A frame with a message `DnsPacket`, whose field 1 has the query.
    let body = |id| {
        let message = query(id, NAME, Type::TXT);
        let packet = [&[0x0a, u8::try_from(message.len()).unwrap()][..], &message].concat();
        [&[0][..], &u32::try_from(packet.len()).unwrap().to_be_bytes(), &packet].concat()
    };
    encrypted(to, ca, &["h2"], &requests("/coredns.dns.DnsService/Query", "application/grpc", body))
}

fn over_quic(to: SocketAddr, ca: &Path) -> Held {
    let mut client = QuicClient::connect(to, b"doq", ca);
    // Over QUIC, the ID of a message is 0 (RFC 9250 §4.2.1).
    let message = query(0, NAME, Type::TXT);
    let message = [&u16::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat();
    (0..QUERIES).for_each(|_| {
        client.send(&message);
    });
    Held::Quic(Box::new(client))
}

/// Memory of a process in MiB: now, and at most since its start (proc(5), `VmRSS` and `VmHWM`).
fn memory(id: u32) -> [usize; 2] {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("a process");
    ["VmRSS:", "VmHWM:"].map(|name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("its memory");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") / 1024
    })
}

/// Waits until the memory of a process no longer changes, so that what was sent has been read.
fn settle(id: u32) {
    let mut last = 0;
    let mut equal = 0;
    wait_until("the memory of the server does not change", || {
        std::thread::sleep(Duration::from_millis(20));
        let [now, _] = memory(id);
        equal = if now == last { equal + 1 } else { 0 };
        last = now;
        equal > 20
    });
}

fn withstands(scheme: &str, burst: Burst) {
    let folder = Folder::new(&format!("burst-{scheme}"));
    certify(&folder, &["dns.example.org"]);
    let path = |name: &str| folder.path().join(name);
    let upstream = Upstream::start();
    let tls = format!("tls {} {}", path("cert.pem").display(), path("key.pem").display());
    let tls = if scheme == "dns" { String::new() } else { tls };
    let chain = format!(
        "hosts /dev/null {{\n192.0.2.1 www.example.org\nfallthrough\n}}\ncache\nforward . {} {{\nforce_tcp\n}}",
        upstream.address
    );
    let block = |scheme: &str, tls: &str| format!("{scheme}://.:0 {{\nbind 127.0.0.1\n{tls}\n{chain}\n}}\n");
    // Port 0 of one address can only be in one block with a transport; the others ask over UDP at another address.
    let local = block("dns", "").replace("bind 127.0.0.1", "bind 127.0.0.2");
    let mut server = Server::start(&folder.write("Corefile", &(block(scheme, &tls) + &local)));
    let to = server.address_of(&format!("{scheme}://127.0.0.1:0"));
    let mut other = Client::new(server.address_of("dns://127.0.0.2:0"));
    let mut is_served = |times: usize| {
        (0..times)
            .all(|_| other.ask("www.example.org.", Type::A).is_some_and(|answer| answer.rcode() == Rcode::NOERROR))
    };
    assert!(is_served(1));
    let [before, _] = memory(server.id());
    let held: Vec<Held> = (0..CONNECTIONS).map(|_| burst(to, &path("ca.pem"))).collect();
    wait_until("the upstream is asked", || upstream.asked() > 0);
    settle(server.id());
    upstream.open();
    assert!(is_served(300), "{scheme}: a local name while the answers are written");
    settle(server.id());
    let [_, peak] = memory(server.id());
    assert!(peak <= before + GROWTH_MAX, "{scheme}: {before} MiB before, {peak} MiB at most");
    drop(held);
    assert!(is_served(100), "{scheme}: a local name afterwards");
    let mut now = 0;
    wait_until("memory is given back", || {
        [now, _] = memory(server.id());
        now <= before + GROWTH_MAX / 2
    });
}

#[test]
fn a_burst_over_tcp() {
    withstands("dns", over_tcp);
}

#[test]
fn a_burst_over_tls() {
    withstands("tls", over_tls);
}

#[test]
fn a_burst_over_https() {
    withstands("https", over_https);
}

#[test]
fn a_burst_over_grpc() {
    withstands("grpc", over_grpc);
}

#[test]
fn a_burst_over_quic() {
    withstands("quic", over_quic);
}

/// Queries for different names, with their lengths in front.
fn different(connection: usize) -> Vec<u8> {
    let one = |id| {
        let message = query(id, &format!("n{connection}-{id}.{NAME}"), Type::TXT);
        [&u16::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
    };
    (0..QUERIES).flat_map(one).collect()
}

/// Reads and counts the answers of a connection until it ends.
fn read_all(mut stream: TcpStream, answers: &AtomicUsize) {
    let (mut length, mut answer) = ([0; 2], Vec::new());
    while stream.read_exact(&mut length).is_ok() {
        answer.resize(usize::from(u16::from_be_bytes(length)), 0);
        if stream.read_exact(&mut answer).is_err() {
            return;
        }
        answers.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_burst_of_different_large_answers() {
    let folder = Folder::new("burst-different");
    let upstream = Upstream::start();
    let corefile = format!(".:0 {{\nbind 127.0.0.1\nforward . {} {{\nforce_tcp\n}}\n}}\n", upstream.address);
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let to = server.address_of("dns://127.0.0.1:0");
    let answers = Arc::new(AtomicUsize::new(0));
    for connection in 0..CONNECTIONS {
        let mut stream = connect(to);
        stream.write_all(&different(connection)).unwrap();
        let answers = Arc::clone(&answers);
        std::thread::spawn(move || read_all(stream, &answers));
    }
    wait_until("the upstream is asked", || upstream.asked() > 0);
    settle(server.id());
    let [waiting, _] = memory(server.id());
    upstream.open();
    wait_until("all queries are answered", || answers.load(Ordering::Relaxed) == CONNECTIONS * usize::from(QUERIES));
    let [_, peak] = memory(server.id());
    assert!(peak <= waiting + DIFFERENT_GROWTH_MAX, "{waiting} MiB with the queries, {peak} MiB at most");
}
