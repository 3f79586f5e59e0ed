//! Client with pooled connections: a pool per upstream, the choice of a connection, and silent retries.
//!
//! ```text
//!                 handle_connected            timeout of a query
//!   Connecting ──────────────────────► Open ────────────────────► Retired
//!       │                               │ idle for too long,         │ last query has ended
//!       │ failed, or the query ended    │ or closed by the peer      │
//!       └───────────────────────────────┴────────────────────────────┴────────► (closed)
//! ```
//!
//! A connection on which a query timed out is retired, because the peer may be gone without closing it.
//!
//! A query on a connection that was open before it is retried silently on another one if that connection turns out to
//! be closed. A query for which the connection was opened fails instead. Each retry removes a connection, so retries
//! end.
//!
//! A [`Carrier`] is the part that depends on the protocol.

use core::hash::Hash;
use std::collections::{BTreeSet, HashMap, VecDeque};

use foldhash::fast::RandomState;
use host::Instant;
use host::invariant::{Expected as _, holds};
use wire::Reply;

use super::carrier::{Carrier, Choice, Fate};
use super::connection::{Connection, State, Timer};
use super::pool::Pool;
use super::pool_limits::PoolId;
use super::pool_limits::PoolLimits;
use super::slots::Slots;
use super::{ConnectionId, QueryError, QueryId, Random};

/// Query to send.
#[derive(Clone, Copy, Debug)]
pub struct PoolQuery<'a, R> {
    /// Upstream, and all else that distinguishes the connections to it, such as a TLS configuration.
    pub route: &'a R,
    /// Message. Its ID is replaced.
    pub message: &'a [u8],
    /// Time at which the query fails.
    pub deadline: Instant,
    /// Limits of the connections to this upstream.
    pub limits: PoolLimits,
}

/// Reply, and the connection that carried it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolReply {
    /// Reply.
    pub reply: Reply,
    /// Connection.
    pub connection: ConnectionId,
    /// True if the connection was open before the query.
    pub is_reused: bool,
}

/// Action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolEvent<R> {
    /// Open a connection. Then call [`PoolClient::handle_connected`] or [`PoolClient::handle_closed`].
    Open(ConnectionId, R),
    /// Send what the client has for this connection. There was nothing to send before.
    Transmit(ConnectionId),
    /// Close a connection, or stop opening it.
    Close(ConnectionId),
    /// A query has completed. If its connection is closed now, that event follows.
    Completed(QueryId, Result<PoolReply, QueryError>),
}

/// Client with pooled connections for any number of upstreams. `R` is the route to an upstream, such as its address and
/// TLS configuration.
pub struct PoolClient<R, C> {
    random: Random,
    pub(super) by_route: HashMap<R, PoolId, RandomState>,
    pub(super) pools: Slots<Pool<R>>,
    pub(super) connections: Slots<Connection<C>>,
    pub(super) queries: Slots<Query>,
    pub(super) timers: BTreeSet<(Instant, Timer)>,
    events: VecDeque<PoolEvent<R>>,
}

pub(super) struct Query {
    pub(super) message: Vec<u8>,
    pub(super) pool: PoolId,
    limits: PoolLimits,
    pub(super) deadline: Instant,
    /// Connection that carries the query; `None` while it waits for one.
    pub(super) connection: Option<ConnectionId>,
    /// True if the connection was opened before the query.
    pub(super) is_reused: bool,
    /// Time at which it was assigned to its connection.
    sent: Instant,
    /// Number of connections that ended before they carried a reply.
    retries: u32,
}

impl<R: Clone + Eq + Hash, C: Carrier> PoolClient<R, C> {
    /// Creates a client without connections.
    #[must_use]
    pub fn new(random: Random) -> PoolClient<R, C> {
        PoolClient {
            random,
            by_route: HashMap::default(),
            pools: Slots::default(),
            connections: Slots::default(),
            queries: Slots::default(),
            timers: BTreeSet::new(),
            events: VecDeque::new(),
        }
    }

    /// Starts a query. Process the events afterwards.
    ///
    /// # Errors
    /// The query is too long for a stream.
    pub fn start(&mut self, now: Instant, query: &PoolQuery<'_, R>) -> Result<QueryId, QueryError> {
        let PoolQuery { route, message, deadline, limits } = *query;
        if u16::try_from(message.len()).is_err() {
            return Err(QueryError::Exhausted);
        }
        let pool = self.pool(route);
        let (connection, mut message) = (None, message.to_vec());
        // Where message IDs match replies to queries, each connection writes its own.
        message.iter_mut().take(2).for_each(|byte| *byte = 0);
        let query = Query { message, pool, limits, deadline, connection, is_reused: false, sent: now, retries: 0 };
        let id = QueryId(self.queries.insert(query));
        if let Some(pool) = self.pools.get_mut(pool.0).expected("the pool of a new query") {
            pool.queries += 1;
        }
        holds(self.timers.insert((deadline, Timer::Query(id))), "a new query has no timer");
        self.assign(now, id);
        self.check();
        Ok(id)
    }

