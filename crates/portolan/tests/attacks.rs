//! Small, bounded attacks on a whole server over loopback: resources that one client holds must not affect other
//! clients.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::{Client, Folder, PATIENCE, Server, page, query, wait_until};
use socket2::{Domain, Socket, Type as SocketType};
use wire::{Rcode, Type};

/// File descriptors that tests need for other purposes.
const OTHER_DESCRIPTORS: usize = 500;

/// Connects from a loopback address.
fn connect_from(source: Ipv4Addr, to: SocketAddr, limit: Duration) -> Option<TcpStream> {
    let socket = Socket::new(Domain::IPV4, SocketType::STREAM, None).ok()?;
    socket.bind(&SocketAddr::from((source, 0)).into()).ok()?;
    socket.connect_timeout(&to.into(), limit).ok()?;
    Some(socket.into())
}

/// Minimum time between two connections that one holder reopens. Less would be a connection flood, another attack.
const RENEWAL_PAUSE: Duration = Duration::from_millis(1);

/// Connections that are held open until drop, and reopened when the server closes them.
struct Holder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Holder {
    /// Opens connections from `source`. Sends `first` at the start of each one and `again` twice a second.
    fn start(count: usize, source: Ipv4Addr, to: SocketAddr, first: &'static [u8], again: &'static [u8]) -> Holder {
        let stop = Arc::new(AtomicBool::new(false));
        let opened = Arc::new(AtomicUsize::new(0));
        let (stopped, counter) = (Arc::clone(&stop), Arc::clone(&opened));
        let thread = std::thread::spawn(move || {
            let mut held: Vec<Option<TcpStream>> = (0..count).map(|_| None).collect();
            let mut sent = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                let sends = sent.elapsed() > Duration::from_millis(500);
                if sends {
                    sent = Instant::now();
                }
                for slot in &mut held {
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    let lives = slot.as_mut().is_some_and(|stream| is_open(stream, sends, again));
                    if !lives {
                        if counter.load(Ordering::Relaxed) >= count {
                            std::thread::sleep(RENEWAL_PAUSE);
                        }
                        *slot = connect_from(source, to, LIMITS[0]).filter(|stream| {
                            counter.fetch_add(1, Ordering::Relaxed);
                            stream.set_nonblocking(true).is_ok() && (&*stream).write_all(first).is_ok()
                        });
                    }
                }
            }
        });
        wait_until("the connections are held", || opened.load(Ordering::Relaxed) >= count);
        Holder { stop, thread: Some(thread) }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Returns true if the server has not closed a connection. Reads what has arrived, and sends `again` if `sends`.
fn is_open(stream: &mut TcpStream, sends: bool, again: &[u8]) -> bool {
    let sent = !sends || stream.write_all(again).is_ok();
    let read = loop {
        match stream.read(&mut [0; 4096]) {
            Ok(0) => break false,
            Ok(_) => {}
            Err(error) => break error.kind() == ErrorKind::WouldBlock,
        }
    };
    sent && read
}

/// Time limits of the attempts of a client and of a probe. The first are those of kubelet: a second, and three probes.
/// A busy machine, on which the attack takes most of the time, needs the others. Each is shorter than the deadline of
/// five seconds, after which a server that is locked up would answer too.
const LIMITS: [Duration; 8] = {
    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }
    [seconds(1), seconds(1), seconds(1), seconds(2), seconds(4), seconds(4), seconds(4), seconds(4)]
};

/// Returns true if a client from this address gets an answer over TCP in one of its attempts.
fn is_served(source: Ipv4Addr, to: SocketAddr) -> bool {
    LIMITS.iter().any(|limit| is_answered(source, to, *limit))
}

fn is_answered(source: Ipv4Addr, to: SocketAddr, limit: Duration) -> bool {
    let Some(mut stream) = connect_from(source, to, limit) else { return false };
    let message = query(1, "www.example.org.", Type::A);
    let length = u16::try_from(message.len()).expect("a short query").to_be_bytes();
    let mut start = [0; 14];
    stream.set_read_timeout(Some(limit)).is_ok()
        && stream.write_all(&[&length[..], &message].concat()).is_ok()
        && stream.read_exact(&mut start).is_ok()
        && start[2..4] == message[..2]
}

/// Waits until no other attack runs, and keeps others from starting. Each of them takes all cores and thousands of
/// connections, and the probes of one must be answered in time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    // An attack that failed has ended too.
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the resident memory of a process in MiB.
fn resident(id: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("its state");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") / 1024
}

