//! Upstreams over TCP: connections are kept, and each carries several queries at a time (RFC 7766 §6.2.1).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use engine::tls::TlsClient;
use engine::{Connections, ExchangeError, Exchanged, Take};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout_at};

use super::udp::network;
use super::{Leave, Waiting};
use crate::tls::Client;

/// Queries on one connection at a time.
const PIPELINE_MAX: usize = 64;

/// What connections to one upstream have in common.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    to: SocketAddr,
    source: Option<IpAddr>,
    /// Where the TLS of it is kept, if it has any: it stays there as long as a connection uses it.
    tls: usize,
}

/// How an upstream is reached.
#[derive(Clone)]
pub(crate) struct Way {
    to: SocketAddr,
    source: Option<IpAddr>,
    tls: Option<TlsClient>,
}

impl Way {
    pub(crate) fn new((to, tls): (SocketAddr, Option<&TlsClient>), connections: Connections) -> Way {
        Way { to, source: connections.source, tls: tls.cloned() }
    }

    fn key(&self) -> Key {
        let tls = self.tls.as_ref().map_or(0, |tls| Arc::as_ptr(&tls.0).cast::<()>().addr());
        Key { to: self.to, source: self.source, tls }
    }
}

type Reader = Box<dyn AsyncRead + Unpin>;
type Writer = Box<dyn AsyncWrite + Unpin>;

/// Upstreams over TCP, for one worker.
#[derive(Default)]
pub(crate) struct StreamClient {
    open: RefCell<HashMap<Key, Vec<Rc<Connection>>>>,
}

struct Connection {
    writer: Mutex<Writer>,
    /// Keeps the TLS of the connection, and with it its place in memory.
    _way: Way,
    waiting: Waiting,
    in_flight: Cell<usize>,
    opened: Instant,
    used: Cell<Instant>,
    closed: Cell<bool>,
}

impl StreamClient {
    /// Asks an upstream once; a kept connection that turns out to be closed is replaced silently.
    pub(crate) async fn exchange(
        &self,
        to: (SocketAddr, Option<&TlsClient>),
        connections: Connections,
        query: &[u8],
        until: Instant,
        mut random: impl FnMut() -> u16,
    ) -> Result<Exchanged, ExchangeError> {
        let way = Way::new(to, connections);
        let key = way.key();
        while let Some(kept) = self.kept(key, connections) {
            match kept.exchange(query, until, &mut random).await {
                Ok(reply) => return Ok(Exchanged { reply, reused: true }),
                Err(error @ ExchangeError::Timeout { .. }) => return Err(error),
                Err(_) => kept.closed.set(true),
            }
        }
        let fresh = self.dial(way, until).await?;
        let reply = fresh.exchange(query, until, &mut random).await?;
        Ok(Exchanged { reply, reused: false })
    }

    /// The oldest connection that may be used.
    fn kept(&self, key: Key, connections: Connections) -> Option<Rc<Connection>> {
        let now = Instant::now();
        let mut open = self.open.borrow_mut();
        let list = open.get_mut(&key)?;
        list.retain(|connection| connection.may_stay(now, connections));
        if connections.kept_max > 0 {
            let idle = |connection: &Rc<Connection>| connection.in_flight.get() == 0;
            while list.iter().filter(|connection| idle(connection)).count() > connections.kept_max {
                let Some(at) = list.iter().position(idle) else { break };
                list.remove(at);
            }
        }
        list.iter().find(|connection| connection.in_flight.get() < PIPELINE_MAX).cloned()
    }

    async fn dial(&self, way: Way, until: Instant) -> Result<Rc<Connection>, ExchangeError> {
        let connected = timeout_at(until, connect(&way)).await.map_err(|_| ExchangeError::Timeout { local: None })?;
        let (reader, writer) = connected.map_err(|error| network("dial", &error))?;
        let key = way.key();
        let now = Instant::now();
        let connection = Rc::new(Connection {
            writer: Mutex::new(writer),
            _way: way,
            waiting: Waiting::default(),
            in_flight: Cell::new(0),
            opened: now,
            used: Cell::new(now),
            closed: Cell::new(false),
        });
        tokio::task::spawn_local(receive(Rc::downgrade(&connection), reader));
        self.open.borrow_mut().entry(key).or_default().push(Rc::clone(&connection));
        Ok(connection)
    }
}

