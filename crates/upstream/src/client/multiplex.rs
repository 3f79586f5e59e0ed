//! Multiplexed client: HTTP and QUIC give each query a stream of its own, so no message ID matches replies to queries.
//!
//! One connection carries all queries until it is full. HTTP/1.1 is a connection that is full with one query.
//!
//! A query whose connection ends, or whose stream the peer rejects, is sent once more on another connection. If no
//! connection can be opened, all queries that wait for one fail at once.

use core::hash::Hash;
use std::collections::VecDeque;

use host::Instant;
use host::invariant::{Expected as _, holds};
use wire::Reply;

use super::carrier::{Carrier, Choice, Counts, Fate};
use super::pooled::{PoolClient, PoolReply};
use super::{ConnectionId, QueryError, QueryId};

/// Maximum number of queries in flight on one connection, if the peer allows as many. RFC 9113 §6.5.2 asks servers to
/// allow at least 100.
const STREAMS_MAX: usize = 100;
/// Maximum number of connections to one upstream that take new queries. A peer that allows few streams, or that only
/// has HTTP/1.1, gets more than one.
const CONNECTIONS_MAX: usize = 16;

/// Response to a query: a DNS message, or the error that the peer responded with.
pub type Response = Result<Vec<u8>, QueryError>;

/// Client for upstreams over HTTP and QUIC.
pub type MultiplexClient<R> = PoolClient<R, Multiplexed>;

/// Queries on a connection on which each has its own stream.
pub struct Multiplexed {
    in_flight: Vec<QueryId>,
    /// Queries to send.
    queue: VecDeque<QueryId>,
    /// Number of queries that may be in flight.
    capacity: usize,
    /// Time of the last response.
    answered: Instant,
}

impl Default for Multiplexed {
    /// Returns a connection that takes one query, until the driver knows how many the peer allows.
    fn default() -> Self {
        Multiplexed { in_flight: Vec::new(), queue: VecDeque::new(), capacity: 1, answered: Instant::START }
    }
}

impl Carrier for Multiplexed {
    const SHARES_OPENING: bool = true;

    fn add(&mut self, query: QueryId, _: &mut dyn FnMut() -> u16) -> bool {
        let has_room = self.has_room();
        if has_room {
            debug_assert!(!self.in_flight.contains(&query), "a query is sent once on a connection");
            holds(self.in_flight.len() < STREAMS_MAX, "a connection carries a bounded number of queries");
            self.in_flight.push(query);
            self.queue.push_back(query);
        }
        has_room
    }

    fn remove(&mut self, query: QueryId) {
        let before = self.in_flight.len();
        self.in_flight.retain(|known| *known != query);
        holds(self.in_flight.len() + 1 == before, "a query is removed from the connection that carries it");
    }

    fn drain(&mut self) -> Vec<QueryId> {
        core::mem::take(&mut self.in_flight)
    }

    fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn is_sending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Retires the connection if the peer has sent no response since the query: it may be gone without closing the
    /// connection. Otherwise this query alone is slow.
    fn after_timeout(&self, sent: Instant) -> Fate {
        if self.answered < sent { Fate::Retired } else { Fate::Kept }
    }

    fn may_retry(_: bool, retries: u32) -> bool {
        retries == 0
    }

    /// Chooses the oldest connection with room. Opens a new one if those that are being opened have no room for the
    /// queries that already wait.
    fn choose<'a>(open: impl Iterator<Item = (ConnectionId, &'a Multiplexed)> + Clone, counts: Counts) -> Choice {
        if let Some((id, _)) = open.clone().find(|(_, connection)| connection.has_room()) {
            return Choice::Pooled(id);
        }
        let expected = open.clone().map(|(_, connection)| connection.capacity.max(1)).max().unwrap_or(STREAMS_MAX);
        let is_full = counts.waiting >= counts.connecting * expected;
        if is_full && open.count() + counts.connecting < CONNECTIONS_MAX { Choice::Connect } else { Choice::Wait }
    }
}

