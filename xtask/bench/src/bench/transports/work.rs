//! What a row measures.

use super::client::Transport;

/// Work of the servers.
pub(crate) enum Work {
    /// Queries over UDP.
    Udp,
    /// Queries over warm connections: their transport, their number, and the queries in flight on each.
    Load(Transport, usize, usize),
    /// Queries over UDP, forwarded to an upstream over this transport.
    Forward(Transport),
    /// Full TLS handshakes over TCP with this key exchange.
    Handshakes(&'static str),
    /// TLS sessions of a client that comes back.
    Resumptions,
    /// Idle connections.
    Idle(Transport),
}
