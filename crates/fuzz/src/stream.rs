//! Bytes of an upstream on a TCP connection, and of another server that sends dnstap messages.

use core::time::Duration;

use host::Instant;
use plugins::{FrameReader, Mirrored, StreamFrame, read_client_response};
use upstream::{PoolEvent, PoolLimits, PoolQuery, StreamClient};

use super::QUERY;

/// Number of queries. The client opens eight connections for them. The first one, which carries three more queries, is
/// the only one that is established. The message IDs on it are 0 to 3.
const QUERIES: usize = 11;
const SECOND: Duration = Duration::from_secs(1);

/// Stream of an upstream with queries in flight: the first byte of `input` is the number of bytes per read. A query
/// completes at most once, and with its own reply.
pub fn stream(input: &[u8]) {
    let Some((size, bytes)) = input.split_first() else { return };
    let mut next_id = 0;
    let ids = move || {
        next_id += 1;
        next_id - 1
    };
    let mut client = StreamClient::new(Box::new(ids));
    let limits = PoolLimits { idle_max: 10 * SECOND, age_max: Duration::ZERO, kept_max: 0 };
    let query = PoolQuery { route: &(), message: QUERY, deadline: Instant::START + SECOND, limits };
    let mut pending: Vec<_> =
        (0..QUERIES).map(|_| client.start(Instant::START, &query).expect("a short query")).collect();
    let Some(PoolEvent::Open(connection, ())) = client.poll_event() else { panic!("no connection is opened") };
    client.handle_connected(Instant::START, connection);
    client.handle_timeout(Instant::START);
    for piece in bytes.chunks(usize::from(*size).max(1)) {
        client.handle_input(Instant::START, connection, piece, |_| {});
    }
    client.handle_timeout(Instant::START + SECOND);
    while let Some(event) = client.poll_event() {
        if let PoolEvent::Completed(query, outcome) = event {
            pending.retain(|other| *other != query);
            assert!(outcome.is_err() || outcome.is_ok_and(|answered| answered.reply.responds_to(QUERY)));
        }
    }
    assert!(pending.is_empty() && client.is_idle(), "a query has no outcome");
}

/// Stream of dnstap messages: the first byte of `input` is the number of bytes per read. The frames do not depend on
/// it.
pub fn mirror(input: &[u8]) {
    let Some((size, bytes)) = input.split_first() else { return };
    let whole = frames(bytes, bytes.len());
    assert_eq!(whole, frames(bytes, usize::from(*size)));
}

/// Returns the answers to clients in a stream, and false if the stream cannot be read to its end.
fn frames(bytes: &[u8], size: usize) -> (Vec<Mirrored>, bool) {
    let (mut reader, mut mirrored) = (FrameReader::default(), Vec::new());
    for piece in bytes.chunks(size.max(1)) {
        reader.push(piece);
        loop {
            match reader.next_frame() {
                Ok(None) => break,
                Ok(Some(StreamFrame::Data(data))) => mirrored.extend(read_client_response(data)),
                Ok(Some(StreamFrame::Control(_))) => {}
                Ok(Some(StreamFrame::End(_))) => return (mirrored, true),
                Err(_) => return (mirrored, false),
            }
        }
    }
    (mirrored, true)
}
