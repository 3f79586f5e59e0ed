//! UDP client for upstreams.
//!
//! Each socket is connected to one upstream, so the kernel drops datagrams from other sources. The kernel chooses the
//! source port at random, and a new socket replaces each one after [`USES_MAX`] queries (RFC 5452 §9.2). An attacker
//! therefore has to guess both message ID and port.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use engine::{Exchange, ExchangeError, ExchangeReply};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};
use transport::MonotonicClock;
use wire::Reply;

use super::{Answer, Waiting, network};

/// Queries sent from one source port.
const USES_MAX: u32 = 8;
/// Sockets per upstream that take new queries.
const SOCKETS: usize = 64;
/// Length of the longest datagram in bytes.
const DATAGRAM_MAX: usize = 65_535;
/// Idle time after which the sockets of an upstream are closed. The upstream may have left the Corefile.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// Address of an upstream, and the source address if one is configured.
type Key = (SocketAddr, Option<IpAddr>);

/// UDP client of one worker.
#[derive(Default)]
pub(crate) struct UdpClient {
    upstreams: RefCell<HashMap<Key, Ring>>,
}

/// Sockets of one upstream, used in turn.
struct Ring {
    sockets: Vec<Rc<Socket>>,
    next: usize,
    used: Instant,
}

struct Socket {
    socket: UdpSocket,
    /// Local address, if the system knows it.
    local: Option<SocketAddr>,
    uses: Cell<u32>,
    waiting: Waiting,
}

impl UdpClient {
    /// Sends one query and returns the response. Retransmits once if `again_after` is set.
    pub(crate) async fn exchange(
        &self,
        exchange: Exchange<'_>,
        random: impl FnMut() -> u16,
    ) -> Result<ExchangeReply, ExchangeError> {
        let key = (exchange.to, exchange.connections.source);
        let socket = self.socket(key).map_err(|error| network("dial", &error))?;
        let reused = socket.uses.get() > 1;
        let (entered, answer) = socket.waiting.enter(exchange.query, random).ok_or(ExchangeError::Exhausted)?;
        let mut bytes = exchange.query.to_vec();
        bytes[..2].copy_from_slice(&entered.id.to_be_bytes());
        let again = exchange.again_after.map(|span| Instant::now() + span);
        let until = MonotonicClock::tokio_instant(exchange.until);
        let outcome = timeout_at(until, socket.ask(&bytes, again, answer)).await;
        drop(entered);
        match outcome {
            Ok(reply) => Ok(ExchangeReply { reply: reply?, reused, local: socket.local }),
            Err(_) => Err(ExchangeError::Timeout { local: socket.local }),
        }
    }

    /// Returns the socket for the next query.
    fn socket(&self, key: Key) -> io::Result<Rc<Socket>> {
        let mut upstreams = self.upstreams.borrow_mut();
        let now = Instant::now();
        if !upstreams.contains_key(&key) {
            upstreams.retain(|_, ring| now.duration_since(ring.used) < FORGOTTEN_AFTER);
        }
        let ring = upstreams.entry(key).or_insert(Ring { sockets: Vec::new(), next: 0, used: now });
        ring.used = now;
        ring.next = (ring.next + 1) % SOCKETS;
        match ring.sockets.get_mut(ring.next) {
            Some(known) if known.uses.get() < USES_MAX => {
                known.uses.set(known.uses.get() + 1);
                Ok(Rc::clone(known))
            }
            Some(known) => {
                *known = Socket::open(key)?;
                Ok(Rc::clone(known))
            }
            None => {
                let fresh = Socket::open(key)?;
                ring.sockets.push(Rc::clone(&fresh));
                Ok(fresh)
            }
        }
    }
}

impl Socket {
    fn open((to, source): Key) -> io::Result<Rc<Socket>> {
        let any = if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let socket = std::net::UdpSocket::bind((source.unwrap_or(any), 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket)?;
        let local = socket.local_addr().ok();
        Ok(Rc::new(Socket { socket, local, uses: Cell::new(1), waiting: Waiting::default() }))
    }

    /// Sends a query, and retransmits it at `again` if no response has arrived by then.
    async fn ask(&self, query: &[u8], again: Option<Instant>, answer: Answer) -> Result<Reply, ExchangeError> {
        self.send(query)?;
        let mut answered = pin!(self.receive(answer));
        if let Some(again) = again {
            if let Ok(answer) = timeout_at(again, answered.as_mut()).await {
                return answer;
            }
            self.send(query)?;
        }
        answered.await
    }

    /// Sends without tokio. Tokio would first wait for the kernel to report a fresh socket as writable.
    fn send(&self, query: &[u8]) -> Result<(), ExchangeError> {
        let socket = socket2::SockRef::from(&self.socket);
        match socket.send(query) {
            // The error belongs to an earlier datagram (ICMP port unreachable). This one has not been sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => socket.send(query),
            outcome => outcome,
        }
        .map(drop)
        .map_err(|error| network("write", &error))
    }

    /// Reads the socket on behalf of all pending queries, until the response to this one has arrived.
    async fn receive(&self, mut answer: Answer) -> Result<Reply, ExchangeError> {
        thread_local! {
            static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; DATAGRAM_MAX].into());
        }
        loop {
            let ready = tokio::select! {
                biased;
                answer = &mut answer => return answer.unwrap_or(Err(ExchangeError::Closed)),
                // A pending socket error alone sets neither readable nor writable.
                ready = self.socket.ready(Interest::READABLE | Interest::ERROR) => ready,
            };
            if ready.map_err(|error| network("read", &error))?.is_error() {
                self.take_error();
            }
            BUFFER.with_borrow_mut(|buffer| self.read(buffer));
        }
    }

    /// Reads the pending socket error, such as port unreachable, and fails all pending queries: no response will come.
    fn take_error(&self) {
        let _ = self.socket.try_io(Interest::ERROR, || {
            if let Ok(Some(error)) = self.socket.take_error() {
                self.waiting.fail_all(&network("read", &error));
            }
            // Makes tokio clear the readiness and wait for the next error.
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }

    /// Reads all datagrams that have arrived.
    fn read(&self, buffer: &mut [u8]) {
        loop {
            match self.socket.try_recv(buffer) {
                Ok(length) => self.waiting.deliver(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An ICMP error that arrived after `take_error`.
                Err(error) => return self.waiting.fail_all(&network("read", &error)),
            }
        }
    }
}
