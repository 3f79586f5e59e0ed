use super::super::frame::put_frame;
use super::*;

const QUERY: &[u8] = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\x01\0\x01";
const QUERY_TEXT: &str = "AAABAAABAAAAAAAAAAABAAE";

/// Header section of literal fields.
fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    qpack::put_prefix(&mut bytes);
    fields.iter().for_each(|(name, value)| qpack::put_named(&mut bytes, name.as_bytes(), value.as_bytes()));
    bytes
}

fn frame(frame_type: u64, payload: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    put_frame(&mut output, FrameType(frame_type), payload);
    output
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(0x1, &section(fields))
}

fn head<'a>(method: &'a str, path: &'a str) -> [(&'a str, &'a str); 4] {
    [(":method", method), (":scheme", "https"), (":authority", "dns.example"), (":path", path)]
}

fn get() -> Vec<u8> {
    headers(&head("GET", &format!("/dns-query?dns={QUERY_TEXT}")))
}

fn post() -> Vec<u8> {
    headers(&head("POST", "/dns-query"))
}

/// Reads a stream in pieces of this many bytes.
fn read_in(stream: &[u8], piece: usize) -> Result<Outcome, Failure> {
    let mut request = Request::new(Policy::default());
    stream.chunks(piece).try_for_each(|bytes| request.feed(bytes))?;
    request.end()
}

fn read(parts: &[Vec<u8>]) -> Result<Outcome, Failure> {
    read_in(&parts.concat(), usize::MAX)
}

fn status(outcome: Result<Outcome, Failure>) -> u16 {
    match outcome.map(drop) {
        Ok(()) => 200,
        Err(Failure::Refused(refusal)) => refusal.status,
        Err(other) => panic!("{other:?}"),
    }
}

