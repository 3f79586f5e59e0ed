//! Connections of the client for upstreams over HTTPS. hyper implements HTTP/2 and HTTP/1.1. HTTP/3 is a client of its
//! own, which is used once an upstream has offered it.
//!
//! Each connection has a task, which opens and drives it. A request is driven by the task of its query, so that a
//! response costs no other wake-up, and a query that nobody waits for any more cancels its request.

mod connection;
mod request;

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

use doh::Alternative;
use engine::{Clock, Exchange, ExchangeError, ExchangeReply, LocalFuture};
use transport::MonotonicClock;
use upstream::{Alternatives, ConnectionId, QueryError, QueryId, Random};

use self::connection::{Opened, open};
use self::request::{Answered, RequestError, request};
use super::pool::{PoolDriver, Transport};
use super::quic::QuicClient;
use super::replies::{Replies, Weigh};
use super::route::{Route, RouteKey};
use super::{exchange_error, now, query_error};

/// HTTPS client of one worker.
pub(crate) struct HttpsClient {
    driver: Rc<Driver>,
    http3: QuicClient,
}

type Driver = PoolDriver<Https>;

/// Connections over HTTP/2 and HTTP/1.1.
#[derive(Default)]
struct Https {
    /// Offers of HTTP/3.
    alternatives: RefCell<Alternatives<RouteKey>>,
}

/// Step of a query that its task waits for.
enum Step {
    /// Send the query on this connection, and on no other any more.
    Send(ConnectionId),
    /// The query has completed.
    Done(Result<ExchangeReply, QueryError>),
}

impl Weigh for Step {
    fn reply_len(&self) -> usize {
        match self {
            Step::Send(_) => 0,
            Step::Done(outcome) => outcome.reply_len(),
        }
    }

    fn is_last(&self) -> bool {
        matches!(self, Step::Done(_))
    }
}

impl From<Result<ExchangeReply, QueryError>> for Step {
    fn from(outcome: Result<ExchangeReply, QueryError>) -> Step {
        Step::Done(outcome)
    }
}

/// Request in progress. Dropping it cancels the request.
struct Running<'a> {
    driver: &'a Rc<Driver>,
    on: ConnectionId,
    opened: Rc<Opened>,
    future: LocalFuture<'static, Result<Answered, RequestError>>,
    has_ended: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // HTTP/1.1 has no way to cancel a request but the end of the connection.
        if !self.has_ended && !self.opened.is_http2() {
            self.driver.client.borrow_mut().handle_going_away(self.on);
            self.driver.process();
        }
    }
}

impl HttpsClient {
    pub(crate) fn new(random: Random, http3: QuicClient, replies: &Rc<Replies>) -> HttpsClient {
        let driver = PoolDriver::new(Https::default(), random, replies);
        HttpsClient { driver, http3 }
    }

    /// Sends one query and returns the reply.
    pub(crate) async fn exchange(&self, exchange: Exchange<'_>) -> Result<ExchangeReply, ExchangeError> {
        if exchange.http3
            && let Some(outcome) = Box::pin(self.exchange_over_http3(exchange)).await
        {
            return outcome;
        }
        self.exchange_over_tcp(exchange).await
    }

    /// Sends a query over HTTP/3 if the upstream has offered that. Returns `None` if there is no offer, or no reply in
    /// half of the time that the query has, so that the other half is left for TCP.
    async fn exchange_over_http3(&self, exchange: Exchange<'_>) -> Option<Result<ExchangeReply, ExchangeError>> {
        let upstream = Route::new(&exchange).key();
        let port = self.driver.transport.alternatives.borrow().port(now(), &upstream)?;
        let (to, start) = (SocketAddr::new(exchange.to.ip(), port), MonotonicClock.now());
        let until = start + exchange.until.since(start) / 2;
        match self.http3.exchange(Exchange { to, until, ..exchange }).await {
            Err(ExchangeError::Timeout { .. }) => None,
            Err(ExchangeError::Network { during: "dial", .. }) => {
                self.driver.transport.alternatives.borrow_mut().note_broken(now(), &upstream);
                None
            }
            outcome => Some(outcome),
        }
    }

    async fn exchange_over_tcp(&self, exchange: Exchange<'_>) -> Result<ExchangeReply, ExchangeError> {
        let driver = &self.driver;
        let pending = driver.start(&exchange).map_err(|error| exchange_error(error, None))?;
        driver.process();
        let mut running = None;
        let outcome = poll_fn(|context| driver.poll(pending.query, &exchange, &mut running, context)).await;
        outcome.map_err(|error| exchange_error(error, None))
    }
}

