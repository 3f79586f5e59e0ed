//! Clients over real sockets: fast ones, slow ones, and those that use another protocol.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test may fail, and is the outside world"
)]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use net::StreamLimits;
use support::{Running, Upstream, datagrams, framed, option, question, receive, wait_until};
use wire::{OptionCode, Rcode, Type};

const RECORDS: &str = "records {\nfallthrough slow.test\nwww.test. 30 IN A 192.0.2.1\n}";

/// Limits that end an idle connection quickly, but not one whose client waits for a busy machine.
fn short() -> StreamLimits {
    let [read, idle, write] = [700, 1000, 1000].map(Duration::from_millis);
    StreamLimits { open_max: 100, read, idle, write, ..StreamLimits::default() }
}

/// More than fits into one answer: 300 strings of 250 bytes.
fn large() -> String {
    let records: Vec<_> = (0..300).map(|number| format!("large.test. 30 IN TXT \"{number:0250}\"")).collect();
    format!("records {{\n{}\nwww.test. 30 IN A 192.0.2.1\n}}", records.join("\n"))
}

#[test]
fn answers_a_thousand_pipelined_queries() {
    let server = Running::start(RECORDS, StreamLimits::default());
    let mut stream = server.connect();
    let all: Vec<u8> = (0..1000).flat_map(|id| framed(&question(id, "www.test.", Type::A).packet())).collect();
    stream.0.write_all(&all).unwrap();
    for id in 0..1000 {
        let answer = stream.receive().unwrap();
        assert_eq!((answer.header.id, answer.header.flags.rcode(), answer.header.answers), (id, Rcode::NOERROR, 1));
    }
}

#[test]
fn answers_queries_that_arrive_byte_by_byte() {
    let server = Running::start(RECORDS, StreamLimits::default());
    let mut stream = server.connect();
    let two = [1, 2].map(|id| framed(&question(id, "www.test.", Type::A).packet())).concat();
    for byte in two {
        stream.0.write_all(&[byte]).unwrap();
    }
    assert_eq!([1, 2].map(|_| stream.receive().unwrap().header.id), [1, 2]);
}

#[test]
fn sends_answers_as_they_are_ready() {
    let upstream = Upstream::new();
    let server =
        Running::start(&format!("outward {} slow.test\n{RECORDS}", upstream.address()), StreamLimits::default());
    // Over UDP, so that the server queries the upstream over UDP. Over TCP the test plugin queries over TCP.
    let socket = datagrams(server.address);
    socket.send(&question(1, "a.slow.test.", Type::A).packet()).unwrap();
    let query = upstream.query();
    socket.send(&question(2, "www.test.", Type::A).packet()).unwrap();
    assert_eq!(receive(&socket).header.id, 2);
    upstream.answer(&query);
    assert_eq!(receive(&socket).header.id, 1);
}

/// Accepts one connection of a TCP upstream.
fn accept(listener: &std::net::TcpListener) -> support::Stream {
    listener.set_nonblocking(true).unwrap();
    let mut accepted = None;
    wait_until("a connection", || {
        accepted = listener.accept().ok();
        accepted.is_some()
    });
    let (stream, _) = accepted.unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(support::PATIENCE)).unwrap();
    support::Stream(stream)
}

#[test]
fn one_stream_gets_its_answers_out_of_order() {
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let lines = format!("outward {} slow.test\n{RECORDS}", upstream.local_addr().unwrap());
    let server = Running::start(&lines, StreamLimits::default());
    let mut stream = server.connect();
    stream.send(&question(1, "a.slow.test.", Type::A).packet());
    let mut one = accept(&upstream);
    let first = one.receive_bytes().unwrap();
    stream.send(&question(2, "b.slow.test.", Type::A).packet());
    stream.send(&question(3, "www.test.", Type::A).packet());
    assert_eq!(stream.receive().unwrap().header.id, 3);
    let mut other = accept(&upstream);
    let second = other.receive_bytes().unwrap();
    for (upstream, query, id) in [(&mut other, second, 2), (&mut one, first, 1)] {
        upstream.send(&support::answer_to(&query));
        assert_eq!(stream.receive().unwrap().header.id, id);
    }
}