fn closes_with(parts: &[Vec<u8>]) -> u32 {
    match read(parts) {
        Err(Failure::Connection(error)) => error.code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn reads_queries_in_pieces_of_any_size() {
    let posts = [post(), frame(0x0, &QUERY[..5]), frame(0x0, &[]), frame(0x0, &QUERY[5..])].concat();
    let unknown = [frame(0x21, &[7; 300]), post(), frame(0x4021, &[1]), frame(0x0, QUERY), frame(0x21, &[])].concat();
    for stream in [get(), posts, unknown] {
        for piece in [1, 2, 3, 7, 100, 10_000] {
            assert_eq!(read_in(&stream, piece), Ok(Outcome(QUERY.to_vec())), "{piece}");
        }
    }
}

#[test]
fn refuses_requests_like_the_other_versions_of_http() {
    assert_eq!(status(read(&[headers(&head("GET", "/other"))])), 404);
    assert_eq!(status(read(&[headers(&head("GET", "/dns-query?dns=a="))])), 400);
    assert_eq!(status(read(&[headers(&head("PUT", "/dns-query"))])), 400);
    assert_eq!(status(read(&[post()])), 400, "no body");
    assert_eq!(status(read(&[post(), frame(0x0, &[0; 11])])), 400, "no query");
    assert_eq!(status(read(&[get(), frame(0x0, QUERY)])), 400, "a body in a GET");
    assert_eq!(status(read(&[get(), frame(0x0, &[])])), 200);
}

#[test]
fn refuses_a_long_body_before_it_arrives() {
    let mut request = Request::new(Policy::default());
    let start = [post(), frame(0x0, &[0; 60_000])].concat();
    assert_eq!(request.feed(&start), Ok(()));
    let refused = request.feed(&[0x0, 0x80, 0, 0x20, 0]);
    assert_eq!(refused, Err(Failure::Refused(Refusal::too_long(Policy::default()))));
    let longest = [post(), frame(0x0, &[0; BODY_MAX])].concat();
    assert!(Request::new(Policy::default()).feed(&longest).is_ok());
}

#[test]
fn refuses_header_sections_above_16_kibibytes() {
    let long = "x".repeat(17 << 10);
    let mut fields = head("POST", "/dns-query").to_vec();
    fields.push(("x-long", &long));
    assert_eq!(status(read(&[headers(&fields)])), 431);
    // Two kilobytes of indexed fields that would become 20.
    let mut bomb = section(&head("POST", "/dns-query"));
    (0..2000).for_each(|_| qpack::put_indexed(&mut bomb, 29));
    assert_eq!(status(read(&[frame(0x1, &bomb)])), 431);
}

#[test]
fn closes_the_connection_for_frames_in_the_wrong_place() {
    assert_eq!(closes_with(&[frame(0x0, QUERY)]), code::FRAME_UNEXPECTED);
    for forbidden in [0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8, 0x9, 0xd] {
        assert_eq!(closes_with(&[post(), frame(forbidden, &[])]), code::FRAME_UNEXPECTED, "{forbidden}");
    }
    let trailers = headers(&[("x-end", "1")]);
    assert_eq!(closes_with(&[post(), trailers.clone(), frame(0x0, QUERY)]), code::FRAME_UNEXPECTED);
    assert_eq!(closes_with(&[post(), trailers.clone(), trailers]), code::FRAME_UNEXPECTED);
    assert_eq!(closes_with(&[frame(0x1, &[0, 0, 0x80])]), code::QPACK_DECOMPRESSION_FAILED);
    assert_eq!(closes_with(&[post(), vec![0x0, 0x05, 1]]), code::FRAME_ERROR);
    assert_eq!(closes_with(&[post(), vec![0x40]]), code::FRAME_ERROR);
}

#[test]
fn accepts_trailers() {
    let trailers = headers(&[("x-end", "1")]);
    assert_eq!(read(&[post(), frame(0x0, QUERY), trailers]), Ok(Outcome(QUERY.to_vec())));
    let pseudo = headers(&[(":path", "/")]);
    assert_eq!(read(&[post(), frame(0x0, QUERY), pseudo]), Err(Failure::Stream(code::MESSAGE_ERROR)));
}

#[test]
fn resets_the_stream_of_a_malformed_request() {
    let usual = head("POST", "/dns-query");
    let with = |name: &'static str, value: &'static str| [&usual[..], &[(name, value)]].concat();
    let malformed: [Vec<(&str, &str)>; 14] = [
        usual[1..].to_vec(),
        usual[..3].to_vec(),
        usual[..1].to_vec(),
        [usual[0], usual[1], usual[3]].to_vec(),
        [&[("accept", "*/*")], &usual[..]].concat(),
        with(":method", "POST"),
        with(":unknown", "x"),
        with("Accept", "*/*"),
        with("connection", "close"),
        with("transfer-encoding", "chunked"),
        with("te", "gzip"),
        with("x", "a\r\nb"),
        with("content-length", "x"),
        [&usual[..], &[("content-length", "1"), ("content-length", "2")]].concat(),
    ];
    for fields in malformed {
        assert_eq!(read(&[headers(&fields)]), Err(Failure::Stream(code::MESSAGE_ERROR)), "{fields:?}");
    }
    let host = [usual[0], usual[1], usual[3], ("host", "dns.example")];
    assert_eq!(read(&[headers(&host), frame(0x0, QUERY)]), Ok(Outcome(QUERY.to_vec())));
    assert_eq!(read(&[]), Err(Failure::Stream(code::REQUEST_INCOMPLETE)));
    assert_eq!(read(&[frame(0x21, &[1])]), Err(Failure::Stream(code::REQUEST_INCOMPLETE)));
}

#[test]
fn the_body_has_the_announced_length() {
    let announced =
        |length: &'static str| headers(&[&head("POST", "/dns-query")[..], &[("content-length", length)]].concat());
    assert!(read(&[announced("17"), frame(0x0, QUERY)]).is_ok());
    for wrong in ["16", "18"] {
        assert_eq!(read(&[announced(wrong), frame(0x0, QUERY)]), Err(Failure::Stream(code::MESSAGE_ERROR)));
    }
}
