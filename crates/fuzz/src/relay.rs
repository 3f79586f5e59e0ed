//! Inputs of a relay from outside: objects of the API server, requests and tokens of subscribers.

use core::time::Duration;

use host::Instant;
use relay::token::{Keys, Rules};
use relay::{EventType, Headers, Kind, Next, Relay, Request, strip, to_json};

/// Most parts that a subscriber gets of one object.
const PARTS_MAX: usize = 16;

/// The first byte selects what the rest is: an object of a kind, a request, or a token with keys.
pub fn relay(input: &[u8]) {
    let [first, rest @ ..] = input else { return };
    match first {
        b'r' => request(rest),
        b't' => token(rest),
        first => object(Kind::ALL[usize::from(*first) % Kind::ALL.len()], rest),
    }
}

/// Stripping twice is stripping once, JSON is valid, and a subscriber gets what the relay could store.
fn object(kind: Kind, bytes: &[u8]) {
    if let Ok(stripped) = strip(kind, bytes) {
        assert!(stripped.len() <= bytes.len(), "{} of {}", stripped.len(), bytes.len());
        assert_eq!(strip(kind, &stripped).as_ref(), Ok(&stripped));
        let [whole, short] = [bytes, &stripped].map(|bytes| to_json(kind, bytes));
        assert_eq!(whole, short);
        let json: serde_json::Value = serde_json::from_str(&whole.unwrap()).unwrap();
        assert_eq!(json["kind"], kind.name());
    }
    let mut relay = Relay::new(&[kind]);
    relay.begin_list(kind);
    let is_stored = relay.add_to_list(kind, bytes).is_ok();
    relay.end_list(kind, 1, Instant::START);
    assert_eq!(relay.states(Instant::START)[0].objects, usize::from(is_stored));
    let _ = relay.apply(kind, EventType::Modified, bytes, Instant::START);
    let _ = relay.apply(kind, EventType::Deleted, bytes, Instant::START);
    relay.advance(Instant::START);
    let headers = Headers { accept_encoding: "gzip", ..Headers::default() };
    let request = Request::parse(&kind.path(), "watch=1", headers).unwrap();
    let mut cursor = relay.watch(&request, Instant::START).unwrap();
    let parts = core::iter::repeat_with(|| relay.next(&mut cursor, Instant::START));
    assert!(parts.take(PARTS_MAX).any(|next| next == Next::Wait), "a subscriber gets the same again and again");
}

/// A request is refused or answered, by whatever a relay has.
fn request(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let mut line = || lines.next().unwrap_or_default();
    let (path, query) = (line(), line());
    let headers = Headers { accept: line(), accept_encoding: line(), profile: line() };
    let Ok(request) = Request::parse(path, query, headers) else { return };
    let mut relay = Relay::new(&Kind::ALL);
    for kind in Kind::ALL {
        relay.begin_list(kind);
        relay.end_list(kind, 7, Instant::START);
    }
    if request.is_watch() {
        if let Ok(mut cursor) = relay.watch(&request, Instant::START) {
            while matches!(relay.next(&mut cursor, Instant::START), Next::Data(_)) {}
        }
    } else {
        let _ = relay.list(&request, Instant::START);
    }
}

/// No token is accepted, because nobody has a key.
fn token(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (token, keys) = text.split_once('\n').unwrap_or((&text, ""));
    let rules = Rules { issuer: "i".into(), audience: "a".into(), subjects: vec!["s".into()] };
    if let Ok(keys) = Keys::parse(keys.as_bytes()) {
        let _ = keys.check(token, &rules, Duration::from_secs(1_800_000_000));
    }
    assert!(Keys::default().check(token, &rules, Duration::ZERO).is_err());
}
