use super::super::frame::varint;
use super::super::qpack::put_named;
use super::*;

const QUERY: &[u8] = b"\0\0\x01\0\0\x01\0\0\0\0\0\0\0\0\x01\0\x01";

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let (mut section, mut frame) = (Vec::new(), Vec::new());
    put_prefix(&mut section);
    fields.iter().for_each(|(name, value)| put_named(&mut section, name.as_bytes(), value.as_bytes()));
    put_frame(&mut frame, FrameType::HEADERS, &section);
    frame
}

fn data(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    put_frame(&mut frame, FrameType::DATA, payload);
    frame
}

const GOOD: [(&str, &str); 2] = [(":status", "200"), ("content-type", "application/dns-message")];

/// Reads a stream in pieces of this length.
fn read(stream: &[u8], length: usize) -> Result<Vec<u8>, ReplyFailure> {
    let mut response = Response::default();
    stream.chunks(length).try_for_each(|piece| response.feed(piece))?;
    response.end()
}

fn expect(stream: &[u8], outcome: &Result<Vec<u8>, ReplyFailure>) {
    for length in [1, 7, stream.len().max(1)] {
        assert_eq!(read(stream, length), *outcome, "{stream:?}");
    }
}

fn closed(code: u32, reason: &'static str) -> Result<Vec<u8>, ReplyFailure> {
    Err(error(code, reason).into())
}

#[test]
fn reads_a_response_however_it_is_cut() {
    let good = headers(&GOOD);
    let with_length = headers(&[GOOD[0], GOOD[1], ("content-length", "4")]);
    let interim = headers(&[(":status", "103")]);
    let unknown = [0x21, 2, 9, 9];
    for parts in [
        vec![&good[..], &data(b"an"), &data(b"sw")],
        vec![&with_length, &data(b""), &data(b"answ")],
        vec![&unknown, &interim, &unknown, &good, &unknown, &data(b"answ"), &headers(&[("x", "y")]), &unknown],
    ] {
        expect(&parts.concat(), &Ok(b"answ".to_vec()));
    }
}

#[test]
fn subtracts_the_age_of_a_response() {
    let answer = b"\0\0\x80\0\0\0\0\x01\0\0\0\0\0\0\x01\0\x01\0\0\0\x3c\0\x04\x01\x02\x03\x04";
    let aged = read(&[headers(&[GOOD[0], GOOD[1], ("age", "50")]), data(answer)].concat(), 9).unwrap();
    assert_eq!(aged[17..21], [0, 0, 0, 10]);
}

#[test]
fn refuses_responses_without_a_message() {
    let refused = |error: ResponseError| Err(ReplyFailure::Refused(error));
    let malformed = || Err(ReplyFailure::Malformed);
    let body = data(b"answ");
    for (head, outcome) in [
        (headers(&[(":status", "404")]), refused(ResponseError::Status(404))),
        (headers(&[(":status", "302"), ("location", "https://b/")]), refused(ResponseError::Status(302))),
        (headers(&[(":status", "200")]), refused(ResponseError::ContentType(None))),
        (headers(&[GOOD[0], GOOD[1], ("content-length", "70000")]), refused(ResponseError::TooLong)),
        (headers(&[GOOD[0], GOOD[1], ("content-length", "5")]), malformed()),
        (headers(&[GOOD[1]]), malformed()),
        (headers(&[(":status", "2000"), GOOD[1]]), malformed()),
        (headers(&[(":status", "103")]), closed(code::FRAME_UNEXPECTED, "the frame does not belong to a response")),
    ] {
        expect(&[&head[..], &body].concat(), &outcome);
    }
    expect(&[], &malformed());
    expect(&[headers(&GOOD), headers(&GOOD)].concat(), &malformed());
    expect(&[headers(&GOOD), data(&[0; BODY_MAX + 1])].concat(), &refused(ResponseError::TooLong));
}

#[test]
fn refuses_what_breaks_the_protocol() {
    let misplaced = || closed(code::FRAME_UNEXPECTED, "the frame does not belong to a response");
    let good = headers(&GOOD);
    let trailers = headers(&[("x", "y")]);
    expect(&data(b"answ"), &misplaced());
    expect(&[&good[..], &trailers, &data(b"answ")].concat(), &misplaced());
    for frame in [0x2, 0x3, 0x4, 0x6, 0x7, 0x8, 0x9, 0xd] {
        expect(&[&good[..], &[frame, 0]].concat(), &misplaced());
    }
    expect(&[0x5, 1, 0], &closed(code::ID_ERROR, "push is not allowed"));
    expect(&[1, 3, 9, 0, 0], &closed(code::QPACK_DECOMPRESSION_FAILED, "the header section is invalid"));
    expect(&[&good[..], &data(b"answ")[..3]].concat(), &closed(code::FRAME_ERROR, "a frame is cut"));
}

#[test]
fn requests_have_the_fields_of_the_standard() {
    for (is_get, expected) in [
        (true, [":method: GET", ":path: /dns-query?dns=AAABAAABAAAAAAAAAAABAAE"].as_slice()),
        (false, &[":method: POST", ":path: /dns-query", "content-type: application/dns-message", "content-length: 17"]),
    ] {
        let request = request("dns.example:8443", is_get, QUERY);
        let (length, at) = varint(&request[1..]).unwrap();
        let (section, body) = request[1 + at..].split_at(usize::try_from(length).unwrap());
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        qpack::decode(section, HEADERS_MAX, |name, value| fields.push(format!("{}: {}", text(name), text(value))))
            .unwrap();
        for field in expected {
            assert!(fields.iter().any(|known| known == field), "{fields:?}");
        }
        let always = [":scheme: https", ":authority: dns.example:8443", "accept: application/dns-message"];
        assert!(always.iter().all(|field| fields.iter().any(|known| known == field)), "{fields:?}");
        assert_eq!(fields.len(), always.len() + expected.len());
        assert_eq!(body, if is_get { Vec::new() } else { data(QUERY) });
    }
}
