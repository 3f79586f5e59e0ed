//! Driver of the clients with pooled connections: streams, HTTPS and QUIC. A [`Transport`] is the part that differs.
//!
//! The client of UDP has a driver of its own: it has no connections to open, and the query that waits reads the socket.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;

use engine::{Exchange, ExchangeError, ExchangeReply, Instant};
use foldhash::fast::RandomState;
use host::invariant::holds;
use tokio::task::AbortHandle;
use upstream::{Carrier, ConnectionId, PoolClient, PoolEvent, PoolReply, QueryError, QueryId, Random};

use super::outcomes::Outcomes;
use super::replies::{Replies, Weigh};
use super::route::Route;
use super::timer::{Timed, Timer, arm};
use super::{exchange_error, now, pool_query};

/// Kind of connections, and what only its clients know.
pub(super) trait Transport: Sized + 'static {
    /// Rules of the protocol for the queries on a connection.
    type Carrier: Carrier + 'static;
    /// Connection to send on.
    type Opened: 'static;
    /// Result that the task of a query waits for.
    type Outcome: Weigh + From<Result<ExchangeReply, QueryError>> + 'static;

    /// Starts a task that opens a connection, and adds it with [`PoolDriver::insert`].
    fn open(driver: &Rc<PoolDriver<Self>>, id: ConnectionId, route: Route);

    /// Sends what the client has for a connection.
    fn transmit(driver: &PoolDriver<Self>, id: ConnectionId);

    /// Returns the local address of a connection, if the system knows it.
    fn local(opened: &Self::Opened) -> Option<SocketAddr>;

    /// Tells the peer that a connection ends, where the protocol has a word for that.
    fn close(_: &Rc<Self::Opened>) {}

    /// Tells the peer that nobody waits for the reply to a query, where the protocol has a word for that.
    fn abandon(_: &PoolDriver<Self>, _: QueryId) {}
}

/// State machine of a pool, and the connections that it uses.
pub(super) struct PoolDriver<T: Transport> {
    pub(super) transport: T,
    pub(super) client: RefCell<PoolClient<Route, T::Carrier>>,
    connections: RefCell<HashMap<ConnectionId, Connection<T::Opened>, RandomState>>,
    pub(super) outcomes: Outcomes<T::Outcome>,
    timer: Timer,
}

struct Connection<O> {
    task: AbortHandle,
    /// `None` while connecting.
    opened: Option<Rc<O>>,
}

/// Connections are closed by ending their tasks.
impl<O> Drop for Connection<O> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Query that is waited for. Dropping it ends the query.
pub(super) struct Pending<'a, T: Transport> {
    driver: &'a Rc<PoolDriver<T>>,
    pub(super) query: QueryId,
}

impl<T: Transport> Drop for Pending<'_, T> {
    fn drop(&mut self) {
        if self.driver.outcomes.forget(self.query) {
            self.driver.client.borrow_mut().cancel(now(), self.query);
            T::abandon(self.driver, self.query);
            self.driver.process();
        }
    }
}

impl<T: Transport> PoolDriver<T> {
    pub(super) fn new(transport: T, random: Random, replies: &Rc<Replies>) -> Rc<PoolDriver<T>> {
        Rc::new(PoolDriver {
            transport,
            client: RefCell::new(PoolClient::new(random)),
            connections: RefCell::default(),
            outcomes: Outcomes::new(replies),
            timer: Timer::default(),
        })
    }

