//! Pool of connections to one upstream, and the choice of a connection for a query.

use core::time::Duration;
use std::collections::VecDeque;

use super::connection::Connection;
use super::slots::{Key, Slots};
use super::{ConnectionId, QueryId};

/// Maximum number of queries in flight on one connection.
const PIPELINE_MAX: usize = 64;
/// Number of connections to one upstream that the pool opens before queries share one. Many servers, CoreDNS among
/// them, answer the queries of one connection in order, so one slow answer delays the others.
const CONNECTIONS_BEFORE_PIPELINING: usize = 8;

/// Limits of pooled connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// Idle time after which a connection is closed.
    pub idle_max: Duration,
    /// Age after which a connection is not reused; zero for no limit.
    pub age_max: Duration,
    /// Maximum number of idle connections; zero for no limit.
    pub kept_max: usize,
}

/// Key of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolId(pub(super) Key);

pub(super) struct Pool<R> {
    pub(super) route: R,
    /// Open connections, the oldest first.
    pub(super) open: Vec<ConnectionId>,
    /// Number of connections that are being opened.
    pub(super) connecting: usize,
    /// Number of connections in any state.
    pub(super) connections: usize,
    /// Number of queries, with or without a connection.
    pub(super) queries: usize,
    /// Queries that wait for a connection.
    pub(super) waiting: VecDeque<QueryId>,
}

/// Connection for the next query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Open connection.
    Pooled(ConnectionId),
    /// Open a new connection.
    Connect,
    /// Wait until another query's connection is open, or one of an open connection has ended.
    Wait,
}

impl<R> Pool<R> {
    pub(super) fn new(route: R) -> Pool<R> {
        Pool { route, open: Vec::new(), connecting: 0, connections: 0, queries: 0, waiting: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connections == 0 && self.queries == 0
    }

    /// Chooses the connection for the next query: the oldest idle one, else a new one while fewer than
    /// [`CONNECTIONS_BEFORE_PIPELINING`] are open, else the one with the fewest queries in flight. If all are full, it
    /// opens one at a time, so that a burst does not open a connection per query.
    pub(super) fn choose(&self, connections: &Slots<Connection>) -> Choice {
        let in_flight = |id: &ConnectionId| connections.get(id.0).map_or(0, |connection| connection.in_flight.len());
        let least = self.open.iter().map(|id| (*id, in_flight(id))).min_by_key(|(_, in_flight)| *in_flight);
        let are_few = self.open.len() + self.connecting < CONNECTIONS_BEFORE_PIPELINING;
        match least {
            Some((idle, 0)) => Choice::Pooled(idle),
            _ if are_few => Choice::Connect,
            Some((busy, in_flight)) if in_flight < PIPELINE_MAX => Choice::Pooled(busy),
            Some(_) if self.connecting == 0 => Choice::Connect,
            _ => Choice::Wait,
        }
    }

    /// Returns the connections that must not be reused: those that are idle for too long or too old, and the oldest
    /// idle ones above the limit.
    pub(super) fn surplus(
        &self,
        connections: &Slots<Connection>,
        now: Duration,
        limits: PoolLimits,
    ) -> Vec<ConnectionId> {
        let get = |id: &ConnectionId| connections.get(id.0);
        let is_usable = |id: &&ConnectionId| get(id).is_some_and(|connection| connection.is_usable(now, limits));
        let idle = self.open.iter().filter(is_usable).filter(|id| get(id).is_some_and(Connection::is_idle));
        let above = if limits.kept_max == 0 { 0 } else { idle.clone().count().saturating_sub(limits.kept_max) };
        self.open.iter().filter(|id| !is_usable(id)).chain(idle.take(above)).copied().collect()
    }
}
