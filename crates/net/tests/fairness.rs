//! Fair shares: a client that floods leaves parked queries and CPU time for other clients.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::{CpuLimit, WorkerLimits};
use support::{PATIENCE, Running, Upstream, question, receive, wait_until};
use testkit::Question;
use wire::{Rcode, Type};

/// Queries that one client sends before it asks for a local name. They fit into any receive queue.
const CHUNK: u16 = 32;
/// Bound of parked queries in these tests.
const PARKED: u16 = 64;

/// Lines that answer `local.test.` from records, and other names by this upstream.
fn lines(upstream: &Upstream) -> String {
    format!("records local.test {{\nlocal.test. 60 IN A 192.0.2.1\n}}\noutward {}", upstream.address())
}

/// Client with its own address.
fn client(running: &Running, number: u8) -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, number), 0)).expect("a socket");
    socket.connect(running.address).expect("an address");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    socket
}

/// Sends `count` questions for different names with this first label, and waits until the server has read them.
fn flood(socket: &UdpSocket, label: &str, count: u16) {
    for number in 0..count {
        let asked = question(number, &format!("{label}{number}.test."), Type::A);
        socket.send(&asked.packet()).expect("a query leaves");
        if number % CHUNK == CHUNK - 1 {
            local_answer(socket);
        }
    }
    local_answer(socket);
}

/// Asks for a local name, and returns the code of its answer. Answers to other questions are skipped.
fn local_answer(socket: &UdpSocket) -> Rcode {
    const LOCAL: u16 = 0xffff;
    socket.send(&question(LOCAL, "local.test.", Type::A).packet()).expect("a query leaves");
    loop {
        let answer = receive(socket);
        if answer.header.id == LOCAL {
            return answer.header.flags.rcode();
        }
    }
}

/// Answers the questions whose first label begins with `fast`, and no others.
fn serve_fast(upstream: Upstream) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok((length, from)) = upstream.0.recv_from(&mut buffer) {
            if buffer[13..].starts_with(b"fast") {
                upstream.answer(&(buffer[..length].to_vec(), from));
            }
        }
    });
}

fn ask(socket: &UdpSocket, asked: &Question) -> Rcode {
    socket.send(&asked.packet()).expect("a query leaves");
    receive(socket).header.flags.rcode()
}

/// Series of a limit.
fn hits(running: &Running, limit: &str) -> f64 {
    running.metric(&format!("portolan_limit_hits_total{{limit=\"{limit}\"}}"))
}

fn small() -> WorkerLimits {
    WorkerLimits { parked_max: PARKED.into(), ..WorkerLimits::default() }
}

#[test]
fn a_flood_of_a_silent_zone_leaves_places_for_another_client() {
    let upstream = Upstream::new();
    let running = Running::start_with(&lines(&upstream), small());
    serve_fast(upstream);
    let (greedy, other) = (client(&running, 2), client(&running, 3));
    flood(&greedy, "silent", 4 * PARKED);
    assert!(hits(&running, "parked_queries") > 0.0);
    for number in 0..200 {
        let asked = question(number, &format!("fast{number}.test."), Type::A);
        assert_eq!(ask(&other, &asked), Rcode::NOERROR);
    }
}

/// Many clients, of which none is greedy, ask for names of a zone whose servers are silent.
#[test]
fn a_silent_zone_leaves_places_for_other_zones_whoever_asks() {
    let (upstream, silent) = (Upstream::new(), Upstream::new());
    // The second server block has the same listener.
    let blocks = format!("{}\n}}\nsilent.test {{\noutward {}", lines(&upstream), silent.address());
    let running = Running::start_with(&blocks, small());
    serve_fast(upstream);
    // Each has its own address, and more of them ask than there are places.
    let clients: Vec<UdpSocket> = (2..=250).map(|number| client(&running, number)).collect();
    for (number, client) in (0..).zip(&clients) {
        client.send(&question(number, &format!("a{number}.silent.test."), Type::A).packet()).expect("a query leaves");
        local_answer(client);
    }
    assert!(hits(&running, "parked_queries") > 0.0);
    // One client may be counted together with the silent zone, whatever the seed; three are not.
    let answered = (251..=253).map(|number| {
        let other = client(&running, number);
        let asked = |number| question(number, &format!("fast{number}.test."), Type::A);
        (0..50).filter(|number| ask(&other, &asked(*number)) == Rcode::NOERROR).count()
    });
    assert_eq!(answered.max(), Some(50));
}

#[test]
fn pipelined_queries_leave_places_for_another_client() {
    // The listener accepts connections and answers nothing.
    let (socket, _silent) = testkit::ports::bind_pair();
    let upstream = Upstream(socket);
    let running = Running::start_with(&lines(&upstream), small());
    serve_fast(upstream);
    let mut streams = [running.connect(), running.connect()];
    for stream in &mut streams {
        for number in 0..PARKED {
            stream.send(&question(number, &format!("silent{number}.test."), Type::A).packet());
        }
    }
    // The queries that find no place are answered, and all others wait.
    wait_until("a limit is reached", || hits(&running, "parked_queries") > 0.0);
    let other = client(&running, 3);
    for number in 0..200 {
        let asked = question(number, &format!("fast{number}.test."), Type::A);
        assert_eq!(ask(&other, &asked), Rcode::NOERROR);
    }
}

#[test]
fn a_flood_above_the_cpu_limit_leaves_time_for_others() {
    // So little that the queries of the flood have to wait on any machine.
    let limit = CpuLimit { quota: Duration::from_millis(1), period: Duration::from_millis(100) };
    let upstream = Upstream::new();
    let running = Running::start_with(&lines(&upstream), WorkerLimits { cpu: Some(limit), ..WorkerLimits::default() });
    serve_fast(upstream);
    let greedy = client(&running, 2);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                flood(&greedy, "fast-flood", 512);
            }
        });
        let _stop = Stop(&stop);
        wait_until("queries of the flood are refused", || hits(&running, "cpu_time") > 0.0);
        // One client may share the line of the flood, whatever the seed; three do not.
        let others = [client(&running, 3), client(&running, 4), client(&running, 5)];
        let answered = others.iter().map(|other| {
            let asked = |number| question(number, &format!("fast{number}.test."), Type::A);
            assert_eq!(local_answer(other), Rcode::NOERROR);
            (0..20).filter(|number| ask(other, &asked(*number)) == Rcode::NOERROR).count()
        });
        let most = answered.max();
        assert!(most >= Some(10), "{most:?} of 20 were answered");
    });
}

/// Ends the flood, also if the test fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
