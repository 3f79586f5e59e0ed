//! Invariants of the clients, checked after each step with debug assertions: in tests, simulations and fuzzing.
//!
//! Each counter equals what it counts, each reference leads to an entry, and each entry has the timer that ends it. A
//! release build skips these checks, because they look at all entries.

use host::invariant::holds;

use super::carrier::Carrier;
use super::connection::{Connection, State, Timer};
use super::pool::Pool;
use super::pool_limits::PoolId;
use super::pooled::{PoolClient, Query};
use super::ports::USES_MAX;
use super::udp::{self, UdpClient};
use super::{ConnectionId, QueryId, SocketId};

/// Maximum number of entries that are checked after each step. With more, a burst of queries would cost its square.
pub(super) const CHECKED_MAX: usize = 64;

impl<R, C: Carrier> PoolClient<R, C> {
    /// Checks the state after a step.
    pub(super) fn check(&self) {
        if !cfg!(debug_assertions) || self.queries.len() + self.connections.len() > CHECKED_MAX {
            return;
        }
        holds(self.queries.iter().count() == self.queries.len(), "a table counts its values");
        holds(self.by_route.len() == self.pools.len(), "each pool has one route");
        self.pools.iter().for_each(|(id, pool)| self.check_pool(PoolId(id), pool));
        self.connections.iter().for_each(|(id, connection)| self.check_connection(ConnectionId(id), connection));
        self.queries.iter().for_each(|(id, query)| self.check_query(QueryId(id), query));
        let of_pools = |count: fn(&Pool<R>) -> usize| self.pools.iter().map(|(_, pool)| count(pool)).sum::<usize>();
        holds(of_pools(|pool| pool.queries) == self.queries.len(), "each query is in one pool");
        holds(of_pools(|pool| pool.connections) == self.connections.len(), "each connection is in one pool");
        let carried = self.connections.iter().map(|(_, connection)| connection.carrier.in_flight()).sum::<usize>();
        let opening = of_pools(|pool| pool.connecting);
        let waiting = of_pools(|pool| pool.waiting.len());
        holds(carried + opening + waiting == self.queries.len(), "each query is sent, opens a connection or waits");
        let idle = self.connections.iter().filter(|(_, connection)| connection.timer.is_some()).count();
        let wakes = self.timers.iter().filter(|(_, timer)| matches!(timer, Timer::Waiting(_))).count();
        holds(self.timers.len() == self.queries.len() + idle + wakes, "each timer has an owner");
    }

    fn check_pool(&self, id: PoolId, pool: &Pool<R>) {
        let own = || self.connections.iter().filter(|(_, connection)| connection.pool == id);
        let connecting = own().filter(|(_, connection)| matches!(connection.state, State::Connecting(_))).count();
        let open = own().filter(|(_, connection)| connection.state == State::Open).count();
        holds(!pool.is_empty(), "a pool has a query or a connection");
        holds(pool.connections == own().count(), "a pool counts its connections");
        holds(pool.connecting == connecting, "a pool counts the connections that are being opened");
        holds(pool.open.len() == open, "a pool lists its open connections once");
        holds(pool.waiting.len() <= pool.queries, "queries that wait are queries of the pool");
        for open in &pool.open {
            let listed = self.connections.get(open.0).filter(|connection| connection.pool == id);
            holds(listed.is_some_and(|connection| connection.state == State::Open), "a listed connection is open");
        }
        for waiting in &pool.waiting {
            let query = self.queries.get(waiting.0).filter(|query| query.pool == id);
            holds(query.is_some_and(|query| query.connection.is_none()), "a query that waits has no connection");
        }
    }