    /// Returns the next action.
    pub fn poll_event(&mut self) -> Option<PoolEvent<R>> {
        self.events.pop_front()
    }

    /// Returns the time at which [`PoolClient::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Processes the success of [`PoolEvent::Open`].
    pub fn handle_connected(&mut self, now: Instant, id: ConnectionId) {
        // The driver may report a connection that this client has closed in the meantime.
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let State::Connecting(query) = connection.state else {
            return host::invariant::broken("a connection is reported as connected once");
        };
        connection.state = State::Open;
        (connection.opened, connection.used) = (now, now);
        let pool = connection.pool;
        if let Some(pool) = self.pools.get_mut(pool.0).expected("the pool of a connection") {
            holds(pool.connecting > 0, "a pool counts the connections that are being opened");
            pool.connecting -= 1;
            pool.open.push(id);
        }
        // The query that opened the connection goes first. The others get the timer of `wake_waiting`, so that
        // connections which open at the same time share them.
        if !self.send(now, query, id) {
            self.complete(now, query, Err(QueryError::Exhausted));
        }
        self.wake_waiting(now, pool);
        self.check();
    }

    /// Processes the end of a connection, or the failure to open it. The driver has closed it.
    ///
    /// The queries that the protocol does not retry fail with `error`. The others are retried on other connections.
    pub fn handle_closed(&mut self, now: Instant, id: ConnectionId, error: &QueryError) {
        // The driver may report the end of a connection that this client has closed in the meantime.
        let Some(mut connection) = self.remove_connection(id) else { return };
        if let State::Connecting(query) = connection.state {
            self.complete(now, query, Err(error.clone()));
            self.fail_waiting(now, connection.pool, error);
        }
        for query in connection.carrier.drain() {
            self.retry(now, query, error);
        }
        self.wake_waiting(now, connection.pool);
        self.remove_empty_pool(connection.pool);
        self.check();
    }