/// Returns the number of connections that a test may hold: `wanted`, or fewer if the system limits them.
fn holdable(wanted: usize) -> usize {
    wanted.min(net::raise_descriptor_limit().saturating_sub(OTHER_DESCRIPTORS))
}

/// Probes a page until it is served in time, or returns the last failure.
fn probe(source: Ipv4Addr, to: SocketAddr, path: &str) -> Result<(), String> {
    let mut outcome = Err("no attempt".to_owned());
    for limit in LIMITS {
        outcome = outcome.or_else(|_| probe_once(source, to, path, limit));
    }
    outcome
}

/// Probes a page like kubelet, with a limit from the connect to the last byte.
fn probe_once(source: Ipv4Addr, to: SocketAddr, path: &str, limit: Duration) -> Result<(), String> {
    let start = Instant::now();
    let mut stream = connect_from(source, to, limit).ok_or("no connection in time")?;
    stream.set_read_timeout(Some(limit)).map_err(|error| error.to_string())?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").map_err(|error| error.to_string())?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(|error| format!("{error} after {:?}", start.elapsed()))?;
    let taken = start.elapsed();
    if text.starts_with("HTTP/1.1 200") && taken < limit {
        return Ok(());
    }
    Err(format!("after {taken:?}: {text}"))
}

#[test]
fn held_connections_do_not_fail_probes() {
    let _alone = alone();
    let folder = Folder::new("pages-held");
    let corefile = ".:0 {\nbind 127.0.0.1\nhealth 127.0.0.1:0\nready 127.0.0.1:0\nprometheus 127.0.0.1:0\nwhoami\n}\n";
    let mut server = Server::start(&folder.write("Corefile", corefile));
    let pages = server.address_of("127.0.0.1:0");
    let (attacker, other) = (Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::LOCALHOST);
    let request = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    for (kind, first, again) in [
        ("silent", &b""[..], &b""[..]),
        ("one byte per 500 ms", b"GET /health HTTP/1.1\r\nH", b"X"),
        ("kept alive", request, request),
    ] {
        let _holder = Holder::start(holdable(5000), attacker, pages, first, again);
        for number in 0..5 {
            for (source, path) in [(other, "/health"), (attacker, "/ready"), (other, "/metrics")] {
                assert_eq!(probe(source, pages, path), Ok(()), "{kind}, probe {number} of {path} from {source}");
            }
        }
    }
    let metrics = page(pages, "/metrics").expect("metrics").1;
    assert!(metrics.contains("portolan_limit_hits_total{limit=\"page_connections\"}"), "{metrics}");
}

#[test]
fn times_out_a_slow_request_head_but_not_an_idle_connection() {
    let _alone = alone();
    let folder = Folder::new("pages-slow");
    let mut server = Server::start(&folder.write("Corefile", ".:0 {\nbind 127.0.0.1\nhealth 127.0.0.1:0\nwhoami\n}\n"));
    let pages = server.address_of("127.0.0.1:0");
    let open = || {
        let stream = TcpStream::connect(pages).expect("a connection");
        stream.set_nonblocking(true).expect("a mode");
        stream
    };
    let (mut kept, mut slow, mut silent) = (open(), open(), open());
    kept.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").expect("room");
    let start = Instant::now();
    let mut sent = start;
    wait_until("both are closed", || {
        let sends = sent.elapsed() > Duration::from_millis(200);
        if sends {
            sent = Instant::now();
        }
        let open = [is_open(&mut slow, sends, b"X"), is_open(&mut silent, false, b"")];
        open == [false, false]
    });
    assert!(start.elapsed() > Duration::from_secs(4) && is_open(&mut kept, false, b""));
}

const WHOAMI: &str = "bind 127.0.0.1\nhosts /dev/null {\n192.0.2.1 www.example.org\n}\n";

