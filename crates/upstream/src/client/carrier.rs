//! What differs between the protocols that run over pooled connections.

use super::{ConnectionId, QueryId};

/// Queries on one connection, and the rules of its protocol.
pub trait Carrier: Default {
    /// Adds a query. Returns false if the connection takes no more.
    fn add(&mut self, query: QueryId, random: &mut dyn FnMut() -> u16) -> bool;

    /// Removes a query.
    fn remove(&mut self, query: QueryId);

    /// Removes all queries, and returns them in the order in which they were added.
    fn drain(&mut self) -> Vec<QueryId>;

    /// Returns the number of queries in flight.
    fn in_flight(&self) -> usize;

    /// Returns true if something is left to send.
    fn is_sending(&self) -> bool;

    /// Returns the fate of the connection after a query on it timed out.
    fn after_timeout(&self) -> Fate;

    /// Chooses the connection for the next query. `open` has the open connections, the oldest first, and `connecting`
    /// is the number of those that are being opened.
    fn choose<'a>(open: impl Iterator<Item = (ConnectionId, &'a Self)> + Clone, connecting: usize) -> Choice
    where
        Self: 'a;
}

/// Connection for the next query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Open connection.
    Pooled(ConnectionId),
    /// Open a new connection.
    Connect,
    /// Wait until another query's connection is open, or one of an open connection has ended.
    Wait,
}

/// Fate of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It takes no new queries.
    Retired,
    /// It is closed at once.
    Closed,
}