async fn connect(way: &Way) -> std::io::Result<(Reader, Writer)> {
    let socket = if way.to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = way.source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    let stream = socket.connect(way.to).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = &way.tls else {
        let (reader, writer) = stream.into_split();
        return Ok((Box::new(reader), Box::new(writer)));
    };
    let stream = Client::of(tls)?.connect(stream, way.to.ip()).await?;
    let (reader, writer) = tokio::io::split(stream);
    Ok((Box::new(reader), Box::new(writer)))
}

impl Connection {
    fn may_stay(&self, now: Instant, connections: Connections) -> bool {
        let busy = self.in_flight.get() > 0;
        let idle = now.duration_since(self.used.get()) < connections.idle_max;
        let young = connections.age_max.is_zero() || now.duration_since(self.opened) < connections.age_max;
        !self.closed.get() && (busy || (idle && young))
    }

    async fn exchange(
        &self,
        query: &[u8],
        until: Instant,
        random: &mut impl FnMut() -> u16,
    ) -> Result<Vec<u8>, ExchangeError> {
        let (id, answer) = self.waiting.enter(query, random).ok_or(ExchangeError::Exhausted)?;
        let leave = Leave { waiting: &self.waiting, id };
        self.in_flight.set(self.in_flight.get() + 1);
        let outcome = timeout_at(until, async {
            self.send(query, id).await?;
            answer.await.unwrap_or(Err(ExchangeError::Closed))
        });
        let outcome = outcome.await;
        self.in_flight.set(self.in_flight.get() - 1);
        self.used.set(Instant::now());
        drop(leave);
        outcome.unwrap_or(Err(ExchangeError::Timeout { local: None }))
    }

    async fn send(&self, query: &[u8], id: u16) -> Result<(), ExchangeError> {
        let octets = framed(query, id).ok_or(ExchangeError::Exhausted)?;
        let mut writer = self.writer.lock().await;
        write(&mut writer, &octets).await
    }
}

/// Asks over a connection of its own and gives each message of the answer to `take`, until that wants no more.
pub(crate) async fn exchange_all(
    way: Way,
    query: &[u8],
    id: u16,
    until: Instant,
    take: Take<'_>,
) -> Result<(), ExchangeError> {
    let conversation = async {
        let (mut reader, mut writer) = connect(&way).await.map_err(|error| network("dial", &error))?;
        let octets = framed(query, id).ok_or(ExchangeError::Exhausted)?;
        write(&mut writer, &octets).await?;
        let mut message = Vec::new();
        loop {
            read_message(&mut reader, &mut message).await.map_err(|_| ExchangeError::Closed)?;
            if message.first_chunk() != Some(&id.to_be_bytes()) {
                return Err(ExchangeError::Mismatch);
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

/// Reads a connection until it ends or nobody has it any more.
async fn receive(connection: std::rc::Weak<Connection>, mut reader: Reader) {
    let mut message = Vec::new();
    loop {
        let read = read_message(&mut reader, &mut message).await;
        let Some(connection) = connection.upgrade() else { return };
        match read {
            Ok(()) => connection.waiting.deliver(&message),
            Err(_) => {
                connection.closed.set(true);
                connection.waiting.fail_all(&ExchangeError::Closed);
                return;
            }
        }
    }
}

/// Reads a length and the message behind it.
async fn read_message(reader: &mut Reader, message: &mut Vec<u8>) -> std::io::Result<()> {
    let length = reader.read_u16().await?;
    message.resize(usize::from(length), 0);
    reader.read_exact(message).await.map(drop)
}
