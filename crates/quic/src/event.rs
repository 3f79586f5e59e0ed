//! Events of an endpoint.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use quinn_proto::StreamId;

/// Addresses of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Address of the client.
    pub peer: SocketAddr,
    /// Address of the server, if the socket reports it.
    pub local: Option<IpAddr>,
}

/// Query that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueryKey {
    /// Index of the connection.
    pub(crate) connection: usize,
    /// Serial number of the connection. Slot indices are reused.
    pub(crate) serial: u64,
    /// Stream.
    pub(crate) stream: StreamId,
}

/// Event of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A query has arrived. The owner answers it with [`Endpoint::respond`](crate::Endpoint::respond) or gives it up
    /// with [`Endpoint::abandon`](crate::Endpoint::abandon).
    Query {
        /// Identifies the query.
        key: QueryKey,
        /// Current addresses of its connection.
        route: Route,
        /// Address of the client, which is another one behind a proxy.
        client: SocketAddr,
        /// The message.
        message: Bytes,
    },
    /// The client no longer wants the answer to a query.
    Cancelled(QueryKey),
    /// All bytes of an answer of several messages are on their way: the next one may follow.
    Ready(QueryKey),
    /// A response was given, or a connection closed for an error of the client. For metrics: the status code of HTTP,
    /// or the error code of DNS over QUIC.
    Responded(u32),
    /// A limit was reached.
    LimitReached(Limit),
}

/// Limit of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The listener has as many connections as it may have.
    Connections,
    /// A client opens too many connections within a second.
    Rate,
    /// A connection needs more memory than it may have, or causes too much work.
    Load,
}
