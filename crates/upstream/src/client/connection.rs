//! Connection to an upstream: its queries in flight, the bytes to send, and the reassembly of replies.

use core::time::Duration;
use std::collections::VecDeque;

use super::pool::{PoolId, PoolLimits};
use super::slots::Slots;
use super::stream::Query;
use super::{ConnectionId, FrameReader, InFlight, QueryId, append_frame};

/// Bytes that are encoded for one write. A message is never split, so there may be almost 64 KiB more.
const BATCH_LEN: usize = 4096;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The driver opens the connection, for this query.
    Connecting(QueryId),
    /// The connection takes queries.
    Open,
    /// The connection takes no new queries. It is closed after the last one in flight.
    Retired,
}

pub(super) struct Connection {
    pub(super) pool: PoolId,
    pub(super) state: State,
    /// Limits of the query that opened it.
    pub(super) limits: PoolLimits,
    pub(super) opened: Duration,
    pub(super) used: Duration,
    /// Time of the idle timer, if it is set.
    pub(super) timer: Option<Duration>,
    pub(super) in_flight: InFlight,
    pub(super) frames: FrameReader,
    outgoing: Outgoing,
}

/// Queries to send, and the bytes of those that are being sent.
#[derive(Default)]
struct Outgoing {
    queue: VecDeque<QueryId>,
    bytes: Vec<u8>,
    sent: usize,
}

impl Connection {
    pub(super) fn new(pool: PoolId, query: QueryId, limits: PoolLimits, now: Duration) -> Connection {
        Connection {
            pool,
            state: State::Connecting(query),
            limits,
            opened: now,
            used: now,
            timer: None,
            in_flight: InFlight::default(),
            frames: FrameReader::default(),
            outgoing: Outgoing::default(),
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Returns true if the connection can take a query: it has one in flight, or is neither idle for too long nor too
    /// old.
    pub(super) fn is_usable(&self, now: Duration, limits: PoolLimits) -> bool {
        let is_recent = now.saturating_sub(self.used) < limits.idle_max;
        let is_young = limits.age_max.is_zero() || now.saturating_sub(self.opened) < limits.age_max;
        !self.is_idle() || (is_recent && is_young)
    }

    /// Adds a query that has a message ID. Returns true if the driver does not know yet that there are bytes to send.
    pub(super) fn enqueue(&mut self, query: QueryId) -> bool {
        let is_first = !self.is_sending();
        self.outgoing.queue.push_back(query);
        is_first
    }

    /// Returns true if bytes are left to send.
    pub(super) fn is_sending(&self) -> bool {
        self.outgoing.sent < self.outgoing.bytes.len() || !self.outgoing.queue.is_empty()
    }

    /// Returns true if a message has been sent in part.
    pub(super) fn is_within_message(&self) -> bool {
        self.outgoing.sent < self.outgoing.bytes.len()
    }

    /// Returns the next bytes to send.
    pub(super) fn outgoing(&mut self, queries: &Slots<Query>) -> &[u8] {
        if !self.is_within_message() {
            self.encode_batch(queries);
        }
        &self.outgoing.bytes[self.outgoing.sent..]
    }

    /// Encodes queries from the queue, except for those that have ended.
    fn encode_batch(&mut self, queries: &Slots<Query>) {
        let Outgoing { queue, bytes, sent } = &mut self.outgoing;
        bytes.clear();
        bytes.shrink_to(BATCH_LEN);
        *sent = 0;
        while bytes.len() < BATCH_LEN {
            let Some(id) = queue.pop_front() else { return };
            if let (Some(message_id), Some(query)) = (self.in_flight.id_of(id), queries.get(id.0)) {
                let _ = append_frame(bytes, message_id, &query.message);
            }
        }
    }

    /// Records that the driver has sent the next `length` bytes.
    pub(super) fn advance(&mut self, length: usize) {
        self.outgoing.sent = (self.outgoing.sent + length).min(self.outgoing.bytes.len());
    }
}

/// Timer of a query, of an idle connection, or for the queries that wait in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Query(QueryId),
    Connection(ConnectionId),
    Waiting(PoolId),
}