    /// Starts a query. Call [`PoolDriver::process`] afterwards.
    pub(super) fn start(self: &Rc<Self>, exchange: &Exchange<'_>) -> Result<Pending<'_, T>, QueryError> {
        let query = self.client.borrow_mut().start(now(), &pool_query(exchange, &Route::new(exchange)))?;
        self.outcomes.expect(query);
        Ok(Pending { driver: self, query })
    }

    /// Performs the actions that the client requests.
    pub(super) fn process(self: &Rc<Self>) {
        loop {
            // In a statement of its own, so that the borrow ends before the event is handled, which borrows the client
            // again.
            let event = self.client.borrow_mut().poll_event();
            match event {
                Some(PoolEvent::Open(id, route)) => T::open(self, id, route),
                Some(PoolEvent::Transmit(id)) => T::transmit(self, id),
                Some(PoolEvent::Close(id)) => self.close(id),
                Some(PoolEvent::Completed(query, outcome)) => self.complete(query, outcome),
                None => break,
            }
        }
        arm(self);
    }

    fn complete(&self, query: QueryId, outcome: Result<PoolReply, QueryError>) {
        if outcome.is_err() {
            T::abandon(self, query);
        }
        let outcome = outcome.map(|PoolReply { reply, connection, is_reused }| {
            let local = self.opened(connection).and_then(|opened| T::local(&opened));
            ExchangeReply { reply, reused: is_reused, local }
        });
        self.outcomes.complete(query, outcome.into());
    }

    /// Returns a connection that is open.
    pub(super) fn opened(&self, id: ConnectionId) -> Option<Rc<T::Opened>> {
        self.connections.borrow().get(&id).and_then(|connection| connection.opened.clone())
    }

    /// Returns the open connection that is selected.
    pub(super) fn find_opened(&self, is_it: impl Fn(&T::Opened) -> bool) -> Option<Rc<T::Opened>> {
        let connections = self.connections.borrow();
        connections.values().filter_map(|connection| connection.opened.as_ref()).find(|opened| is_it(opened)).cloned()
    }

    /// Adds a connection with its task, which is ended when the connection is closed. `opened` is absent while it is
    /// being opened.
    pub(super) fn insert(&self, id: ConnectionId, task: AbortHandle, opened: Option<Rc<T::Opened>>) {
        let former = self.connections.borrow_mut().insert(id, Connection { task, opened });
        holds(former.is_none(), "a connection is opened once");
    }

    /// Notes that a connection is open, unless it was closed in the meantime.
    pub(super) fn set_opened(&self, id: ConnectionId, opened: Rc<T::Opened>) {
        if let Some(connection) = self.connections.borrow_mut().get_mut(&id) {
            holds(connection.opened.is_none(), "a connection opens once");
            connection.opened = Some(opened);
        }
    }

    fn close(&self, id: ConnectionId) {
        let closed = self.connections.borrow_mut().remove(&id);
        if let Some(opened) = closed.as_ref().and_then(|connection| connection.opened.as_ref()) {
            T::close(opened);
        }
    }

    /// Removes a connection that has failed or ended.
    pub(super) fn fail(&self, id: ConnectionId, error: &QueryError) {
        let failed = self.connections.borrow_mut().remove(&id);
        self.client.borrow_mut().handle_closed(now(), id, error);
        drop(failed);
    }
}

impl<T: Transport<Outcome = Result<ExchangeReply, QueryError>>> PoolDriver<T> {
    /// Sends one query. The future returns the reply. It does not keep the exchange, to be small.
    pub(super) fn exchange<'a>(
        self: &'a Rc<Self>,
        exchange: &Exchange<'_>,
    ) -> impl Future<Output = Result<ExchangeReply, ExchangeError>> + use<'a, T> {
        let started = self.start(exchange);
        async move {
            let pending = started.map_err(|error| exchange_error(error, None))?;
            self.process();
            self.outcomes.wait(pending.query).await.map_err(|error| exchange_error(error, None))
        }
    }
}

impl<T: Transport> Timed for PoolDriver<T> {
    fn poll_timeout(&self) -> Option<Instant> {
        self.client.borrow().poll_timeout()
    }

    fn handle_timeout(self: &Rc<Self>) {
        self.client.borrow_mut().handle_timeout(now());
        self.process();
    }

    fn timer(&self) -> &Timer {
        &self.timer
    }
}