    /// Fails the queries whose deadline has passed, and closes connections that are idle for too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, timer)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            match timer {
                Timer::Query(query) => self.time_out(now, query),
                Timer::Connection(connection) => {
                    self.timers.remove(&(at, timer));
                    self.check_idle(now, connection);
                }
                Timer::Waiting(pool) => {
                    self.timers.remove(&(at, timer));
                    self.assign_waiting(now, pool);
                }
            }
        }
        holds(self.poll_timeout().is_none_or(|at| at > now), "all timers up to now have fired");
        self.check();
    }

    /// Ends a query that nobody waits for any more. There is no event for it.
    pub fn cancel(&mut self, now: Instant, query: QueryId) {
        self.remove_query(now, query);
        self.check();
    }

    /// Returns true if no query is in flight and no action is pending.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queries.len() == 0 && self.events.is_empty()
    }

    /// Returns the number of connections, including those that are being opened.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    fn pool(&mut self, route: &R) -> PoolId {
        if let Some(known) = self.by_route.get(route) {
            return *known;
        }
        let pool = PoolId(self.pools.insert(Pool::new(route.clone())));
        self.by_route.insert(route.clone(), pool);
        pool
    }

    /// Finds a connection for a query, or opens one, or lets the query wait.
    pub(super) fn assign(&mut self, now: Instant, id: QueryId) {
        // Each round ends the loop or takes a connection out of the pool. Only `add` finds out that a connection which
        // seems to have room has no free message ID.
        while let Some(query) = self.queries.get(id.0).expected("a query that needs a connection") {
            holds(query.connection.is_none(), "a query that needs a connection has none");
            let (pool, limits) = (query.pool, query.limits);
            // Before the choice, and not only by timer: servers close idle connections after about the same time, and a
            // query that crosses the close is lost.
            self.remove_surplus(now, pool, limits);
            let Some(pooled) = self.pools.get_mut(pool.0).expected("the pool of a query") else { return };
            match pooled.choose(&self.connections) {
                Choice::Pooled(connection) => {
                    if self.send(now, id, connection) {
                        return;
                    }
                    self.retire(connection);
                }
                Choice::Connect => return self.connect(now, id, pool, limits),
                Choice::Wait => return pooled.waiting.push_back(id),
            }
        }
    }

    fn remove_surplus(&mut self, now: Instant, pool: PoolId, limits: PoolLimits) {
        let Some(pool) = self.pools.get(pool.0).expected("the pool of a query") else { return };
        for connection in pool.surplus(&self.connections, now, limits) {
            self.retire(connection);
        }
    }

    fn connect(&mut self, now: Instant, id: QueryId, pool: PoolId, limits: PoolLimits) {
        let connection = ConnectionId(self.connections.insert(Connection::new(pool, id, limits, now)));
        if let Some(pool) = self.pools.get_mut(pool.0).expected("the pool of a query") {
            pool.connecting += 1;
            pool.connections += 1;
            holds(pool.connecting <= pool.connections, "connections that are being opened are counted as connections");
            self.events.push_back(PoolEvent::Open(connection, pool.route.clone()));
        }
        if let Some(query) = self.queries.get_mut(id.0).expected("a query that opens a connection") {
            (query.connection, query.is_reused) = (Some(connection), false);
        }
    }

    /// Sends a query on an open connection. Returns false if it takes no more.
    fn send(&mut self, now: Instant, id: QueryId, to: ConnectionId) -> bool {
        let connection = self.connections.get_mut(to.0).expected("a connection of the pool");
        let query = self.queries.get_mut(id.0).expected("a query that is sent");
        let (Some(connection), Some(query)) = (connection, query) else { return false };
        let is_sending = connection.carrier.is_sending();
        if !connection.carrier.add(id, &mut *self.random) {
            return false;
        }
        // A query that waited for this connection to open was not sent on an old one. If the connection ends, the next
        // one would end in the same way, so only a query on a reused connection is retried.
        query.is_reused = query.connection != Some(to);
        (query.connection, query.sent) = (Some(to), now);
        // The driver sends until nothing is left. It needs one event for a burst, not one for each query.
        if !is_sending {
            self.events.push_back(PoolEvent::Transmit(to));
        }
        true
    }

    /// Sets a timer that finds connections for the queries that wait in a pool. The driver first reports the other
    /// connections that were opened at the same time, so that all of them get a share.
    pub(super) fn wake_waiting(&mut self, now: Instant, id: PoolId) {
        if self.pools.get(id.0).is_some_and(|pool| !pool.waiting.is_empty()) {
            self.timers.insert((now, Timer::Waiting(id)));
        }
    }

    /// Finds connections for the queries that wait in a pool.
    fn assign_waiting(&mut self, now: Instant, id: PoolId) {
        // The timer outlives a pool whose last query has ended.
        let Some(pool) = self.pools.get_mut(id.0) else { return };
        // Each query waits again at most once, so this ends although `assign` adds to the list.
        for query in core::mem::take(&mut pool.waiting) {
            self.assign(now, query);
        }
    }

    /// Fails the queries that wait for a connection that could not be opened.
    fn fail_waiting(&mut self, now: Instant, id: PoolId, error: &QueryError) {
        // The query that opened the connection may have been the last one of the pool.
        let Some(pool) = self.pools.get_mut(id.0) else { return };
        if C::SHARES_OPENING && pool.connecting == 0 && pool.open.is_empty() {
            for query in core::mem::take(&mut pool.waiting) {
                self.complete(now, query, Err(error.clone()));
            }
        }
    }

    /// Sends a query on another connection. Fails it if the protocol does not retry it.
    pub(super) fn retry(&mut self, now: Instant, id: QueryId, error: &QueryError) {
        let Some(query) = self.queries.get_mut(id.0).expected("a query of a connection") else { return };
        // The connection carries the query no more. Whatever happens next must not take it from there once more.
        query.connection = None;
        if !C::may_retry(query.is_reused, query.retries) {
            return self.complete(now, id, Err(error.clone()));
        }
        query.retries += 1;
        self.assign(now, id);
    }

    fn remove_empty_pool(&mut self, id: PoolId) {
        // The end of the last query may have removed the pool already.
        if self.pools.get(id.0).is_some_and(Pool::is_empty)
            && let Some(pool) = self.pools.remove(id.0)
        {
            holds(pool.waiting.is_empty() && pool.open.is_empty(), "an empty pool has no queries and connections");
            holds(self.by_route.remove(&pool.route) == Some(id), "the route of a pool leads to it");
        }
    }

    /// Fails a query at its deadline, and decides about its connection.
    fn time_out(&mut self, now: Instant, id: QueryId) {
        let Some(query) = self.queries.get(id.0).expected("the query of a timer") else { return };
        let (carried_by, sent) = (query.connection, query.sent);
        let connection = carried_by.and_then(|id| self.connections.get(id.0).expected("the connection of a query"));
        let is_sent = connection.is_some_and(|connection| !matches!(connection.state, State::Connecting(_)));
        self.complete(now, id, Err(if is_sent { QueryError::Timeout } else { QueryError::Unconnected }));
        let Some(id) = carried_by else { return };
        // A connection that was being opened for the query, or was retired, has ended with it.
        match self.connections.get(id.0).map(|connection| connection.carrier.after_timeout(sent)) {
            Some(Fate::Closed) => {
                self.events.push_back(PoolEvent::Close(id));
                self.handle_closed(now, id, &QueryError::Closed);
            }
            Some(Fate::Retired) => self.retire(id),
            Some(Fate::Kept) | None => {}
        }
    }

    /// Takes a connection out of its pool. Closes it if no query is in flight.
    pub(super) fn retire(&mut self, id: ConnectionId) {
        // The driver may report about a connection that this client has closed in the meantime.
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.state == State::Open {
            connection.state = State::Retired;
            if let Some(pool) = self.pools.get_mut(connection.pool.0).expected("the pool of a connection") {
                pool.remove_open(id);
            }
        }
        self.close_if_done(id);
    }

    fn close_if_done(&mut self, id: ConnectionId) {
        let is_done = |connection: &Connection<C>| connection.state == State::Retired && connection.is_idle();
        if self.connections.get(id.0).expected("a connection that may be done").is_some_and(is_done) {
            self.close(id);
        }
    }

    fn close(&mut self, id: ConnectionId) {
        if let Some(connection) = self.remove_connection(id).expected("a connection to close") {
            self.events.push_back(PoolEvent::Close(id));
            self.remove_empty_pool(connection.pool);
        }
    }

    /// Removes a connection from the table, from its pool and from the timers.
    fn remove_connection(&mut self, id: ConnectionId) -> Option<Connection<C>> {
        let connection = self.connections.remove(id.0)?;
        if let Some(at) = connection.timer {
            holds(self.timers.remove(&(at, Timer::Connection(id))), "the timer of a connection is set");
        }
        if let Some(pool) = self.pools.get_mut(connection.pool.0).expected("the pool of a connection") {
            pool.remove(id, connection.state);
        }
        Some(connection)
    }

    /// Closes an idle connection whose time is over, and sets the timer of one that was used since.
    fn check_idle(&mut self, now: Instant, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0).expected("the connection of a timer") else { return };
        connection.timer = None;
        if connection.is_usable(now, connection.limits) {
            self.set_idle_timer(id);
        } else {
            self.retire(id);
        }
    }

    /// Sets the timer of an idle connection, unless an earlier one will check it.
    pub(super) fn set_idle_timer(&mut self, id: ConnectionId) {
        // The end of the last query may have closed the connection.
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.is_idle() && connection.timer.is_none() {
            let at = connection.used + connection.limits.idle_max;
            connection.timer = Some(at);
            self.timers.insert((at, Timer::Connection(id)));
        }
    }

    pub(super) fn complete(&mut self, now: Instant, query: QueryId, outcome: Result<PoolReply, QueryError>) {
        if self.queries.get(query.0).expected("a query that completes").is_some() {
            self.events.push_back(PoolEvent::Completed(query, outcome));
            self.remove_query(now, query);
        }
    }

    /// Removes a query from the table, its connection and the timers.
    fn remove_query(&mut self, now: Instant, id: QueryId) {
        // A query may be cancelled after it has completed, before the driver has seen the event.
        let Some(query) = self.queries.remove(id.0) else { return };
        holds(self.timers.remove(&(query.deadline, Timer::Query(id))), "the timer of a query is set");
        match query.connection {
            Some(connection) => self.release(now, connection, id),
            None => self.stop_waiting(query.pool, id),
        }
        if let Some(pool) = self.pools.get_mut(query.pool.0).expected("the pool of a query") {
            holds(pool.queries > 0, "a pool counts its queries");
            pool.queries -= 1;
        }
        self.remove_empty_pool(query.pool);
    }

    fn stop_waiting(&mut self, id: PoolId, query: QueryId) {
        if let Some(pool) = self.pools.get_mut(id.0).expected("the pool of a query") {
            pool.waiting.retain(|waiting| *waiting != query);
            holds(pool.waiting.len() < pool.queries, "queries that wait are queries of the pool");
        }
    }

    /// Releases the message ID of a query. Stops opening a connection for a query that has ended.
    fn release(&mut self, now: Instant, id: ConnectionId, query: QueryId) {
        // A connection that was closed is removed before the queries that it carried.
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        let pool = connection.pool;
        // A connection that is being opened belongs to one query. Without that query it would be opened for nothing.
        // Other queries that wait for a connection find another one when the timer fires.
        if let State::Connecting(_) = connection.state {
            self.close(id);
            return self.wake_waiting(now, pool);
        }
        connection.carrier.remove(query);
        connection.used = now;
        self.wake_waiting(now, pool);
        self.close_if_done(id);
        self.set_idle_timer(id);
    }
}
