//! Pool of connections to one upstream.

use core::time::Duration;
use std::collections::VecDeque;

use super::carrier::{Carrier, Choice, Counts};
use super::connection::Connection;
use super::pool_limits::PoolLimits;
use super::slots::Slots;
use super::{ConnectionId, QueryId};

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

impl<R> Pool<R> {
    pub(super) fn new(route: R) -> Pool<R> {
        Pool { route, open: Vec::new(), connecting: 0, connections: 0, queries: 0, waiting: VecDeque::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connections == 0 && self.queries == 0
    }

    /// Chooses the connection for the next query.
    pub(super) fn choose<C: Carrier>(&self, connections: &Slots<Connection<C>>) -> Choice {
        let carrier = |id: &ConnectionId| connections.get(id.0).map(|connection| (*id, &connection.carrier));
        let counts = Counts { connecting: self.connecting, waiting: self.waiting.len() };
        C::choose(self.open.iter().filter_map(carrier), counts)
    }

    /// Returns the connections that must not be reused: those that are idle for too long or too old, and the oldest
    /// idle ones above the limit.
    pub(super) fn surplus<C: Carrier>(
        &self,
        connections: &Slots<Connection<C>>,
        now: Duration,
        limits: PoolLimits,
    ) -> Vec<ConnectionId> {
        let get = |id: &ConnectionId| connections.get(id.0);
        let is_usable = |id: &&ConnectionId| get(id).is_some_and(|connection| connection.is_usable(now, limits));
        let idle = self.open.iter().filter(is_usable).filter(|id| get(id).is_some_and(Connection::<C>::is_idle));
        let above = if limits.kept_max == 0 { 0 } else { idle.clone().count().saturating_sub(limits.kept_max) };
        self.open.iter().filter(|id| !is_usable(id)).chain(idle.take(above)).copied().collect()
    }
}