#[test]
fn idle_connections_of_one_address_do_not_lock_out_others() {
    let _alone = alone();
    let folder = Folder::new("streams-held");
    let corefile = format!("grpc://.:0 {{\n{WHOAMI}}}\n.:0 {{\nprometheus 127.0.0.1:0\n{WHOAMI}}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let streams = server.address_of("dns://127.0.0.1:0");
    let calls = server.address_of("grpc://127.0.0.1:0");
    let pages = server.address_of("127.0.0.1:0");
    let attacker = Ipv4Addr::new(127, 0, 0, 2);
    let holder = Holder::start(holdable(9000), attacker, streams, b"", b"");
    for number in 0..10 {
        assert!(is_served(Ipv4Addr::LOCALHOST, streams), "client {number}");
        assert!(is_served(attacker, streams), "client {number} of the attacker's address");
    }
    drop(holder);

    // gRPC connections have a separate limit.
    let _holder = Holder::start(holdable(300), attacker, calls, b"", b"");
    let passing_on = format!(".:0 {{\nbind 127.0.0.1\ngrpc . {calls}\n}}\n");
    let mut other = Server::start(&folder.write("other", &passing_on));
    let mut client = Client::new(other.address_of("dns://127.0.0.1:0"));
    let answer = client.ask("www.example.org.", Type::A).expect("an answer");
    assert_eq!(answer.rcode(), Rcode::NOERROR);
    let metrics = page(pages, "/metrics").expect("metrics").1;
    assert!(metrics.contains("portolan_limit_hits_total{limit=\"streams\"}"), "{metrics}");
}

#[test]
fn unfinished_queries_do_not_exhaust_memory() {
    let _alone = alone();
    let folder = Folder::new("streams-memory");
    let corefile = format!(".:0 {{\nprometheus 127.0.0.1:0\n{WHOAMI}}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let (streams, pages) = (server.address_of("dns://127.0.0.1:0"), server.address_of("127.0.0.1:0"));
    assert!(is_served(Ipv4Addr::LOCALHOST, streams));
    let before = resident(server.id());
    let unfinished = [&[0xff, 0xff][..], &[b'A'; 60_000]].concat();
    let mut peak = 0;
    let held: Vec<_> = (0..holdable(4000))
        .filter_map(|number| {
            let source = Ipv4Addr::new(127, 0, 0, 2 + u8::try_from(number % 8).expect("less than 8"));
            let mut stream = connect_from(source, streams, LIMITS[0])?;
            stream.set_nonblocking(true).ok()?;
            // Bytes that the server does not read stay in kernel buffers and do not count.
            let _ = stream.write(&unfinished);
            if number % 100 == 0 {
                peak = resident(server.id()).max(peak);
            }
            Some(stream)
        })
        .collect();
    peak = resident(server.id()).max(peak);
    assert!(peak <= before + 64, "{before} MiB before, {peak} MiB with {} connections", held.len());
    assert!(is_served(Ipv4Addr::LOCALHOST, streams));
    let metrics = page(pages, "/metrics").expect("metrics").1;
    assert!(metrics.contains("portolan_limit_hits_total{limit=\"stream_buffers\"}"), "{metrics}");
    drop(held);
    wait_until("memory is given back", || resident(server.id()) <= before + 24);
}

#[test]
fn one_name_with_a_silent_upstream_does_not_exhaust_memory() {
    let _alone = alone();
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let upstream = silent.local_addr().expect("an address");
    let folder = Folder::new("silent-upstream");
    let corefile = format!(
        ".:0 {{\nbind 127.0.0.1\nhosts /dev/null {{\n192.0.2.1 www.example.org\nfallthrough\n}}\n\
         forward . {upstream} {{\nmax_concurrent 100\n}}\n}}\n"
    );
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let address = server.address_of("dns://127.0.0.1:0");
    let (mut local, attacker) = (Client::new(address), UdpSocket::bind("127.0.0.1:0").expect("a socket"));
    attacker.connect(address).expect("an address");
    attacker.set_nonblocking(true).expect("a mode");
    let before = resident(server.id());
    let mut refused = 0;
    let mut buffer = [0; 512];
    for number in 0..6000_u16 {
        attacker.send(&query(number, "silent.example.net.", Type::A)).expect("a query leaves");
        while attacker.recv(&mut buffer).is_ok() {
            refused += usize::from(buffer[3] & 15 == 5);
        }
        if number % 60 == 0 {
            assert_eq!(local.ask("www.example.org.", Type::A).expect("an answer").rcode(), Rcode::NOERROR);
        }
    }
    wait_until("all but those that wait are refused", || {
        while attacker.recv(&mut buffer).is_ok() {
            refused += usize::from(buffer[3] & 15 == 5);
        }
        refused >= 5000
    });
    let after = resident(server.id());
    assert!(after <= before + 40, "{before} MiB before, {after} MiB after");
}

/// Starts an upstream that appends the record for the first label of the name to the question. Also returns its query
/// counter.
fn lying_upstream(lies: &'static [(&'static str, u8, &'static [u8])]) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("an address");
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let Some(end) = wire::question_end(&buffer[..length]) else { continue };
            let label = &buffer[13..13 + usize::from(buffer[12])];
            let Some((_, opcode, record)) = lies.iter().find(|(name, ..)| name.as_bytes() == label) else { continue };
            counter.fetch_add(1, Ordering::SeqCst);
            let mut reply = buffer[..end].to_vec();
            reply[2..12].copy_from_slice(&[0x80 | opcode << 3, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]);
            reply.extend_from_slice(record);
            let _ = socket.send_to(&reply, peer);
        }
    });
    (address, asked)
}

