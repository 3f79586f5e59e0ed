//! DNS over QUIC: queries and answers over good and bad networks, and what the standard forbids.

use std::time::Duration;

use quic::Protocol;
use quic::doq::code::{NO_ERROR, PROTOCOL_ERROR, REQUEST_CANCELLED};
use quinn_proto::{ConnectionError, ReadError};

use crate::simulation::{QUERY, Reply, Simulation, code, framed};

fn simulation() -> Simulation {
    Simulation::new(Protocol::Doq, 1)
}

#[test]
fn answers_a_query_and_ends_the_stream() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    for _ in 0..3 {
        assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
    }
    let server = &simulation.servers[0];
    assert_eq!((server.asked, server.responded.as_slice()), (3, &[NO_ERROR; 3][..]));
    simulation.run_for(Duration::from_secs(1));
    assert_eq!(simulation.servers[0].process.held.get(), 0, "all memory is free");
}

#[test]
fn answers_ten_thousand_queries_on_one_connection() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    // A new client may have 20 queries in flight, and more as soon as it uses them.
    for at_once in [20].into_iter().chain([100; 99]).chain([80]) {
        let streams: Vec<_> = (0..at_once).map(|_| simulation.write(connection, &framed(QUERY), true)).collect();
        for stream in streams {
            assert_eq!(simulation.read_to_end(connection, stream), Ok(framed(QUERY)));
        }
    }
    assert_eq!(simulation.servers[0].asked, 10_000);
}

#[test]
fn answers_queries_of_every_size_over_a_bad_network() {
    for seed in 0..20 {
        let mut simulation = Simulation::new(Protocol::Doq, seed);
        (simulation.network.lost, simulation.network.repeated, simulation.network.reordered) = (0.1, 0.1, 0.3);
        let connection = simulation.connect();
        for length in [17, 500, 1200, 5000, 20_000, 65_535] {
            let mut query = QUERY.to_vec();
            query.resize(length, 7);
            let id = simulation.connection(connection).streams().open(quinn_proto::Dir::Bi).unwrap();
            let bytes = framed(&query);
            let (mut sent, mut answer) = (0, Vec::new());
            let ended = simulation.run_until(|simulation| {
                while sent < bytes.len() {
                    match simulation.connection(connection).send_stream(id).write(&bytes[sent..]) {
                        Ok(written) => sent += written,
                        Err(_) => return false,
                    }
                    if sent == bytes.len() {
                        simulation.connection(connection).send_stream(id).finish().unwrap();
                    }
                }
                simulation.read(connection, id, &mut answer) == Ok(())
            });
            assert!(ended, "seed {seed}, length {length}, sent {sent}, read {}", answer.len());
            assert_eq!(answer, bytes, "seed {seed}, length {length}");
        }
        simulation.run_for(Duration::from_secs(2));
        assert_eq!(simulation.servers[0].process.held.get(), 0, "seed {seed}");
    }
}

#[test]
fn answers_a_query_without_the_end_of_the_stream() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    let stream = simulation.write(connection, &framed(QUERY), false);
    assert_eq!(simulation.read_to_end(connection, stream), Ok(framed(QUERY)));
    simulation.run_for(Duration::from_secs(5));
    assert_eq!(simulation.servers[0].process.held.get(), 0);
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
}

#[test]
fn answers_arrive_when_they_are_ready_in_any_order() {
    let mut simulation = simulation();
    simulation.servers[0].answerer =
        Box::new(|query| if query.len() > 17 { Reply::Later } else { Reply::Now(query.to_vec()) });
    let connection = simulation.connect();
    let slow = simulation.write(connection, &framed(&[QUERY, b"xx"].concat()), true);
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
    // The query has arrived, so the time limit for its arrival does not count.
    simulation.run_for(Duration::from_secs(4));
    let now = simulation.now;
    simulation.servers[0].answer_waiting(now, b"late");
    assert_eq!(simulation.read_to_end(connection, slow), Ok(framed(b"late")));
}