#[test]
fn a_client_that_has_shut_down_its_side_gets_pending_answers() {
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    // The idle timeout is shorter than the time to the answer. Waiting does not count as idle.
    let server = Running::start(&format!("outward {}", upstream.local_addr().unwrap()), short());
    let mut stream = server.connect();
    stream.send(&question(7, "a.test.", Type::A).packet());
    stream.finish();
    let mut connection = accept(&upstream);
    let query = connection.receive_bytes().unwrap();
    let start = Instant::now();
    server.connect().wait_for_end();
    assert!(start.elapsed() >= short().read, "a silent client is closed only after the timeout");
    connection.send(&support::answer_to(&query));
    assert_eq!(stream.receive().unwrap().header.id, 7);
    stream.wait_for_end();
}

#[test]
fn waiting_for_an_answer_does_not_count_as_idle() {
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Running::start(&format!("outward {} slow.test\n{RECORDS}", upstream.local_addr().unwrap()), short());
    let mut stream = server.connect();
    stream.send(&question(1, "a.slow.test.", Type::A).packet());
    let mut connection = accept(&upstream);
    let query = connection.receive_bytes().unwrap();
    // The server closes another idle client, but not this one.
    let start = Instant::now();
    let mut other = server.connect();
    other.ask(&question(1, "www.test.", Type::A)).unwrap();
    other.wait_for_end();
    assert!(start.elapsed() >= short().idle);
    let start = Instant::now();
    connection.send(&support::answer_to(&query));
    assert_eq!(stream.receive().unwrap().header.id, 1);
    // The full idle timeout starts again after the answer.
    stream.wait_for_end();
    assert!(start.elapsed() >= short().idle);
}

#[test]
fn closes_idle_streams() {
    let server = Running::start(RECORDS, short());
    let start = Instant::now();
    server.connect().wait_for_end();
    assert!(start.elapsed() >= short().read);
    let start = Instant::now();
    let mut once = server.connect();
    once.ask(&question(1, "www.test.", Type::A)).unwrap();
    once.wait_for_end();
    assert!(start.elapsed() >= short().idle);
}

#[test]
fn closes_a_stream_whose_query_never_completes() {
    let server = Running::start(RECORDS, short());
    let mut stream = server.connect();
    let start = Instant::now();
    let query = framed(&question(1, "www.test.", Type::A).packet());
    // One byte after the other, and never the last one.
    let ended = query.iter().cycle().find(|byte| {
        stream.0.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let byte = if start.elapsed() < Duration::from_millis(1) { query[0] } else { **byte };
        let gone = stream.0.write_all(&[byte]).is_err();
        gone || matches!(stream.0.read(&mut [0]), Ok(0))
    });
    assert!(ended.is_some() && start.elapsed() < support::PATIENCE);
}

#[test]
fn a_stream_above_the_limit_evicts_the_idlest_one_and_is_counted() {
    let limits = StreamLimits { open_max: 3, per_address_max: 2, ..StreamLimits::default() };
    let server = Running::start(RECORDS, limits);
    let mut streams: Vec<_> = (0..2).map(|_| server.connect()).collect();
    for (id, at) in [(1, 0), (2, 1), (3, 0)] {
        streams[at].ask(&question(id, "www.test.", Type::A)).unwrap();
    }
    let mut third = server.connect();
    assert!(third.ask(&question(4, "www.test.", Type::A)).is_some());
    streams[1].wait_for_end();
    assert!(streams[0].ask(&question(5, "www.test.", Type::A)).is_some());
    assert_eq!(server.metric("portolan_limit_hits_total{limit=\"streams\"}"), 1.0);
}

