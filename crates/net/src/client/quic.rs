//! Connections of the client for upstreams over QUIC, with DNS over QUIC or HTTP/3 on their streams. [`quic::Client`]
//! implements the protocols.
//!
//! Each connection has a UDP socket, a task that reads it, and a timer. A query is sent by its own task.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::time::Instant;

use engine::{Exchange, ExchangeError, ExchangeReply};
use host::invariant::holds;
use quic::{ClientEvent, CloseReason, NoStreamError, Protocol, Rejection, Upstream};
use rand::Rng;
use tokio::io::Interest;
use transport::{MonotonicClock, tls_error_text};
use upstream::{ConnectionId, QueryError, QueryId, Random};

use super::pool::{PoolDriver, Transport};
use super::replies::{Incomplete, Replies};
use super::route::Route;
use super::socket::Socket;
use super::timer::{Timed, Timer, arm};
use super::{now, query_error};

/// Length of the buffer for a datagram in bytes: more than the client allows upstreams to send.
const DATAGRAM_MAX: usize = 2048;
/// Streams that the pool may use at once. Its own limit is lower, and the upstream's is known when no stream is left.
const STREAMS: usize = usize::MAX;

/// Client of one worker for one protocol over QUIC.
pub(crate) struct QuicClient(Rc<Driver>);

type Driver = PoolDriver<Quic>;

/// Connections over QUIC, with this protocol on their streams.
struct Quic(Protocol);

struct Connection {
    id: ConnectionId,
    driver: Weak<Driver>,
    quic: RefCell<quic::Client<QueryId>>,
    socket: Rc<Socket>,
    timer: Timer,
    is_connected: Cell<bool>,
    /// Bytes of incomplete replies.
    incomplete: RefCell<Incomplete>,
}

impl QuicClient {
    pub(crate) fn new(protocol: Protocol, random: Random, replies: &Rc<Replies>) -> QuicClient {
        QuicClient(PoolDriver::new(Quic(protocol), random, replies))
    }

    /// Sends one query. The future returns the reply. It does not keep the exchange, to be small.
    pub(crate) fn exchange<'a>(
        &'a self,
        exchange: Exchange<'_>,
    ) -> impl Future<Output = Result<ExchangeReply, ExchangeError>> + use<'a> {
        self.0.exchange(&exchange)
    }
}

impl Transport for Quic {
    type Carrier = upstream::Multiplexed;
    type Opened = Connection;
    type Outcome = Result<ExchangeReply, QueryError>;

    fn open(driver: &Rc<Driver>, id: ConnectionId, route: Route) {
        match Connection::open(driver, id, &route) {
            Ok(connection) => {
                let reader = read(Rc::downgrade(&connection), Rc::clone(&connection.socket));
                let task = tokio::task::spawn_local(reader).abort_handle();
                driver.insert(id, task, Some(Rc::clone(&connection)));
                connection.flush();
            }
            Err(error) => driver.fail(id, &query_error("dial", &error)),
        }
    }

    /// Sends the queries that the pool has for a connection.
    fn transmit(driver: &Driver, id: ConnectionId) {
        // The connection may have been closed since the event was made.
        let Some(connection) = driver.opened(id) else { return };
        let mut client = driver.client.borrow_mut();
        while let Some((query, message)) = client.poll_query(id) {
            let sent = connection.quic.borrow_mut().send(query, message);
            if sent == Err(NoStreamError) {
                client.handle_unsent(now(), query);
            }
        }
        drop(client);
        connection.flush();
    }

    fn local(connection: &Connection) -> Option<SocketAddr> {
        connection.socket.local
    }

    fn close(connection: &Rc<Connection>) {
        connection.quic.borrow_mut().close(Instant::now());
        connection.flush();
    }

    /// Resets the stream of the query.
    fn abandon(driver: &Driver, query: QueryId) {
        let carries = |connection: &Connection| connection.quic.borrow_mut().cancel(&query);
        driver.find_opened(carries).into_iter().for_each(|connection| connection.flush());
    }
}

impl Connection {
    /// Opens the socket and begins to connect.
    fn open(driver: &Rc<Driver>, id: ConnectionId, route: &Route) -> io::Result<Rc<Connection>> {
        let (tls, server_name) = route.quic(driver.transport.0)?;
        let asking = route.asking(driver.transport.0)?;
        let mut seed = [0; 32];
        rand::rng().fill_bytes(&mut seed);
        let socket = Rc::new(Socket::open(route.to, route.source)?);
        let upstream = Upstream { address: route.to, server_name: &server_name, tls, asking, seed };
        let quic = quic::Client::open(Instant::now(), &upstream).map_err(io::Error::other)?;
        Ok(Rc::new(Connection {
            id,
            driver: Rc::downgrade(driver),
            quic: RefCell::new(quic),
            socket,
            timer: Timer::default(),
            is_connected: Cell::new(false),
            incomplete: RefCell::new(Incomplete::new(&driver.outcomes.replies)),
        }))
    }

