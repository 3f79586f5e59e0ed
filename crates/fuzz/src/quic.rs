//! Bytes of clients and servers over QUIC and HTTPS: streams of HTTP/3 with QPACK, streams of DNS over QUIC, and
//! messages of DNS over HTTPS.

use ::doh::{Head, Policy, accept};
use ::quic::doq;
use ::quic::h3::{CriticalStreams, Request, Response};

/// A stream of HTTP/3. The first byte chooses its kind and the size of the pieces in which it arrives. The outcome must
/// be the same in pieces as in one.
pub fn http3(input: &[u8]) {
    let Some((choice, stream)) = input.split_first() else { return };
    let piece = usize::from(choice >> 1) + 1;
    if choice & 1 == 1 {
        let mut streams = CriticalStreams::default();
        let whole = streams.read([stream]);
        assert_eq!(CriticalStreams::default().read(stream.chunks(piece)), whole);
        return;
    }
    if choice & 0x80 != 0 {
        let read = |piece: usize| {
            let mut response = Response::default();
            stream.chunks(piece).try_for_each(|bytes| response.feed(bytes))?;
            response.end()
        };
        assert_eq!(read(piece), read(stream.len().max(1)));
        return;
    }
    let read = |piece: usize| {
        let mut request = Request::new(Policy::default());
        stream.chunks(piece).try_for_each(|bytes| request.feed(bytes))?;
        request.end()
    };
    assert_eq!(read(piece), read(stream.len().max(1)));
}

/// A stream of DNS over QUIC. Only the exact length is a query, and only a query passes the check.
pub fn doq(input: &[u8]) {
    if let Ok(Some(message)) = doq::message(input) {
        assert_eq!(message.len() + 2, input.len());
        if doq::check(message).is_ok() {
            assert_eq!(message[..2], [0, 0]);
        }
        let cut = doq::message(&input[..input.len() - 1]);
        assert!(matches!(cut, Ok(None)));
    }
}

/// A request of DNS over HTTPS: method, target and content type, each on a line.
pub fn doh(input: &[u8]) {
    let mut lines = input.splitn(3, |byte| *byte == b'\n');
    let head = Head {
        method: lines.next().unwrap_or_default(),
        target: lines.next().unwrap_or_default(),
        content_type: lines.next(),
    };
    for strict in [false, true] {
        match accept(&head, Policy { strict }) {
            Ok(::doh::Accepted::Query(message)) => assert!(!message.is_empty() && message.len() <= ::doh::BODY_MAX),
            Ok(::doh::Accepted::Body) => {}
            Err(refusal) => assert!((400..500).contains(&refusal.status) && refusal.text.ends_with('\n')),
        }
    }
    assert!(::doh::lifetime(input) <= 3600);
    asks_over_https(input);
    if let Some(offer) = ::doh::alternative(input) {
        assert!(offer.port > 0 && (1..=604_800).contains(&offer.lifetime.as_secs()));
    }
}

/// The other direction: a server understands each GET, and the age of a response changes TTLs only.
fn asks_over_https(message: &[u8]) {
    let target = ::doh::get_target(message);
    let head = Head { method: b"GET", target: target.as_bytes(), content_type: None };
    if (1..=::doh::BODY_MAX).contains(&message.len()) {
        assert_eq!(accept(&head, Policy::default()), Ok(::doh::Accepted::Query(message.to_vec())));
    }
    let mut aged = message.to_vec();
    ::doh::subtract_age(&mut aged, b"30");
    assert_eq!(aged.len(), message.len());
    assert_eq!(::wire::Message::parse(&aged).is_ok(), ::wire::Message::parse(message).is_ok());
}
