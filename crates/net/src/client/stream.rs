//! TCP connection pool, one per upstream, with pipelining (RFC 7766 §6.2.1).
//!
//! Each connection has a task that reads it. The task ends, and the connection with it, after the idle timeout. A
//! connection is retired, which means that it takes no new queries, if it was closed, if a message was written only in
//! part, or if a query on it timed out (the peer may be gone without closing it).

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::{self, Arc};
use std::time::Duration;

use engine::tls::TlsClient;
use engine::{Connections, Exchange, ExchangeError, ExchangeReply, OnMessage, PoolOwner};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout, timeout_at};
use transport::MonotonicClock;
use transport::tls::Client;
use wire::Reply;

use super::{Waiting, network};

/// Maximum number of queries in flight on one connection.
const PIPELINE_MAX: usize = 64;
/// Number of connections to one upstream that the pool opens before queries share one. Many servers, CoreDNS among
/// them, answer the queries of one connection in order, so one slow answer delays the others.
const CONNECTIONS_FEW: usize = 8;
/// Shortest interval at which an idle connection checks if it may be closed.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Key of a connection pool.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    to: SocketAddr,
    source: Option<IpAddr>,
    /// Address in memory of the pool's owner (its TLS configuration, if it has one), or 0. The address stays unique
    /// because each connection keeps a reference.
    owner: usize,
}

/// Upstream address, and how to connect to it.
#[derive(Clone)]
pub(crate) struct Route {
    to: SocketAddr,
    /// Path of a Unix socket to connect to instead of `to`.
    socket: Option<Box<str>>,
    source: Option<IpAddr>,
    tls: Option<TlsClient>,
    keeper: Option<PoolOwner>,
}

impl Route {
    pub(crate) fn new((to, tls): (SocketAddr, Option<&TlsClient>), connections: Connections) -> Route {
        Route { to, socket: None, source: connections.source, tls: tls.cloned(), keeper: None }
    }

    /// Returns this route to the Unix socket with this path, if there is one.
    pub(crate) fn over_socket(self, path: Option<&str>) -> Route {
        Route { socket: path.map(Box::from), ..self }
    }

    /// Path of the Unix socket.
    pub(crate) fn socket(&self) -> Option<&str> {
        self.socket.as_deref()
    }

    /// Returns this route with a pool of its own for `keeper`.
    pub(crate) fn owner(self, keeper: Option<&PoolOwner>) -> Route {
        Route { keeper: keeper.cloned(), ..self }
    }

    pub(crate) fn key(&self) -> Key {
        let owner = self.shared().map_or(0, |shared| Arc::as_ptr(shared).cast::<()>().addr());
        Key { to: self.to, source: self.source, owner }
    }

    /// Returns a weak reference to the owner. It keeps the address in [`Key`] allocated, and tells if the owner still
    /// exists.
    pub(crate) fn users(&self) -> Option<Users> {
        self.shared().map(Arc::downgrade)
    }

    fn shared(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        let tls = self.tls.as_ref().map(|tls| &tls.0);
        tls.or(self.keeper.as_ref().map(|keeper| &keeper.0))
    }
}

type Reader = Box<dyn AsyncRead + Unpin>;
type Writer = Box<dyn AsyncWrite + Unpin>;

/// Bidirectional byte stream.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// TCP client of one worker.
#[derive(Default)]
pub(crate) struct StreamClient {
    upstreams: Rc<RefCell<HashMap<Key, Pool>>>,
}

/// Pool of connections to one upstream.
#[derive(Default)]
struct Pool {
    open: Vec<Rc<Connection>>,
    dialing: usize,
    /// Notified when an attempt to connect has succeeded or failed.
    dialed: Rc<Notify>,
}

/// Weak reference to the owner of a pool: a TLS configuration or a [`PoolOwner`].
pub(crate) type Users = sync::Weak<dyn Any + Send + Sync>;

/// Connection for the next query.
enum Way {
    Over(Rc<Connection>),
    /// Open a new connection.
    Dial,
    /// Wait until another task has connected.
    Wait(Rc<Notify>),
}

