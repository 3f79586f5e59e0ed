//! Pool of connections to one upstream.

use std::collections::VecDeque;

use host::Instant;
use host::invariant::{Expected as _, holds};

use super::carrier::{Carrier, Choice, Counts};
use super::connection::{Connection, State};
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
        let open = |id: &ConnectionId| connections.get(id.0).expected("an open connection of a pool");
        let carrier = |id: &ConnectionId| open(id).map(|connection| (*id, &connection.carrier));
        let counts = Counts { connecting: self.connecting, waiting: self.waiting.len() };
        C::choose(self.open.iter().filter_map(carrier), counts)
    }

    /// Removes a connection that was in this state.
    pub(super) fn remove(&mut self, id: ConnectionId, state: State) {
        holds(self.connections > 0, "a pool counts its connections");
        self.connections -= 1;
        match state {
            State::Connecting(_) => {
                holds(self.connecting > 0, "a pool counts the connections that are being opened");
                self.connecting -= 1;
            }
            State::Open => self.remove_open(id),
            State::Retired => {}
        }
    }

    /// Removes a connection from those that take queries.
    pub(super) fn remove_open(&mut self, id: ConnectionId) {
        let before = self.open.len();
        self.open.retain(|open| *open != id);
        holds(self.open.len() + 1 == before, "an open connection is listed once");
    }

    /// Returns the connections that must not be reused: those that are idle for too long or too old, and the oldest
    /// idle ones above the limit.
    pub(super) fn surplus<C: Carrier>(
        &self,
        connections: &Slots<Connection<C>>,
        now: Instant,
        limits: PoolLimits,
    ) -> Vec<ConnectionId> {
        let get = |id: &ConnectionId| connections.get(id.0).expected("an open connection of a pool");
        let is_usable = |id: &&ConnectionId| get(id).is_some_and(|connection| connection.is_usable(now, limits));
        let idle = self.open.iter().filter(is_usable).filter(|id| get(id).is_some_and(Connection::<C>::is_idle));
        let above = if limits.kept_max == 0 { 0 } else { idle.clone().count().saturating_sub(limits.kept_max) };
        self.open.iter().filter(|id| !is_usable(id)).chain(idle.take(above)).copied().collect()
    }
}
