//! Stream client: messages with a length prefix on TCP or TLS, and pipelining (RFC 7766 §6.2.1).

use core::hash::Hash;
use std::collections::VecDeque;

use host::Instant;
use host::invariant::{Expected as _, holds};

use super::carrier::{Carrier, Choice, Counts, Fate};
use super::pooled::{PoolClient, PoolReply, Query};
use super::slots::Slots;
use super::{ConnectionId, FrameReader, InFlight, Mismatch, QueryId, append_frame, matching_reply};

/// Maximum number of queries in flight on one connection.
const PIPELINE_MAX: usize = 64;
/// Number of connections to one upstream that the pool opens before queries share one. Many servers, CoreDNS among
/// them, answer the queries of one connection in order, so one slow answer delays the others.
const CONNECTIONS_BEFORE_PIPELINING: usize = 8;
/// Bytes that are encoded for one write. A message is never split, so there may be almost 64 KiB more.
const BATCH_LEN: usize = 4096;

/// Client for upstreams over TCP and TLS.
pub type StreamClient<R> = PoolClient<R, Framed>;

/// Queries on a byte stream: replies have the message IDs of their queries.
#[derive(Default)]
pub struct Framed {
    in_flight: InFlight,
    /// Number of queries that ended before their reply, which may still come.
    unanswered: usize,
    frames: FrameReader,
    /// Queries to send.
    queue: VecDeque<QueryId>,
    /// Bytes of the queries that are being sent.
    bytes: Vec<u8>,
    sent: usize,
}

impl Carrier for Framed {
    const SHARES_OPENING: bool = false;

    fn add(&mut self, query: QueryId, random: &mut dyn FnMut() -> u16) -> bool {
        holds(self.in_flight.len() < PIPELINE_MAX, "a connection carries a bounded number of queries");
        let is_added = self.in_flight.insert(query, random).is_some();
        if is_added {
            self.queue.push_back(query);
        }
        is_added
    }

    fn remove(&mut self, query: QueryId) {
        self.unanswered += usize::from(self.in_flight.id_of(query).is_some());
        self.in_flight.remove(query);
    }

    fn drain(&mut self) -> Vec<QueryId> {
        self.in_flight.drain()
    }

    fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn is_sending(&self) -> bool {
        self.is_within_message() || !self.queue.is_empty()
    }

    /// Retires the connection: the peer may be gone without closing it. Closes it if a message was sent in part,
    /// because the peer does not read, and no other message can follow.
    fn after_timeout(&self, _: Instant) -> Fate {
        if self.is_within_message() { Fate::Closed } else { Fate::Retired }
    }

    fn may_retry(is_reused: bool, _: u32) -> bool {
        is_reused
    }

    /// Chooses the oldest idle connection, else a new one while fewer than [`CONNECTIONS_BEFORE_PIPELINING`] are open,
    /// else the one with the fewest queries in flight. If all are full, it opens one at a time, so that a burst does
    /// not open a connection per query.
    fn choose<'a>(open: impl Iterator<Item = (ConnectionId, &'a Framed)> + Clone, counts: Counts) -> Choice {
        let connecting = counts.connecting;
        let are_few = open.clone().count() + connecting < CONNECTIONS_BEFORE_PIPELINING;
        let least = open.map(|(id, framed)| (id, framed.in_flight())).min_by_key(|(_, in_flight)| *in_flight);
        match least {
            Some((idle, 0)) => Choice::Pooled(idle),
            _ if are_few => Choice::Connect,
            Some((busy, in_flight)) if in_flight < PIPELINE_MAX => Choice::Pooled(busy),
            Some(_) if connecting == 0 => Choice::Connect,
            _ => Choice::Wait,
        }
    }
}

impl Framed {
    /// Returns the reason to ignore a message whose ID no query in flight has. It may be the reply to a query that has
    /// ended, once for each of them.
    fn unexpected(&mut self) -> Mismatch {
        if self.unanswered == 0 {
            return Mismatch::Id;
        }
        self.unanswered -= 1;
        Mismatch::Late
    }

    /// Returns true if a message has been sent in part.
    fn is_within_message(&self) -> bool {
        self.sent < self.bytes.len()
    }

    /// Returns the next bytes to send.
    fn outgoing(&mut self, queries: &Slots<Query>) -> &[u8] {
        if !self.is_within_message() {
            self.encode_batch(queries);
        }
        &self.bytes[self.sent..]
    }

    /// Encodes queries from the queue, except for those that have ended.
    fn encode_batch(&mut self, queries: &Slots<Query>) {
        self.bytes.clear();
        self.bytes.shrink_to(BATCH_LEN);
        self.sent = 0;
        while self.bytes.len() < BATCH_LEN {
            let Some(id) = self.queue.pop_front() else { return };
            // A query that has ended in the meantime has no message ID any more.
            let Some(message_id) = self.in_flight.id_of(id) else { continue };
            if let Some(query) = queries.get(id.0).expected("a query in flight") {
                let appended = append_frame(&mut self.bytes, message_id, &query.message);
                holds(appended.is_some(), "a query fits into a frame");
            }
        }
    }

    /// Records that the driver has sent the next `length` bytes.
    fn advance(&mut self, length: usize) {
        holds(self.sent + length <= self.bytes.len(), "a transport accepts no more bytes than it was given");
        self.sent = (self.sent + length).min(self.bytes.len());
    }
}

impl<R: Clone + Eq + Hash> StreamClient<R> {
    /// Returns the next bytes to send on a connection. Call [`PoolClient::handle_transmitted`] with the number of
    /// those that the transport has accepted.
    pub fn poll_transmit(&mut self, connection: ConnectionId) -> Option<&[u8]> {
        let bytes = self.connections.get_mut(connection.0)?.carrier.outgoing(&self.queries);
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Records that the transport has accepted the next `length` bytes of [`PoolClient::poll_transmit`].
    pub fn handle_transmitted(&mut self, connection: ConnectionId, length: usize) {
        if let Some(connection) = self.connections.get_mut(connection.0).expected("a connection that was polled") {
            connection.carrier.advance(length);
        }
    }

    /// Returns the bytes that a connection keeps of a message that has not arrived completely.
    #[must_use]
    pub fn incomplete_len(&self, id: ConnectionId) -> usize {
        // The last reply may have closed the connection.
        self.connections.get(id.0).map_or(0, |connection| connection.carrier.frames.incomplete_len())
    }

    /// Processes bytes that a connection has received. Ignores messages that match no query on this connection, and
    /// passes the reasons to `ignored`.
    pub fn handle_input(
        &mut self,
        now: Instant,
        id: ConnectionId,
        mut bytes: &[u8],
        mut ignored: impl FnMut(Mismatch),
    ) {
        while let Some(connection) = self.connections.get_mut(id.0)
            && let Some(frame) = connection.carrier.frames.next_frame(&mut bytes)
        {
            let Some(query) = connection.carrier.in_flight.for_message(frame) else {
                ignored(connection.carrier.unexpected());
                continue;
            };
            let Some(sent) = self.queries.get(query.0).expected("a query in flight") else { continue };
            let Some(reply) = matching_reply(frame, &sent.message) else {
                ignored(Mismatch::Question);
                continue;
            };
            let reply = PoolReply { reply, connection: id, is_reused: sent.is_reused };
            connection.carrier.in_flight.remove(query);
            self.complete(now, query, Ok(reply));
        }
        self.check();
    }
}