struct Connection {
    writer: Mutex<Writer>,
    /// Local address, if the system knows it.
    local: Option<SocketAddr>,
    /// Keeps the owner of the pool alive, and with it the address in [`Key`].
    _route: Route,
    waiting: Waiting,
    in_flight: Cell<usize>,
    opened: Instant,
    used: Cell<Instant>,
    /// True if the connection takes no new queries.
    retired: Cell<bool>,
}

impl StreamClient {
    /// Sends one query and returns the response. Retries silently if a pooled connection turns out to be closed.
    pub(crate) async fn exchange(
        &self,
        exchange: Exchange<'_>,
        mut random: impl FnMut() -> u16,
    ) -> Result<ExchangeReply, ExchangeError> {
        let Exchange { to, tls, query, connections, .. } = exchange;
        let until = MonotonicClock::tokio_instant(exchange.until);
        let route = Route::new((to, tls), connections);
        loop {
            match self.way(route.key(), connections) {
                Way::Over(kept) => match kept.exchange(query, until, &mut random).await {
                    Ok(reply) => return Ok(ExchangeReply { reply, reused: true, local: kept.local }),
                    Err(error @ ExchangeError::Timeout { .. }) => return Err(error),
                    Err(_) => kept.retired.set(true),
                },
                Way::Dial => {
                    let fresh = self.dial(&route, connections, until).await?;
                    let reply = fresh.exchange(query, until, &mut random).await?;
                    return Ok(ExchangeReply { reply, reused: false, local: fresh.local });
                }
                Way::Wait(dialed) => {
                    let waited = timeout_at(until, dialed.notified()).await;
                    waited.map_err(|_| ExchangeError::Timeout { local: None })?;
                }
            }
        }
    }

    /// Chooses the connection for the next query: the oldest idle one, else a new one while fewer than
    /// [`CONNECTIONS_FEW`] are open, else the one with the fewest queries in flight.
    fn way(&self, key: Key, connections: Connections) -> Way {
        let mut upstreams = self.upstreams.borrow_mut();
        let pool = upstreams.entry(key).or_default();
        pool.tidy(connections);
        let least = pool.open.iter().min_by_key(|connection| connection.in_flight.get());
        let few = pool.open.len() + pool.dialing < CONNECTIONS_FEW;
        match least {
            Some(idle) if idle.in_flight.get() == 0 => Way::Over(Rc::clone(idle)),
            _ if few => Way::Dial,
            Some(busy) if busy.in_flight.get() < PIPELINE_MAX => Way::Over(Rc::clone(busy)),
            Some(_) => Way::Dial,
            None => Way::Wait(Rc::clone(&pool.dialed)),
        }
    }

    async fn dial(
        &self,
        route: &Route,
        connections: Connections,
        until: Instant,
    ) -> Result<Rc<Connection>, ExchangeError> {
        let key = route.key();
        let dialing = Dialing::new(&self.upstreams, key);
        let connected = timeout_at(until, connect(route)).await.map_err(|_| ExchangeError::Timeout { local: None })?;
        let (local, reader, writer) = connected.map_err(|error| network("dial", &error))?;
        let now = Instant::now();
        let connection = Rc::new(Connection {
            writer: Mutex::new(writer),
            local,
            _route: route.clone(),
            waiting: Waiting::default(),
            in_flight: Cell::new(0),
            opened: now,
            used: Cell::new(now),
            retired: Cell::new(false),
        });
        let (upstreams, kept) = (Rc::clone(&self.upstreams), Rc::downgrade(&connection));
        tokio::task::spawn_local(async move {
            receive(&kept, reader, connections).await;
            forget(&mut upstreams.borrow_mut(), key, &kept);
        });
        self.upstreams.borrow_mut().entry(key).or_default().open.push(Rc::clone(&connection));
        drop(dialing);
        Ok(connection)
    }
}