    /// Sends all datagrams that are ready, and sets the timer.
    fn flush(self: &Rc<Self>) {
        let mut buffer = Vec::new();
        while self.quic.borrow_mut().poll_transmit(Instant::now(), &mut buffer) {
            // QUIC repeats what is lost. The reader sees the error of a port without a listener.
            let _ = self.socket.send(&buffer);
        }
        arm(self);
    }

    /// Reads all datagrams that have arrived, and handles what follows from them.
    ///
    /// # Errors
    /// The system reports an error, such as a port without a listener. The connection has ended.
    fn receive(self: &Rc<Self>, has_error: bool) -> io::Result<()> {
        let mut buffer = [0; DATAGRAM_MAX];
        let mut error = has_error.then(|| self.socket.take_error()).flatten();
        while error.is_none() {
            match self.socket.socket.try_recv(&mut buffer) {
                Ok(length) => self.quic.borrow_mut().handle_datagram(Instant::now(), &buffer[..length]),
                Err(nothing) if nothing.kind() == io::ErrorKind::WouldBlock => break,
                Err(failed) => error = Some(failed),
            }
        }
        self.handle_events();
        let counted = self.incomplete.borrow_mut().set(self.quic.borrow().incomplete_len());
        let error = error.or_else(|| counted.err().map(io::Error::other));
        let Some(error) = error else { return Ok(()) };
        if let Some(driver) = self.driver.upgrade() {
            driver.fail(self.id, &query_error(self.phase(), &error));
            driver.process();
        }
        Err(error)
    }

    fn handle_events(self: &Rc<Self>) {
        let Some(driver) = self.driver.upgrade() else { return };
        loop {
            let Some(event) = self.quic.borrow_mut().poll_event() else { break };
            let (mut client, id) = (driver.client.borrow_mut(), self.id);
            match event {
                ClientEvent::Connected => {
                    holds(!self.is_connected.get(), "a connection opens once");
                    self.is_connected.set(true);
                    client.handle_connected(now(), id);
                    client.handle_capacity(now(), id, STREAMS);
                }
                ClientEvent::StreamsAvailable => client.handle_capacity(now(), id, STREAMS),
                ClientEvent::Reply(query, message) => client.handle_response(now(), query, id, Ok(message)),
                ClientEvent::Rejected(query, rejection) => {
                    let error = QueryError::Network { during: "read", error: rejection.to_string() };
                    match rejection {
                        Rejection::Unprocessed => client.handle_lost(now(), query, id, &error),
                        _ => client.handle_response(now(), query, id, Err(error)),
                    }
                }
                ClientEvent::GoingAway => client.handle_going_away(id),
                ClientEvent::Closed(reason) => {
                    drop(client);
                    driver.fail(id, &self.error(&reason));
                }
            }
        }
        self.flush();
        driver.process();
    }

    /// Returns the error of the queries on a connection that has ended.
    fn error(&self, reason: &CloseReason) -> QueryError {
        let error = match reason {
            CloseReason::Tls(text) => tls_error_text(text),
            reason => reason.to_string(),
        };
        QueryError::Network { during: self.phase(), error }
    }

    /// Returns the operation that fails if the connection ends now.
    fn phase(&self) -> &'static str {
        if self.is_connected.get() { "read" } else { "dial" }
    }
}

impl Timed for Connection {
    fn poll_timeout(&self) -> Option<engine::Instant> {
        let at = self.quic.borrow_mut().poll_timeout()?;
        Some(MonotonicClock::from_std(at))
    }

    fn handle_timeout(self: &Rc<Self>) {
        self.quic.borrow_mut().handle_timeout(Instant::now());
        self.handle_events();
    }

    fn timer(&self) -> &Timer {
        &self.timer
    }
}

/// Reads the socket of a connection until its end.
async fn read(connection: Weak<Connection>, socket: Rc<Socket>) {
    // A pending socket error alone sets neither readable nor writable.
    while let Ok(ready) = socket.socket.ready(Interest::READABLE | Interest::ERROR).await {
        let Some(reading) = connection.upgrade() else { return };
        if reading.incomplete.borrow().must_wait() {
            drop(reading);
            tokio::task::yield_now().await;
            continue;
        }
        if reading.receive(ready.is_error()).is_err() {
            return;
        }
    }
}