    fn check_connection(&self, id: ConnectionId, connection: &Connection<C>) {
        holds(self.pools.get(connection.pool.0).is_some(), "a connection has a pool");
        holds(connection.opened <= connection.used, "a connection is used after it was opened");
        if let Some(at) = connection.timer {
            holds(self.timers.contains(&(at, Timer::Connection(id))), "the timer of a connection is set");
        }
        match connection.state {
            State::Connecting(query) => {
                holds(connection.carrier.in_flight() == 0, "a connection that is being opened carries no query");
                holds(connection.timer.is_none(), "a connection that is being opened has no idle timer");
                let opener = self.queries.get(query.0);
                let is_own = opener.is_some_and(|query| query.connection == Some(id));
                holds(is_own, "a connection is opened for a query that waits for it");
            }
            State::Open => {
                let is_timed = connection.timer.is_some() || !connection.is_idle();
                holds(is_timed, "an idle connection has a timer that closes it");
            }
            State::Retired => _ = holds(!connection.is_idle(), "a retired connection closes after its last query"),
        }
    }

    fn check_query(&self, id: QueryId, query: &Query) {
        holds(self.timers.contains(&(query.deadline, Timer::Query(id))), "each query has a deadline");
        holds(self.pools.get(query.pool.0).is_some_and(|pool| pool.queries > 0), "the pool of a query counts it");
        match query.connection {
            Some(on) => {
                let carrier = self.connections.get(on.0).filter(|connection| connection.pool == query.pool);
                holds(carrier.is_some(), "the connection of a query is one of its pool");
            }
            None => {
                let pool = self.pools.get(query.pool.0);
                let places = pool.map_or(0, |pool| pool.waiting.iter().filter(|waiting| **waiting == id).count());
                holds(places == 1, "a query without a connection waits once");
            }
        }
    }
}

impl<R> UdpClient<R> {
    /// Checks the state after a step.
    pub(super) fn check(&self) {
        if !cfg!(debug_assertions) || self.queries.len() + self.sockets.len() > CHECKED_MAX {
            return;
        }
        holds(self.queries.iter().count() == self.queries.len(), "a table counts its values");
        holds(self.by_route.len() == self.ports.len(), "the ports of each upstream have one route");
        holds(self.timers.len() == self.queries.len() + self.ports.len(), "each timer has an owner");
        let carried: usize = self.sockets.iter().map(|(_, socket)| socket.in_flight.len()).sum();
        holds(carried == self.queries.len(), "each query is carried by one socket");
        self.queries.iter().for_each(|(id, query)| self.check_udp_query(QueryId(id), query));
        self.sockets.iter().for_each(|(id, socket)| self.check_socket(SocketId(id), socket));
        let listed: usize = self.ports.iter().map(|(_, ports)| ports.listed()).sum();
        let usable = self.sockets.iter().filter(|(_, socket)| !socket.is_used_up()).count();
        holds(listed == usable, "each socket that takes queries is listed once");
    }

    fn check_udp_query(&self, id: QueryId, query: &udp::Query) {
        holds(query.timer <= query.deadline, "a query ends at its deadline");
        holds(self.timers.contains(&(query.timer, udp::Timer::Query(id))), "each query has a timer");
        let socket = self.sockets.get(query.socket.0);
        let message_id = socket.and_then(|socket| socket.in_flight.id_of(id));
        holds(message_id.is_some(), "the socket of a query carries it");
        holds(message_id.is_none_or(|id| query.message.starts_with(&id.to_be_bytes())), "a query has its message ID");
    }

    fn check_socket(&self, id: SocketId, socket: &udp::Socket) {
        holds(socket.uses <= USES_MAX, "a socket carries a bounded number of queries");
        holds(socket.in_flight.len() <= socket.uses as usize, "the queries in flight are uses of the socket");
        let ports = self.ports.get(socket.ports.0);
        match ports.and_then(|ports| ports.is_busy(id)) {
            Some(is_busy) => _ = holds(is_busy != socket.in_flight.is_empty(), "a busy socket has a query in flight"),
            None => {
                holds(socket.is_used_up(), "a socket that is not listed takes no more queries");
                holds(!socket.in_flight.is_empty(), "a socket that takes no more queries closes after the last one");
            }
        }
    }
}
