//! Upstreams over UDP.
//!
//! A socket is connected to one upstream, so the kernel drops what others send; its port is chosen by the kernel at
//! random, and after a few queries another socket takes its place (RFC 5452 §9.2): a guess must hit id and port.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use engine::{Exchange, ExchangeError, Exchanged};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use super::{Answer, Waiting};
use crate::clock::MonotonicClock;
use crate::trouble::network;

/// Queries that leave by one port.
const USES_MAX: u32 = 8;
/// Sockets to one upstream at a time that take new queries.
const SOCKETS: usize = 64;
/// Octets of the longest datagram.
const DATAGRAM_MAX: usize = 65_535;
/// The sockets to an upstream that was not asked for so long are closed: it may be none of the Corefile's any more.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// An upstream, and the address from which it is asked.
type Key = (SocketAddr, Option<IpAddr>);

/// Upstreams over UDP, for one worker.
#[derive(Default)]
pub(crate) struct UdpClient {
    upstreams: RefCell<HashMap<Key, Ring>>,
}

/// The sockets to one upstream.
struct Ring {
    sockets: Vec<Rc<Socket>>,
    next: usize,
    used: Instant,
}

struct Socket {
    socket: UdpSocket,
    /// Its own end, if the system knows.
    local: Option<SocketAddr>,
    uses: Cell<u32>,
    waiting: Waiting,
}

impl UdpClient {
    /// Asks an upstream, with one datagram or two.
    pub(crate) async fn exchange(
        &self,
        exchange: Exchange<'_>,
        random: impl FnMut() -> u16,
    ) -> Result<Exchanged, ExchangeError> {
        let key = (exchange.to, exchange.connections.source);
        let socket = self.socket(key).map_err(|error| network("dial", &error))?;
        let reused = socket.uses.get() > 1;
        let (entered, answer) = socket.waiting.enter(exchange.query, random).ok_or(ExchangeError::Exhausted)?;
        let mut octets = exchange.query.to_vec();
        octets[..2].copy_from_slice(&entered.id.to_be_bytes());
        let again = exchange.again_after.map(|span| Instant::now() + span);
        let until = MonotonicClock::instant(exchange.until);
        let outcome = timeout_at(until, socket.ask(&octets, again, answer)).await;
        drop(entered);
        match outcome {
            Ok(reply) => Ok(Exchanged { reply: reply?, reused, local: socket.local }),
            Err(_) => Err(ExchangeError::Timeout { local: socket.local }),
        }
    }

    /// The socket for the next query.
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

    /// Sends a query, and once more at `again` if there is no answer by then.
    async fn ask(&self, query: &[u8], again: Option<Instant>, answer: Answer) -> Result<Vec<u8>, ExchangeError> {
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

    /// Past tokio, which would first have to hear from the kernel that a fresh socket can be written to.
    fn send(&self, query: &[u8]) -> Result<(), ExchangeError> {
        let socket = socket2::SockRef::from(&self.socket);
        match socket.send(query) {
            // That is what became of an earlier datagram, and says nothing about this one, which has not left.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => socket.send(query),
            outcome => outcome,
        }
        .map(drop)
        .map_err(|error| network("write", &error))
    }

    /// Reads the socket, for all that wait, until one's own answer is there.
    async fn receive(&self, mut answer: Answer) -> Result<Vec<u8>, ExchangeError> {
        thread_local! {
            static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; DATAGRAM_MAX].into());
        }
        loop {
            let ready = tokio::select! {
                biased;
                answer = &mut answer => return answer.unwrap_or(Err(ExchangeError::Closed)),
                // An error alone makes a socket of datagrams ready for nothing but that.
                ready = self.socket.ready(Interest::READABLE | Interest::ERROR) => ready,
            };
            if ready.map_err(|error| network("read", &error))?.is_error() {
                self.take_error();
            }
            BUFFER.with_borrow_mut(|buffer| self.read(buffer));
        }
    }

    /// Hears what the system has to say: an upstream's host that says "port unreachable", so that no answer will come.
    fn take_error(&self) {
        let _ = self.socket.try_io(Interest::ERROR, || {
            if let Ok(Some(error)) = self.socket.take_error() {
                self.waiting.fail_all(&network("read", &error));
            }
            // So that the runtime waits for the next one.
            Err::<(), _>(io::ErrorKind::WouldBlock.into())
        });
    }

    /// Reads what is there.
    fn read(&self, buffer: &mut [u8]) {
        loop {
            match self.socket.try_recv(buffer) {
                Ok(length) => self.waiting.deliver(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // As above, where the error came in between.
                Err(error) => return self.waiting.fail_all(&network("read", &error)),
            }
        }
    }
}
