//! Upstreams over TCP: connections are kept, and where there are many
//! queries each carries several at a time (RFC 7766 §6.2.1).
//!
//! A connection lives as long as the task that reads it, which leaves when nobody has used it for long enough. One that
//! has shown that it cannot be relied on takes no new queries: it was closed, a message was not written to its end, or a
//! query on it got no answer in time (its other end may be gone without a word).

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::sync::{self, Arc};
use std::time::Duration;

use engine::tls::TlsClient;
use engine::{Connections, Exchange, ExchangeError, Exchanged, Keeper, Take};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout, timeout_at};

use super::Waiting;
use crate::clock::MonotonicClock;
use crate::tls::Client;
use crate::trouble::network;

/// Queries on one connection at a time.
const PIPELINE_MAX: usize = 64;
/// Connections to one upstream that are opened before queries share one: many servers, CoreDNS among them, answer what
/// comes over one connection one after the other, so that a slow answer holds the others up.
const CONNECTIONS_FEW: usize = 8;
/// How often at most a connection is looked at that nobody may be using any more.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What connections to one upstream have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    to: SocketAddr,
    source: Option<IpAddr>,
    /// The place in memory of what it is kept for, its TLS if it has any: nothing else is there as long as a connection is.
    kept_for: usize,
}

/// How an upstream is reached.
#[derive(Clone)]
pub(crate) struct Route {
    to: SocketAddr,
    source: Option<IpAddr>,
    tls: Option<TlsClient>,
    keeper: Option<Keeper>,
}

impl Route {
    pub(crate) fn new((to, tls): (SocketAddr, Option<&TlsClient>), connections: Connections) -> Route {
        Route { to, source: connections.source, tls: tls.cloned(), keeper: None }
    }

    /// The same way, for somebody.
    pub(crate) fn kept_for(self, keeper: Option<&Keeper>) -> Route {
        Route { keeper: keeper.cloned(), ..self }
    }

    pub(crate) fn key(&self) -> Key {
        let kept_for = self.shared().map_or(0, |shared| Arc::as_ptr(shared).cast::<()>().addr());
        Key { to: self.to, source: self.source, kept_for }
    }

    /// What keeps the place that the key names, and says whether anybody is left who would go this way.
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

/// Both at once.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// Upstreams over TCP, for one worker.
#[derive(Default)]
pub(crate) struct StreamClient {
    upstreams: Rc<RefCell<HashMap<Key, Pool>>>,
}

/// The connections to one upstream.
#[derive(Default)]
struct Pool {
    open: Vec<Rc<Connection>>,
    dialing: usize,
    /// A connection is there, or will not be.
    dialed: Rc<Notify>,
}

/// Those who have TLS, or another keeper of connections.
pub(crate) type Users = sync::Weak<dyn Any + Send + Sync>;

/// How a query goes.
enum Way {
    Over(Rc<Connection>),
    /// Over a new connection.
    Dial,
    /// Others are opening connections: not before one of them is there.
    Wait(Rc<Notify>),
}

struct Connection {
    writer: Mutex<Writer>,
    /// Its own end, if the system knows.
    local: Option<SocketAddr>,
    /// Keeps the TLS of the connection, and with it its place in memory.
    _route: Route,
    waiting: Waiting,
    in_flight: Cell<usize>,
    opened: Instant,
    used: Cell<Instant>,
    /// It takes no new queries.
    retired: Cell<bool>,
}

impl StreamClient {
    /// Asks an upstream once; a kept connection that turns out to be closed is replaced silently.
    pub(crate) async fn exchange(
        &self,
        exchange: Exchange<'_>,
        mut random: impl FnMut() -> u16,
    ) -> Result<Exchanged, ExchangeError> {
        let Exchange { to, tls, query, connections, .. } = exchange;
        let until = MonotonicClock::instant(exchange.until);
        let route = Route::new((to, tls), connections);
        loop {
            match self.way(route.key(), connections) {
                Way::Over(kept) => match kept.exchange(query, until, &mut random).await {
                    Ok(reply) => return Ok(Exchanged { reply, reused: true, local: kept.local }),
                    Err(error @ ExchangeError::Timeout { .. }) => return Err(error),
                    Err(_) => kept.retired.set(true),
                },
                Way::Dial => {
                    let fresh = self.dial(&route, connections, until).await?;
                    let reply = fresh.exchange(query, until, &mut random).await?;
                    return Ok(Exchanged { reply, reused: false, local: fresh.local });
                }
                Way::Wait(dialed) => {
                    let waited = timeout_at(until, dialed.notified()).await;
                    waited.map_err(|_| ExchangeError::Timeout { local: None })?;
                }
            }
        }
    }