#[test]
fn refuses_long_queries_without_room_in_the_budget() {
    let limits = StreamLimits { buffered_max: 20_000, ..StreamLimits::default() };
    let server = Running::start(RECORDS, limits);
    let mut long = question(1, "www.test.", Type::A);
    long.options.push((OptionCode(12), vec![0; 15_000]));
    let (unfinished, mut second) = (framed(&long.packet()), server.connect());
    let mut first = server.connect();
    first.0.write_all(&unfinished[..unfinished.len() - 1]).unwrap();
    wait_until("the second is refused", || {
        second = server.connect();
        let sent = second.0.write_all(&unfinished[..unfinished.len() - 1]);
        second.0.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        sent.is_err() || !matches!(second.0.read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
    });
    assert!(server.metric("portolan_limit_hits_total{limit=\"stream_buffers\"}") >= 1.0);
    // Short queries need no reservation. The first client gets its answer after its query is complete.
    assert!(server.connect().ask(&question(2, "www.test.", Type::A)).is_some());
    first.0.write_all(&unfinished[unfinished.len() - 1..]).unwrap();
    assert_eq!(first.receive().unwrap().header.id, 1);
    drop(first);
    wait_until("there is room again", || server.connect().ask(&long).is_some());
}

#[test]
fn ignores_messages_that_are_not_queries() {
    let server = Running::start(RECORDS, short());
    let mut stream = server.connect();
    let response = support::answer_to(&question(1, "www.test.", Type::A).packet());
    for garbage in [&b""[..], b"short", &[0; 11], &response] {
        stream.send(garbage);
    }
    stream.send(&[0xff; 40].map(|byte| byte & 0x7f));
    stream.send(&question(9, "www.test.", Type::A).packet());
    let rejected = stream.receive_bytes().unwrap();
    assert_eq!(rejected.len(), 12, "messages with a header get an error response");
    assert_eq!(stream.receive().unwrap().header.id, 9);
    // Another protocol: its first bytes are read as a length, and the rest never comes.
    let mut other = server.connect();
    other.0.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    other.wait_for_end();
}

#[test]
fn answers_queries_of_65535_bytes() {
    let server = Running::start(&large(), StreamLimits::default());
    let mut stream = server.connect();
    let mut long = question(1, "www.test.", Type::A);
    let without = long.packet().len();
    // Padding option without meaning (RFC 7830).
    long.options.push((OptionCode(12), vec![0; 65_535 - without - 4]));
    assert_eq!(long.packet().len(), 65_535);
    assert_eq!(stream.ask(&long).unwrap().header.answers, 1);
    stream.send(&question(2, "large.test.", Type::TXT).packet());
    let answer = stream.receive_bytes().unwrap();
    assert!(answer.len() > 65_000, "{}", answer.len());
    let answer = testkit::Parsed::read(&answer).unwrap();
    assert!(answer.header.flags.truncated() && answer.header.answers > 200);
    // Over UDP the answer is truncated. The client can retry over TCP.
    let socket = datagrams(server.address);
    socket.send(&question(3, "large.test.", Type::TXT).packet()).unwrap();
    assert!(receive(&socket).header.flags.truncated());
}

#[test]
fn closes_clients_that_do_not_read() {
    let server = Running::start(&large(), short());
    let mut slow = server.connect();
    socket2::SockRef::from(&slow.0).set_recv_buffer_size(4096).unwrap();
    slow.0.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
    let query = framed(&question(1, "large.test.", Type::TXT).packet());
    let mut sent = 0;
    // The answers fill the buffers of both sides. Then the server stops reading, and in the end it closes.
    while slow.0.write_all(&query).is_ok() && sent < 5_000_000 {
        sent += query.len();
    }
    let mut other = server.connect();
    assert_eq!(other.ask(&question(2, "www.test.", Type::A)).unwrap().header.answers, 1);
    let mut buffer = vec![0; 1 << 20];
    wait_until("it is closed", || !matches!(slow.0.read(&mut buffer), Ok(bytes) if bytes > 0));
}

#[test]
fn slow_readers_get_all_answers() {
    let server = Running::start(&large(), StreamLimits::default());
    let mut stream = server.connect();
    let ids = 0..60;
    let all: Vec<u8> = ids.clone().flat_map(|id| framed(&question(id, "large.test.", Type::TXT).packet())).collect();
    stream.0.write_all(&all).unwrap();
    stream.finish();
    for id in ids {
        assert_eq!(stream.receive().unwrap().header.id, id);
    }
    stream.wait_for_end();
}

#[test]
fn sends_the_keepalive_timeout_over_tcp_if_asked() {
    let server = Running::start(RECORDS, short());
    let mut asking = question(1, "www.test.", Type::A);
    asking.options.push((OptionCode::TCP_KEEPALIVE, Vec::new()));
    let mut stream = server.connect();
    // Units of 100 ms (RFC 7828 §3.1).
    assert_eq!(option(&stream.ask(&asking).unwrap(), OptionCode::TCP_KEEPALIVE), Some(&[0, 10][..]));
    let plain = stream.ask(&question(2, "www.test.", Type::A)).unwrap();
    assert_eq!(option(&plain, OptionCode::TCP_KEEPALIVE), None);
    let socket = datagrams(server.address);
    socket.send(&asking.packet()).unwrap();
    assert_eq!(option(&receive(&socket), OptionCode::TCP_KEEPALIVE), None);
}

#[test]
fn answers_queries_in_flight_at_shutdown() {
    let upstream = Upstream::new();
    let mut server =
        Running::start(&format!("outward {} slow.test\n{RECORDS}", upstream.address()), StreamLimits::default());
    let socket = datagrams(server.address);
    socket.send(&question(1, "a.slow.test.", Type::A).packet()).unwrap();
    let query = upstream.query();
    let mut stream = server.connect();
    stream.ask(&question(2, "www.test.", Type::A)).unwrap();
    std::thread::scope(|scope| {
        let ending = scope.spawn(|| server.drain());
        // The idle stream ends while the query is still in flight.
        stream.wait_for_end();
        assert!(!ending.is_finished());
        upstream.answer(&query);
        assert_eq!(receive(&socket).header.id, 1);
    });
}

#[test]
fn handles_datagrams_of_all_lengths() {
    let server = Running::start(RECORDS, StreamLimits::default());
    let socket = datagrams(server.address);
    let mut padded = question(1, "www.test.", Type::A);
    padded.options.push((OptionCode(12), vec![0; 1900]));
    socket.send(&padded.packet()).unwrap();
    assert_eq!(receive(&socket).header.answers, 1);
    // Longer than the receive buffer, so it is cut and malformed.
    let mut long = question(2, "www.test.", Type::A);
    long.options.push((OptionCode(12), vec![0; 5000]));
    socket.send(&long.packet()).unwrap();
    assert_eq!(receive(&socket).header.flags.rcode(), Rcode::FORMERR);
    socket.send(&[]).unwrap();
    socket.send(&[0; 11]).unwrap();
    socket.send(&question(3, "www.test.", Type::A).packet()).unwrap();
    assert_eq!(receive(&socket).header.id, 3, "messages shorter than a header get no response");
}

#[test]
fn a_burst_of_datagrams_is_answered() {
    let server = Running::start(RECORDS, StreamLimits::default());
    let socket = datagrams(server.address);
    for round in 0..10 {
        let ids: std::collections::BTreeSet<u16> = (round * 100..round * 100 + 100).collect();
        for id in &ids {
            socket.send(&question(*id, "www.test.", Type::A).packet()).unwrap();
        }
        let answered: std::collections::BTreeSet<u16> = ids.iter().map(|_| receive(&socket).header.id).collect();
        assert_eq!(answered, ids);
    }
}
