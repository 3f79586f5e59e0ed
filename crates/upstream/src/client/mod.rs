//! Clients for upstreams as state machines without I/O: what UDP and streams have in common.

mod carrier;
mod checks;
mod connection;
mod ended;
mod frame;
mod mismatch;
mod multiplex;
mod pool;
mod pool_limits;
mod pooled;
mod ports;
mod slots;
mod stream;
mod udp;

use core::fmt;

use host::planted::{Bug, is_planted};
use wire::Reply;

pub use carrier::Carrier;
pub use frame::{FrameReader, append_frame};
pub use mismatch::Mismatch;
pub use multiplex::{MultiplexClient, Multiplexed};
pub use pool_limits::PoolLimits;
pub use pooled::{PoolClient, PoolEvent, PoolQuery, PoolReply};
pub use slots::{ConnectionId, QueryId, SocketId};
pub use stream::{Framed, StreamClient};
pub use udp::{Started, Transmit, UdpClient, UdpEvent, UdpQuery};

/// Source of unpredictable numbers, for message IDs (RFC 5452 §9.2).
pub type Random = Box<dyn FnMut() -> u16>;

/// Attempts to find an unused random message ID. Few IDs are in use on a socket, so almost always the first one is
/// free.
const ID_TRIES: usize = 8;

/// Reason why a query failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// The deadline passed without a reply.
    Timeout,
    /// The deadline passed before a connection was open.
    Unconnected,
    /// An operation on the socket failed.
    Network {
        /// Operation that failed: `dial`, `read` or `write`.
        during: &'static str,
        /// Text of the system error.
        error: String,
    },
    /// The peer closed the connection without a reply.
    Closed,
    /// The response is not a reply to the query.
    Malformed,
    /// No message ID is free, or the query is too long for a stream.
    Exhausted,
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::Timeout => f.write_str("no answer in time"),
            QueryError::Unconnected => f.write_str("no connection in time"),
            QueryError::Network { during, error } => write!(f, "{during}: {error}"),
            QueryError::Closed => f.write_str("connection closed by the peer"),
            QueryError::Malformed => f.write_str("malformed reply"),
            QueryError::Exhausted => f.write_str("too many queries in flight"),
        }
    }
}

impl core::error::Error for QueryError {}

/// Queries in flight on one socket or connection, by message ID.
///
/// They are at most as many as share a port or a connection, so a scan is faster than a hash table.
#[derive(Debug, Default)]
struct InFlight(Vec<(u16, QueryId)>);

impl InFlight {
    /// Adds a query under an unused random ID and returns the ID. `None` if none was found.
    fn insert(&mut self, query: QueryId, random: &mut dyn FnMut() -> u16) -> Option<u16> {
        debug_assert!(self.id_of(query).is_none(), "a query has one message ID");
        let id = (0..ID_TRIES).map(|_| random()).find(|id| self.by_id(*id).is_none())?;
        self.0.push((id, query));
        Some(id)
    }

    fn by_id(&self, id: u16) -> Option<QueryId> {
        self.0.iter().find(|(used, _)| *used == id).map(|(_, query)| *query)
    }

    fn id_of(&self, query: QueryId) -> Option<u16> {
        self.0.iter().find(|(_, known)| *known == query).map(|(id, _)| *id)
    }

    fn drain(&mut self) -> Vec<QueryId> {
        core::mem::take(&mut self.0).into_iter().map(|(_, query)| query).collect()
    }

    fn remove(&mut self, query: QueryId) {
        self.0.retain(|(_, known)| *known != query);
    }

    fn first(&self) -> Option<(u16, QueryId)> {
        self.0.first().copied()
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the query that a message from the network has the ID of.
    fn for_message(&self, message: &[u8]) -> Option<QueryId> {
        message.first_chunk().and_then(|id| self.by_id(u16::from_be_bytes(*id)))
    }
}

/// Parses a message that has the ID of `query`. `None` unless it responds to the query (RFC 5452 §9.1).
fn matching_reply(message: &[u8], query: &[u8]) -> Option<Reply> {
    let is_reply = |reply: &Reply| reply.responds_to(query) || is_planted(Bug::AnyQuestion);
    Reply::parse(message.to_vec()).ok().filter(is_reply)
}