impl Pool {
    /// Removes connections that are retired or expired, and idle ones above the limit.
    fn tidy(&mut self, connections: Connections) {
        let now = Instant::now();
        self.open.retain(|connection| connection.may_stay(now, connections));
        let idle = |connection: &Rc<Connection>| connection.in_flight.get() == 0;
        while connections.kept_max > 0
            && self.open.iter().filter(|connection| idle(connection)).count() > connections.kept_max
        {
            let Some(at) = self.open.iter().position(idle) else { break };
            self.open.remove(at);
        }
    }
}

/// Counts a connection attempt. Dropping it ends the count, even if the attempt is cancelled.
struct Dialing {
    upstreams: Rc<RefCell<HashMap<Key, Pool>>>,
    key: Key,
}

impl Dialing {
    fn new(upstreams: &Rc<RefCell<HashMap<Key, Pool>>>, key: Key) -> Dialing {
        upstreams.borrow_mut().entry(key).or_default().dialing += 1;
        Dialing { upstreams: Rc::clone(upstreams), key }
    }
}

impl Drop for Dialing {
    fn drop(&mut self) {
        let mut upstreams = self.upstreams.borrow_mut();
        if let Some(pool) = upstreams.get_mut(&self.key) {
            pool.dialing -= 1;
            pool.dialed.notify_waiters();
            if pool.open.is_empty() && pool.dialing == 0 {
                upstreams.remove(&self.key);
            }
        }
    }
}

/// Removes a connection from its pool, and the pool if it is empty.
fn forget(upstreams: &mut HashMap<Key, Pool>, key: Key, gone: &Weak<Connection>) {
    if let Some(pool) = upstreams.get_mut(&key) {
        pool.open.retain(|connection| !std::ptr::eq(Rc::as_ptr(connection), gone.as_ptr()));
        if pool.open.is_empty() && pool.dialing == 0 {
            upstreams.remove(&key);
        }
    }
}

/// Connects. Returns the local address, if the system knows it, and both directions of the stream.
async fn connect(route: &Route) -> std::io::Result<(Option<SocketAddr>, Reader, Writer)> {
    let stream = dial(route).await?;
    let local = stream.local_addr().ok();
    let Some(tls) = &route.tls else {
        let (reader, writer) = stream.into_split();
        return Ok((local, Box::new(reader), Box::new(writer)));
    };
    let stream = Client::of(tls)?.connect(stream, route.to.ip()).await?;
    let (reader, writer) = tokio::io::split(stream);
    Ok((local, Box::new(reader), Box::new(writer)))
}

/// Connects to an upstream over HTTP/2.
pub(crate) async fn connect_http2(route: &Route) -> std::io::Result<Box<dyn Duplex>> {
    match route.socket() {
        Some(path) => http2_over(UnixStream::connect(path).await?, route).await,
        None => http2_over(dial(route).await?, route).await,
    }
}

async fn http2_over<S: Duplex + 'static>(stream: S, route: &Route) -> std::io::Result<Box<dyn Duplex>> {
    let Some(tls) = &route.tls else { return Ok(Box::new(stream)) };
    Ok(Box::new(Client::of(tls)?.connect_http2(stream, route.to.ip()).await?))
}