impl Multiplexed {
    fn has_room(&self) -> bool {
        self.in_flight.len() < self.capacity
    }
}

impl<R: Clone + Eq + Hash> MultiplexClient<R> {
    /// Returns the next query to send on a connection, with its message. The message ID is 0 (RFC 8484 §4.1, RFC 9250
    /// §4.2.1).
    pub fn poll_query(&mut self, connection: ConnectionId) -> Option<(QueryId, &[u8])> {
        // The connection may have been closed since the event, and the queries in its queue may have ended.
        let Multiplexed { queue, in_flight, .. } = &mut self.connections.get_mut(connection.0)?.carrier;
        let query = core::iter::from_fn(|| queue.pop_front()).find(|query| in_flight.contains(query))?;
        self.queries.get(query.0).expected("a query in flight").map(|sent| (query, sent.message.as_slice()))
    }

    /// Sets the number of queries that the peer allows on a connection.
    pub fn handle_capacity(&mut self, now: Instant, id: ConnectionId, capacity: usize) {
        // The driver may report the capacity of a connection that this client has closed in the meantime.
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let capacity = capacity.min(STREAMS_MAX);
        let has_grown = capacity > core::mem::replace(&mut connection.carrier.capacity, capacity);
        if has_grown {
            let pool = connection.pool;
            self.wake_waiting(now, pool);
        }
        self.check();
    }

    /// Takes back a query for which the peer allows no stream at this time. The connection takes no more queries until
    /// one ends or [`MultiplexClient::handle_capacity`] is called.
    pub fn handle_unsent(&mut self, now: Instant, query: QueryId) {
        let Some(sent) = self.queries.get_mut(query.0).expected("a query that was polled") else { return };
        let Some(id) = sent.connection.take().expected("the connection of a query that was polled") else { return };
        if let Some(connection) = self.connections.get_mut(id.0).expected("the connection of a query") {
            connection.carrier.remove(query);
            connection.carrier.capacity = connection.carrier.in_flight.len();
            holds(!connection.carrier.has_room(), "a connection without a free stream takes no query");
            self.set_idle_timer(id);
        }
        self.assign(now, query);
        self.check();
    }

    /// Processes the response of a connection to a query. Ignores it if another connection carries the query now.
    pub fn handle_response(&mut self, now: Instant, query: QueryId, on: ConnectionId, response: Response) {
        let Some(sent) = self.queries.get(query.0).filter(|sent| sent.connection == Some(on)) else { return };
        let is_reused = sent.is_reused;
        let outcome = response.and_then(|message| {
            let reply = Reply::parse(message).ok().filter(|reply| reply.responds_to(&sent.message));
            reply.ok_or(QueryError::Malformed)
        });
        if let Some(connection) = self.connections.get_mut(on.0).expected("the connection of a query") {
            holds(connection.carrier.answered <= now, "time does not go backwards");
            connection.carrier.answered = now;
        }
        self.complete(now, query, outcome.map(|reply| PoolReply { reply, connection: on, is_reused }));
        self.check();
    }

    /// Sends a query once more on another connection, because this one will carry no response to it. Fails it if this
    /// was the second attempt. The connection takes no new queries. Ignores the call if another connection carries the
    /// query now.
    pub fn handle_lost(&mut self, now: Instant, query: QueryId, on: ConnectionId, error: &QueryError) {
        if self.queries.get(query.0).is_none_or(|sent| sent.connection != Some(on)) {
            return;
        }
        if let Some(connection) = self.connections.get_mut(on.0).expected("the connection of a query") {
            connection.carrier.remove(query);
        }
        self.retire(on);
        self.retry(now, query, error);
        self.check();
    }

    /// Takes a connection out of its pool, because the peer will close it after the responses to the queries in flight.
    pub fn handle_going_away(&mut self, connection: ConnectionId) {
        self.retire(connection);
        self.check();
    }
}
