//! DNS over HTTP/3: requests, refusals, and the critical streams.

use std::time::Duration;

use quic::Protocol;
use quic::h3::code as h3;
use quinn_proto::{ConnectionHandle, Dir, ReadError};

use crate::simulation::{QUERY, Reply, Simulation, code};

fn simulation() -> Simulation {
    Simulation::new(Protocol::Http3, 1)
}

/// Appends a frame whose type and length are below 64, or whose length is below 16,384.
fn frame(frame_type: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap();
    let length = if length < 64 { vec![length.to_be_bytes()[1]] } else { (length | 0x4000).to_be_bytes().to_vec() };
    [&[frame_type], &length[..], payload].concat()
}

/// Header section of literals.
fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        // Lengths below 7 and 127 take one byte.
        let name_length = u8::try_from(name.len()).unwrap();
        section.extend(if name_length < 7 { vec![0x20 | name_length] } else { vec![0x27, name_length - 7] });
        section.extend_from_slice(name.as_bytes());
        section.push(u8::try_from(value.len()).unwrap());
        section.extend_from_slice(value.as_bytes());
    }
    frame(1, &section)
}

fn head(method: &str, path: &str) -> Vec<u8> {
    headers(&[(":method", method), (":scheme", "https"), (":authority", "dns.example"), (":path", path)])
}

/// POST request with a message.
pub fn post(message: &[u8]) -> Vec<u8> {
    [head("POST", "/dns-query"), frame(0, message)].concat()
}

fn get() -> Vec<u8> {
    head("GET", "/dns-query?dns=AAABAAABAAAAAAAAAAACAAE")
}

/// Sends a request, and returns the status and the body of the response.
fn ask(simulation: &mut Simulation, connection: ConnectionHandle, request: &[u8]) -> Result<(u16, Vec<u8>), ReadError> {
    let stream = simulation.write(connection, request, true);
    let response = simulation.read_to_end(connection, stream)?;
    Ok(parse(&response))
}

/// Splits a response. Status 200 is an index, all others are literals of three digits.
fn parse(response: &[u8]) -> (u16, Vec<u8>) {
    let (headers, rest) = split(response);
    let status = match headers[2] {
        0xd9 => 200,
        _ => headers.windows(3).find_map(|part| std::str::from_utf8(part).ok()?.parse().ok()).unwrap(),
    };
    (status, split(rest).0.to_vec())
}

fn split(frames: &[u8]) -> (&[u8], &[u8]) {
    let (length, at) = match frames[1] {
        short @ 0..0x40 => (usize::from(short), 2),
        middle @ 0x40..0x80 => (usize::from(middle & 0x3f) << 8 | usize::from(frames[2]), 3),
        _ => (usize::from(frames[3]) << 8 | usize::from(frames[4]) | usize::from(frames[2]) << 16, 5),
    };
    frames[at..].split_at(length)
}

/// Opens a unidirectional stream with these bytes.
fn open_uni(simulation: &mut Simulation, connection: ConnectionHandle, bytes: &[u8], ends: bool) {
    let connection = simulation.connection(connection);
    let id = connection.streams().open(Dir::Uni).expect("credit for a unidirectional stream");
    connection.send_stream(id).write(bytes).unwrap();
    if ends {
        connection.send_stream(id).finish().unwrap();
    }
}

const SETTINGS: &[u8] = &[0, 4, 0];

#[test]
fn answers_get_and_post() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    open_uni(&mut simulation, connection, SETTINGS, false);
    for request in [get(), post(QUERY), get()] {
        assert_eq!(ask(&mut simulation, connection, &request), Ok((200, QUERY.to_vec())));
    }
    simulation.run_for(Duration::from_secs(1));
    let server = &simulation.servers[0];
    assert_eq!((server.responded.as_slice(), server.asked), (&[200; 3][..], 3));
    assert!(server.process.held.get() < 2000, "only the control stream is left: {}", server.process.held.get());
}

#[test]
fn refuses_requests_with_the_codes_of_http() {
    let mut simulation = simulation();
    simulation.servers[0].answerer = Box::new(|_| Reply::Never);
    let connection = simulation.connect();
    let rows = [
        (404, head("GET", "/")),
        (400, head("GET", "/dns-query")),
        (400, head("PUT", "/dns-query")),
        (400, post(&[0; 3])),
        (500, get()),
    ];
    for (status, request) in &rows {
        let (got, text) = ask(&mut simulation, connection, request).unwrap();
        assert_eq!(got, *status);
        assert!(text.ends_with(b"\n"));
    }
    assert_eq!(simulation.servers[0].responded, [404, 400, 400, 400, 500]);
    assert!(simulation.clients[0].lost.is_empty());
}