#[test]
fn sends_answers_of_any_length_whole() {
    let mut simulation = simulation();
    simulation.servers[0].answerer = Box::new(|_| Reply::Now(vec![7; 65_535]));
    let connection = simulation.connect();
    let streams: Vec<_> = (0..5).map(|_| simulation.write(connection, &framed(QUERY), true)).collect();
    for stream in streams {
        assert_eq!(simulation.read_to_end(connection, stream).map(|answer| answer.len()), Ok(65_537));
    }
}

#[test]
fn sends_answers_of_many_messages_on_one_stream() {
    let mut simulation = simulation();
    let messages: Vec<Vec<u8>> = (0..20).map(|number| vec![number; 30_000]).collect();
    let answers = messages.clone();
    simulation.servers[0].answerer = Box::new(move |_| Reply::Many(answers.clone()));
    let connection = simulation.connect();
    let all: Vec<u8> = messages.iter().flat_map(|message| framed(message)).collect();
    assert_eq!(simulation.ask(connection, QUERY), Ok(all));
    let most = simulation.servers[0].process.held_most.get();
    assert!(most < 64 << 10, "only one message is in memory, not {most} bytes");
}

#[test]
fn a_query_without_an_answer_ends_with_an_internal_error() {
    let mut simulation = simulation();
    simulation.servers[0].answerer = Box::new(|_| Reply::Never);
    let connection = simulation.connect();
    assert_eq!(simulation.ask(connection, QUERY), Err(ReadError::Reset(code(1))));
    assert_eq!(simulation.servers[0].responded, [1]);
}

#[test]
fn protocol_errors_close_the_connection() {
    let mut with_id = QUERY.to_vec();
    with_id[1] = 1;
    let mut keepalive = QUERY.to_vec();
    keepalive[11] = 1;
    keepalive.extend_from_slice(b"\0\0\x29\x04\xd0\0\0\0\0\0\x04\0\x0b\0\0");
    let rows: [(&str, Vec<u8>); 8] = [
        ("the message ID is not 0", framed(&with_id)),
        ("the option edns-tcp-keepalive is not allowed", framed(&keepalive)),
        ("the message is empty", framed(&[])),
        ("the message is too short", framed(&[0; 11])),
        ("the stream ends before the message", framed(QUERY)[..18].to_vec()),
        ("the stream ends before the message", vec![0]),
        ("bytes follow the message", [framed(QUERY), vec![0]].concat()),
        ("bytes follow the message", [framed(QUERY), framed(QUERY)].concat()),
    ];
    for (reason, bytes) in rows {
        let mut simulation = simulation();
        let connection = simulation.connect();
        simulation.write(connection, &bytes, true);
        simulation.run_for(Duration::from_secs(1));
        assert_eq!(simulation.clients[0].closed_with(), (u64::from(PROTOCOL_ERROR), reason.to_owned()));
        assert_eq!(simulation.servers[0].responded, [PROTOCOL_ERROR]);
        assert_eq!(simulation.servers[0].process.open.get(), 0);
    }
}

#[test]
fn an_empty_stream_is_a_protocol_error() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    simulation.write(connection, &[], true);
    simulation.run_for(Duration::from_secs(1));
    assert_eq!(simulation.clients[0].closed_with().0, u64::from(PROTOCOL_ERROR));
}

#[test]
fn bytes_after_the_answer_are_a_protocol_error() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    let stream = simulation.write(connection, &framed(QUERY), false);
    assert_eq!(simulation.read_to_end(connection, stream), Ok(framed(QUERY)));
    simulation.connection(connection).send_stream(stream).write(b"x").unwrap();
    simulation.run_for(Duration::from_secs(1));
    assert_eq!(simulation.clients[0].closed_with().0, u64::from(PROTOCOL_ERROR));
}