impl Transport for Https {
    type Carrier = upstream::Multiplexed;
    type Opened = Opened;
    type Outcome = Step;

    fn open(driver: &Rc<Driver>, id: ConnectionId, route: Route) {
        let task = tokio::task::spawn_local(run(Rc::downgrade(driver), id, route)).abort_handle();
        driver.insert(id, task, None);
    }

    /// Lets the tasks of the queries that the pool has for a connection send their requests.
    fn transmit(driver: &Driver, id: ConnectionId) {
        let mut client = driver.client.borrow_mut();
        while let Some((query, _)) = client.poll_query(id) {
            driver.outcomes.complete(query, Step::Send(id));
        }
    }

    fn local(opened: &Opened) -> Option<SocketAddr> {
        opened.local
    }
}

impl Driver {
    /// Drives the request of a query. Ready when the query has completed.
    fn poll<'a>(
        self: &'a Rc<Self>,
        query: QueryId,
        exchange: &Exchange<'_>,
        running: &mut Option<Running<'a>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<ExchangeReply, QueryError>> {
        loop {
            match self.outcomes.poll(query, context) {
                Poll::Ready(Step::Done(outcome)) => return Poll::Ready(outcome),
                Poll::Ready(Step::Send(on)) => {
                    self.outcomes.expect(query);
                    *running = self.request(on, exchange);
                    continue;
                }
                Poll::Pending => {}
            }
            let Some(request) = running else { return Poll::Pending };
            let response = ready!(Pin::new(&mut request.future).poll(context));
            request.has_ended = true;
            if let Ok(Answered { offer: Some(offer), .. }) = response
                && exchange.http3
            {
                self.note(exchange, offer);
            }
            self.handle_response(query, request.on, &request.opened, response);
            *running = None;
        }
    }

    /// Notes what an upstream says about HTTP/3.
    fn note(&self, exchange: &Exchange<'_>, offer: Option<Alternative>) {
        let offer = offer.map(|Alternative { port, lifetime }| (port, lifetime));
        self.transport.alternatives.borrow_mut().note(now(), Route::new(exchange).key(), offer);
    }

    /// Begins the request of a query on a connection. `None` if the connection has ended since.
    fn request<'a>(self: &'a Rc<Self>, on: ConnectionId, exchange: &Exchange<'_>) -> Option<Running<'a>> {
        let opened = self.opened(on)?;
        let future =
            request(Rc::clone(&opened), exchange.method, exchange.query.to_vec(), Rc::clone(&self.outcomes.replies));
        let future = Box::pin(future);
        Some(Running { driver: self, on, opened, future, has_ended: false })
    }

    fn handle_response(
        self: &Rc<Self>,
        query: QueryId,
        on: ConnectionId,
        opened: &Opened,
        response: Result<Answered, RequestError>,
    ) {
        let (mut client, now) = (self.client.borrow_mut(), now());
        let failed = |error: &RequestError| QueryError::Network { during: "read", error: error.to_string() };
        match response {
            Ok(Answered { message, is_last, .. }) => {
                if is_last {
                    client.handle_going_away(on);
                }
                client.handle_response(now, query, on, Ok(message));
            }
            Err(error @ RequestError::Refused(_)) => client.handle_response(now, query, on, Err(failed(&error))),
            Err(error @ RequestError::Lost(_)) => client.handle_lost(now, query, on, &failed(&error)),
        }
        // The peer may have changed its limit.
        client.handle_capacity(now, on, opened.streams_max());
        drop(client);
        self.process();
    }
}

/// Opens a connection and drives it until its end.
async fn run(driver: Weak<Driver>, id: ConnectionId, route: Route) {
    let connected = open(&route).await;
    let Some(running) = driver.upgrade() else { return };
    let (opened, connection) = match connected {
        Ok(connected) => connected,
        Err(error) => {
            running.fail(id, &query_error("dial", &error));
            return running.process();
        }
    };
    let streams_max = opened.streams_max();
    running.set_opened(id, Rc::new(opened));
    running.client.borrow_mut().handle_connected(now(), id);
    running.client.borrow_mut().handle_capacity(now(), id, streams_max);
    running.process();
    drop(running);
    connection.await;
    if let Some(driver) = driver.upgrade() {
        // Each request notices the end itself, unless its response has already arrived.
        driver.client.borrow_mut().handle_going_away(id);
        driver.process();
    }
}
