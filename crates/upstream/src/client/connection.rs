//! Connection to an upstream, and the timers of the client.

use host::Instant;

use super::carrier::Carrier;
use super::pool_limits::{PoolId, PoolLimits};
use super::{ConnectionId, QueryId};

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

pub(super) struct Connection<C> {
    pub(super) pool: PoolId,
    pub(super) state: State,
    /// Limits of the query that opened it.
    pub(super) limits: PoolLimits,
    pub(super) opened: Instant,
    pub(super) used: Instant,
    /// Time of the idle timer, if it is set.
    pub(super) timer: Option<Instant>,
    pub(super) carrier: C,
}

impl<C: Carrier> Connection<C> {
    pub(super) fn new(pool: PoolId, query: QueryId, limits: PoolLimits, now: Instant) -> Connection<C> {
        let (state, carrier) = (State::Connecting(query), C::default());
        Connection { pool, state, limits, opened: now, used: now, timer: None, carrier }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.carrier.in_flight() == 0
    }

    /// Returns true if the connection can take a query: it is not too old, and has one in flight or is not idle for too
    /// long.
    pub(super) fn is_usable(&self, now: Instant, limits: PoolLimits) -> bool {
        let is_recent = now.since(self.used) < limits.idle_max;
        let is_young = limits.age_max.is_zero() || now.since(self.opened) < limits.age_max;
        is_young && (is_recent || !self.is_idle())
    }
}

/// Timer of a query, of an idle connection, or for the queries that wait in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Query(QueryId),
    Connection(ConnectionId),
    Waiting(PoolId),
}