    /// The way for the next query: over the oldest connection that is idle, then over a new one as long as there are few,
    /// then over the one with the least on its way.
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
    /// Lets connections go that may not be used any more, and idle ones that are too many.
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

/// A connection that is being opened, counted whatever becomes of it.
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

/// Takes a connection out, and with the last one its upstream.
fn forget(upstreams: &mut HashMap<Key, Pool>, key: Key, gone: &Weak<Connection>) {
    if let Some(pool) = upstreams.get_mut(&key) {
        pool.open.retain(|connection| !std::ptr::eq(Rc::as_ptr(connection), gone.as_ptr()));
        if pool.open.is_empty() && pool.dialing == 0 {
            upstreams.remove(&key);
        }
    }
}

/// Opens a connection: its own end, if the system knows, and both directions.
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

/// A stream to an upstream that speaks HTTP/2.
pub(crate) async fn connect_http2(route: &Route) -> std::io::Result<Box<dyn Duplex>> {
    let stream = dial(route).await?;
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
    ) -> Result<Vec<u8>, ExchangeError> {
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
        let octets = framed(query, id).ok_or(ExchangeError::Exhausted)?;
        let mut writer = self.writer.lock().await;
        let whole = Whole { connection: self, written: Cell::new(false) };
        write(&mut writer, &octets).await?;
        whole.written.set(true);
        Ok(())
    }
}

/// Counts a query on its way, also if nobody waits for its end.
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

/// A message that is being written. If it is left half-way, what follows it would be taken for its rest: the connection
/// is of no use any more, also for those who wait for answers on it.
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

/// Asks over a connection of its own and gives each message of the answer to `take`, until that wants no more.
pub(crate) async fn exchange_all(
    route: Route,
    query: &[u8],
    id: u16,
    until: Instant,
    take: Take<'_>,
) -> Result<(), ExchangeError> {
    let conversation = async {
        let (_, mut reader, mut writer) = connect(&route).await.map_err(|error| network("dial", &error))?;
        let octets = framed(query, id).ok_or(ExchangeError::Exhausted)?;
        write(&mut writer, &octets).await?;
        loop {
            let message = read_message(&mut reader).await.map_err(|_| ExchangeError::Closed)?;
            if message.first_chunk() != Some(&id.to_be_bytes()) {
                return Err(ExchangeError::Unreadable);
            }
            if !take(&message) {
                return Ok(());
            }
        }
    };
    timeout_at(until, conversation).await.unwrap_or(Err(ExchangeError::Timeout { local: None }))
}

async fn write(writer: &mut Writer, octets: &[u8]) -> Result<(), ExchangeError> {
    let written = async {
        writer.write_all(octets).await?;
        writer.flush().await
    };
    written.await.map_err(|error| network("write", &error))
}

/// A query with its length before it and another id.
fn framed(query: &[u8], id: u16) -> Option<Vec<u8>> {
    let length = u16::try_from(query.len()).ok()?;
    let mut octets = Vec::with_capacity(query.len() + 2);
    octets.extend_from_slice(&length.to_be_bytes());
    octets.extend_from_slice(&id.to_be_bytes());
    octets.extend_from_slice(query.get(2..)?);
    Some(octets)
}

/// Reads a connection until it ends, was not used for long enough, or nobody has it any more.
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

/// Reads a length and the message behind it.
async fn read_message(reader: &mut Reader) -> std::io::Result<Vec<u8>> {
    let length = reader.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    reader.read_exact(&mut message).await?;
    Ok(message)
}