#[test]
fn answers_before_the_end_of_a_request_that_is_refused() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    let stream = simulation.write(connection, &head("PUT", "/dns-query"), false);
    assert_eq!(simulation.read_to_end(connection, stream).map(|response| parse(&response).0), Ok(400));
    // The server wants no more of it, which is no error.
    let stopped = simulation.connection(connection).send_stream(stream).stopped();
    assert!(matches!(stopped, Ok(Some(reason)) if reason == code(h3::NO_ERROR)));
}

#[test]
fn answers_requests_of_every_size_over_a_bad_network() {
    for seed in 0..10 {
        let mut simulation = Simulation::new(Protocol::Http3, seed);
        (simulation.network.lost, simulation.network.repeated, simulation.network.reordered) = (0.1, 0.1, 0.3);
        let connection = simulation.connect();
        for length in [17, 2000, 7000] {
            let mut query = QUERY.to_vec();
            query.resize(length, 7);
            assert_eq!(ask(&mut simulation, connection, &post(&query)), Ok((200, query)), "seed {seed}");
        }
    }
}

#[test]
fn sends_long_answers_whole() {
    let mut simulation = simulation();
    simulation.servers[0].answerer = Box::new(|_| Reply::Now(vec![7; 65_535]));
    let connection = simulation.connect();
    assert_eq!(ask(&mut simulation, connection, &get()).map(|(_, body)| body.len()), Ok(65_535));
}

#[test]
fn a_slow_request_gets_408() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    let stream = simulation.write(connection, &post(QUERY)[..5], false);
    let start = simulation.now;
    assert_eq!(simulation.read_to_end(connection, stream).map(|response| parse(&response).0), Ok(408));
    assert!((3000..3100).contains(&(simulation.now - start).as_millis()));
    assert_eq!(ask(&mut simulation, connection, &get()).unwrap().0, 200);
}

#[test]
fn a_malformed_request_ends_alone() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    let request = headers(&[(":method", "GET"), (":path", "/dns-query")]);
    assert_eq!(ask(&mut simulation, connection, &request), Err(ReadError::Reset(code(h3::MESSAGE_ERROR))));
    assert_eq!(ask(&mut simulation, connection, &[]), Err(ReadError::Reset(code(h3::REQUEST_INCOMPLETE))));
    assert_eq!(ask(&mut simulation, connection, &get()).unwrap().0, 200);
}

#[test]
fn protocol_errors_close_the_connection() {
    let requests: [(u32, Vec<u8>); 4] = [
        (h3::FRAME_UNEXPECTED, frame(0, QUERY)),
        (h3::FRAME_UNEXPECTED, frame(4, &[])),
        (h3::FRAME_ERROR, vec![1, 5, 0]),
        (h3::QPACK_DECOMPRESSION_FAILED, frame(1, &[0, 0, 0x80])),
    ];
    for (expected, request) in requests {
        let mut simulation = simulation();
        let connection = simulation.connect();
        simulation.write(connection, &request, true);
        simulation.run_for(Duration::from_millis(100));
        assert_eq!(simulation.clients[0].closed_with().0, u64::from(expected));
        assert_eq!(simulation.servers[0].process.held.get(), 0);
    }
    let streams: [(u32, &[&[u8]], bool); 6] = [
        (h3::STREAM_CREATION_ERROR, &[SETTINGS, SETTINGS], false),
        (h3::STREAM_CREATION_ERROR, &[&[1]], false),
        (h3::MISSING_SETTINGS, &[&[0, 7, 1, 0]], false),
        (h3::CLOSED_CRITICAL_STREAM, &[SETTINGS], true),
        (h3::QPACK_ENCODER_STREAM_ERROR, &[&[2, 0x3f, 0x45]], false),
        (h3::QPACK_DECODER_STREAM_ERROR, &[&[3, 0x80]], false),
    ];
    for (expected, opened, ends) in streams {
        let mut simulation = simulation();
        let connection = simulation.connect();
        opened.iter().for_each(|bytes| open_uni(&mut simulation, connection, bytes, ends));
        simulation.run_for(Duration::from_millis(100));
        assert_eq!(simulation.clients[0].closed_with().0, u64::from(expected));
    }
}

#[test]
fn unknown_frames_and_streams_are_ignored_again_and_again() {
    let mut simulation = simulation();
    let connection = simulation.connect();
    open_uni(&mut simulation, connection, SETTINGS, false);
    for _ in 0..20 {
        open_uni(&mut simulation, connection, &[0x21, 1, 2, 3], true);
        let request = [frame(0x21, &[0; 500]), get(), frame(0x21, &[0; 500])].concat();
        assert_eq!(ask(&mut simulation, connection, &request).unwrap().0, 200);
    }
    simulation.run_for(Duration::from_secs(1));
    assert!(simulation.servers[0].process.held.get() < 2000);
}