/// Many clients ask for names of a zone whose servers are silent: none of them is greedy, and together they want more
/// places than there are.
#[test]
fn a_silent_zone_leaves_places_for_the_zones_of_other_forward_lines() {
    let _alone = alone();
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let (upstream, _) = lying_upstream(&[("good", 0, b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01")]);
    let folder = Folder::new("silent-zone");
    let corefile = format!(
        ".:0 {{\nbind 127.0.0.1\nprometheus localhost:0\nhosts /dev/null {{\n192.0.2.1 www.example.org\n\
         fallthrough\n}}\nforward silent.test {}\nforward . {upstream}\n}}\n",
        silent.local_addr().expect("an address")
    );
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let pages = server.address_of("localhost:0");
    let address = server.address_of("dns://127.0.0.1:0");
    let mut other = Client::new(address).waiting(PATIENCE);
    let is_reached = || {
        let hits = "portolan_limit_hits_total{limit=\"parked_queries\"} ";
        page(pages, "/metrics").is_some_and(|(_, text)| text.lines().any(|line| line.starts_with(hits)))
    };
    // Queries that have waited for seconds fail, so that the flood must go on until the others have their answers.
    let mut number = 0_u16;
    let mut flood = |other: &mut Client| {
        for _ in 0..32 {
            let [high, low] = number.to_be_bytes();
            let client = UdpSocket::bind((Ipv4Addr::new(127, 1, high, low.max(1)), 0)).expect("a socket");
            for question in 0..8 {
                let name = format!("n{number}-{question}.silent.test.");
                client.send_to(&query(question, &name, Type::A), address).expect("a query leaves");
            }
            number = number.wrapping_add(1);
        }
        assert_eq!(other.ask("www.example.org.", Type::A).expect("an answer").rcode(), Rcode::NOERROR);
    };
    wait_until("a limit is reached", || {
        flood(&mut other);
        is_reached()
    });
    // One client may be counted together with the silent zone, whatever the seed; three are not.
    let answered = (2..5).map(|number| {
        let mut client = Client::at(Ipv4Addr::new(127, 0, 0, number).into(), address).waiting(PATIENCE);
        let is_answered = |_: &u16| {
            flood(&mut other);
            client.ask("good.test.", Type::A).is_some_and(|answer| answer.rcode() == Rcode::NOERROR)
        };
        (0..20_u16).filter(is_answered).count()
    });
    assert_eq!(answered.max(), Some(20));
}

#[test]
fn drops_malformed_upstream_responses_without_caching_them() {
    let _alone = alone();
    const GOOD: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01";
    let (upstream, asked) = lying_upstream(&[
        ("good", 0, GOOD),
        ("short", 0, b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x03\xc0\0\x02"),
        ("forward", 0, b"\xc0\xff\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x01"),
        ("itself", 0, b"\xc0\x0c\0\x05\0\x01\0\0\0\x3c\0\x02\xc0\x2d"),
        ("opcode", 4, GOOD),
    ]);
    let folder = Folder::new("malformed-replies");
    let forward = format!("forward . {upstream} {{\nread_timeout 1s\nmax_connect_attempts 1\n}}");
    let corefile = format!(".:0 {{\nbind 127.0.0.1\ncache {{\nservfail 0\n}}\n{forward}\n}}\n");
    let mut server = Server::start(&folder.write("Corefile", &corefile));
    let mut client = Client::new(server.address_of("dns://127.0.0.1:0")).waiting(PATIENCE);
    for (label, ede) in [("short", 24), ("forward", 24), ("itself", 24), ("opcode", 22)] {
        for _ in 0..2 {
            let before = asked.load(Ordering::SeqCst);
            let answer = client.ask(&format!("{label}.test."), Type::A).expect("an answer");
            assert_eq!((answer.rcode(), answer.ede()), (Rcode::SERVFAIL, Some(ede)), "{label}");
            assert!(asked.load(Ordering::SeqCst) > before, "{label} was kept");
        }
    }
    assert_eq!(client.ask("good.test.", Type::A).expect("an answer").addresses().len(), 1);
}