async fn dial(route: &Route) -> std::io::Result<TcpStream> {
    let socket = if route.to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = route.source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    let stream = socket.connect(route.to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Connection {
    fn may_stay(&self, now: Instant, connections: Connections) -> bool {
        let busy = self.in_flight.get() > 0;
        let idle = now.duration_since(self.used.get()) < connections.idle_max;
        let young = connections.age_max.is_zero() || now.duration_since(self.opened) < connections.age_max;
        !self.retired.get() && (busy || (idle && young))
    }

    async fn exchange(
        &self,
        query: &[u8],
        until: Instant,
        random: &mut impl FnMut() -> u16,
    ) -> Result<Reply, ExchangeError> {
        let (entered, answer) = self.waiting.enter(query, random).ok_or(ExchangeError::Exhausted)?;
        let _busy = Busy::new(self);
        let outcome = timeout_at(until, async {
            self.send(query, entered.id).await?;
            answer.await.unwrap_or(Err(ExchangeError::Closed))
        });
        outcome.await.unwrap_or_else(|_| {
            self.retired.set(true);
            Err(ExchangeError::Timeout { local: None })
        })
    }

    async fn send(&self, query: &[u8], id: u16) -> Result<(), ExchangeError> {
        let bytes = framed(query, id).ok_or(ExchangeError::Exhausted)?;
        let mut writer = self.writer.lock().await;
        let whole = Whole { connection: self, written: Cell::new(false) };
        write(&mut writer, &bytes).await?;
        whole.written.set(true);
        Ok(())
    }
}

/// Counts a query in flight. Dropping it ends the count, even if the query is cancelled.
struct Busy<'a>(&'a Connection);

impl<'a> Busy<'a> {
    fn new(connection: &'a Connection) -> Busy<'a> {
        connection.in_flight.set(connection.in_flight.get() + 1);
        Busy(connection)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.in_flight.set(self.0.in_flight.get() - 1);
        self.0.used.set(Instant::now());
    }
}

/// Guard for a message being written. If it is dropped before the message is complete, the peer would read the next
/// message as the rest of this one. The connection is then useless, and all its pending queries fail.
struct Whole<'a> {
    connection: &'a Connection,
    written: Cell<bool>,
}

impl Drop for Whole<'_> {
    fn drop(&mut self) {
        if !self.written.get() {
            self.connection.retired.set(true);
            self.connection.waiting.fail_all(&ExchangeError::Closed);
        }
    }
}

/// Sends a query on a new connection and passes each response message to `on_message`, until that returns false.
pub(crate) async fn exchange_all(
    route: Route,
    query: &[u8],
    id: u16,
    until: Instant,
    on_message: OnMessage<'_>,
) -> Result<(), ExchangeError> {
    let conversation = async {
        let (_, mut reader, mut writer) = connect(&route).await.map_err(|error| network("dial", &error))?;
        let bytes = framed(query, id).ok_or(ExchangeError::Exhausted)?;
        write(&mut writer, &bytes).await?;
        loop {
            let message = read_message(&mut reader).await.map_err(|_| ExchangeError::Closed)?;
            if message.first_chunk() != Some(&id.to_be_bytes()) {
                return Err(ExchangeError::Unreadable);
            }
            if !on_message(&message) {
                return Ok(());
            }
        }
    };
    timeout_at(until, conversation).await.unwrap_or(Err(ExchangeError::Timeout { local: None }))
}

async fn write(writer: &mut Writer, bytes: &[u8]) -> Result<(), ExchangeError> {
    let written = async {
        writer.write_all(bytes).await?;
        writer.flush().await
    };
    written.await.map_err(|error| network("write", &error))
}

/// Encodes a query with a length prefix and the message ID replaced.
fn framed(query: &[u8], id: u16) -> Option<Vec<u8>> {
    let length = u16::try_from(query.len()).ok()?;
    let mut bytes = Vec::with_capacity(query.len() + 2);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(query.get(2..)?);
    Some(bytes)
}

/// Reads responses until the connection ends, exceeds the idle timeout, or has left the pool.
async fn receive(connection: &Weak<Connection>, mut reader: Reader, connections: Connections) {
    loop {
        let mut reading = pin!(read_message(&mut reader));
        let read = loop {
            match timeout(connections.idle_max.max(LOOK_EVERY), reading.as_mut()).await {
                Ok(read) => break read,
                Err(_) if connection.upgrade().is_some_and(|kept| kept.may_stay(Instant::now(), connections)) => {}
                Err(_) => return,
            }
        };
        let Some(connection) = connection.upgrade() else { return };
        match read {
            Ok(message) => connection.waiting.deliver(&message),
            Err(_) => {
                connection.retired.set(true);
                return connection.waiting.fail_all(&ExchangeError::Closed);
            }
        }
    }
}

/// Reads a length prefix and the message that follows it.
async fn read_message(reader: &mut Reader) -> std::io::Result<Vec<u8>> {
    let length = reader.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    reader.read_exact(&mut message).await?;
    Ok(message)
}
