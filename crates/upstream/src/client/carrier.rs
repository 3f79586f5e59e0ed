//! What differs between the protocols that run over pooled connections.

use host::Instant;

use super::{ConnectionId, QueryId};

/// Queries on one connection, and the rules of its protocol.
pub trait Carrier: Default {
    /// True if all queries that wait fail when no connection can be opened. Otherwise only the one fails for which it
    /// was opened.
    const SHARES_OPENING: bool;

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

    /// Returns the fate of the connection after a query timed out that was sent at this time.
    fn after_timeout(&self, sent: Instant) -> Fate;

    /// Returns true if a query is sent on another connection after the end of its own. `is_reused` is true if the
    /// connection was open before the query.
    fn may_retry(is_reused: bool, retries: u32) -> bool;

    /// Chooses the connection for the next query. `open` has the open connections, the oldest first.
    fn choose<'a>(open: impl Iterator<Item = (ConnectionId, &'a Self)> + Clone, counts: Counts) -> Choice
    where
        Self: 'a;
}

/// Numbers about a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are being opened.
    pub connecting: usize,
    /// Queries that wait for a connection.
    pub waiting: usize,
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
    /// It stays in its pool.
    Kept,
    /// It takes no new queries.
    Retired,
    /// It is closed at once.
    Closed,
}