#[test]
fn clients_of_other_protocols_fail_in_the_handshake() {
    let mut simulation = simulation();
    let mut config = simulation.certificates.client.clone();
    config.alpn_protocols = vec![b"dq".to_vec()];
    simulation.certificates.client = config;
    simulation.connect();
    simulation.run_for(Duration::from_secs(1));
    match simulation.clients[0].lost.as_slice() {
        // 0x178: no_application_protocol.
        [ConnectionError::ConnectionClosed(close)] => assert_eq!(u64::from(close.error_code), 0x178),
        other => panic!("{other:?}"),
    }
    assert_eq!(simulation.servers[0].process.open.get(), 0);
}

#[test]
fn one_slow_stream_ends_alone() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    let slow = simulation.write(connection, &framed(QUERY)[..1], false);
    simulation.run_for(Duration::from_millis(2900));
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
    assert_eq!(simulation.read_to_end(connection, slow), Err(ReadError::Reset(code(REQUEST_CANCELLED))));
    let waited = simulation.now - simulation.start;
    assert!((3000..3100).contains(&waited.as_millis()), "{waited:?}");
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
    assert!(simulation.clients[0].lost.is_empty());
}

#[test]
fn a_cancelled_query_is_reported_and_the_connection_lives_on() {
    let mut simulation = simulation();
    simulation.servers[0].answerer = Box::new(|_| Reply::Later);
    let connection = simulation.connect();
    let stream = simulation.write(connection, &framed(QUERY), true);
    simulation.run_for(Duration::from_millis(100));
    simulation.connection(connection).recv_stream(stream).stop(code(REQUEST_CANCELLED)).unwrap();
    simulation.run_for(Duration::from_millis(100));
    let server = &mut simulation.servers[0];
    assert_eq!((server.cancelled.len(), server.waiting.len()), (1, 1));
    assert_eq!(server.cancelled, server.waiting);
    assert_eq!(server.process.held.get(), 0);
    // The answer that comes nevertheless is ignored.
    let now = simulation.now;
    simulation.servers[0].answer_waiting(now, b"late");
    simulation.servers[0].answerer = Box::new(|query| Reply::Now(query.to_vec()));
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
}

#[test]
fn a_reset_before_the_query_is_complete_ends_the_stream() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    let stream = simulation.write(connection, &framed(QUERY)[..5], false);
    simulation.run_for(Duration::from_millis(100));
    simulation.connection(connection).send_stream(stream).reset(code(REQUEST_CANCELLED)).unwrap();
    assert_eq!(simulation.read_to_end(connection, stream), Err(ReadError::Reset(code(REQUEST_CANCELLED))));
    assert_eq!(simulation.servers[0].process.held.get(), 0);
    assert_eq!(simulation.ask(connection, QUERY), Ok(framed(QUERY)));
}

#[test]
fn queries_of_a_lost_connection_are_cancelled() {
    let mut simulation = simulation();
    simulation.servers[0].answerer = Box::new(|_| Reply::Later);
    let connection = simulation.connect();
    simulation.write(connection, &framed(QUERY), true);
    simulation.run_for(Duration::from_millis(100));
    let now = simulation.now;
    simulation.connection(connection).close(now, code(NO_ERROR), bytes::Bytes::new());
    simulation.run_for(Duration::from_millis(100));
    let server = &simulation.servers[0];
    assert_eq!((server.cancelled.len(), server.process.open.get()), (1, 0));
}

#[test]
fn simulations_repeat() {
    let run = || {
        let mut simulation = Simulation::new(Protocol::Doq, 9);
        (simulation.network.lost, simulation.network.reordered) = (0.2, 0.5);
        let connection = simulation.connect();
        (0..20).for_each(|_| drop(simulation.ask(connection, QUERY)));
        (simulation.now - simulation.start, simulation.servers[0].responded.clone())
    };
    assert_eq!(run().1, run().1);
}
