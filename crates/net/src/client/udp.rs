//! Upstreams over UDP.
//!
//! A socket is connected to one upstream, so the kernel drops what others send; its port is chosen by the kernel at
//! random, and after a few queries another socket takes its place (RFC 5452 §9.2): a guess must hit id and port.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;

use engine::{ExchangeError, Exchanged};
use tokio::net::UdpSocket;
use tokio::time::{Instant, timeout_at};

use super::{Answer, Leave, Waiting};

/// Queries that leave by one port.
const USES_MAX: u32 = 8;
/// Sockets to one upstream at a time that take new queries.
const SOCKETS: usize = 64;
/// Octets of the longest datagram.
const DATAGRAM_MAX: usize = 65_535;

/// Upstreams over UDP, for one worker.
#[derive(Default)]
pub(crate) struct UdpClient {
    upstreams: RefCell<HashMap<(SocketAddr, Option<IpAddr>), Ring>>,
}

/// The sockets to one upstream.
#[derive(Default)]
struct Ring {
    sockets: Vec<Rc<Socket>>,
    next: usize,
}

struct Socket {
    socket: UdpSocket,
    uses: Cell<u32>,
    waiting: Waiting,
}

impl UdpClient {
    /// Asks an upstream once.
    pub(crate) async fn exchange(
        &self,
        to: SocketAddr,
        source: Option<IpAddr>,
        query: &[u8],
        until: Instant,
        random: impl FnMut() -> u16,
    ) -> Result<Exchanged, ExchangeError> {
        let socket = self.socket(to, source).map_err(|error| network("dial", &error))?;
        let reused = socket.uses.get() > 1;
        let (id, answer) = socket.waiting.enter(query, random).ok_or(ExchangeError::Exhausted)?;
        let leave = Leave { waiting: &socket.waiting, id };
        let mut octets = query.to_vec();
        octets[..2].copy_from_slice(&id.to_be_bytes());
        // Past tokio, which would first have to hear from the kernel that a fresh socket can be written to.
        socket2::SockRef::from(&socket.socket).send(&octets).map_err(|error| network("write", &error))?;
        let outcome = timeout_at(until, socket.receive(answer)).await;
        drop(leave);
        match outcome {
            Ok(reply) => Ok(Exchanged { reply: reply?, reused }),
            Err(_) => Err(ExchangeError::Timeout { local: socket.socket.local_addr().ok() }),
        }
    }

    /// The socket for the next query.
    fn socket(&self, to: SocketAddr, source: Option<IpAddr>) -> io::Result<Rc<Socket>> {
        let mut upstreams = self.upstreams.borrow_mut();
        let ring = upstreams.entry((to, source)).or_default();
        ring.next = (ring.next + 1) % SOCKETS;
        match ring.sockets.get_mut(ring.next) {
            Some(known) if known.uses.get() < USES_MAX => {
                known.uses.set(known.uses.get() + 1);
                Ok(Rc::clone(known))
            }
            Some(known) => {
                *known = Socket::open(to, source)?;
                Ok(Rc::clone(known))
            }
            None => {
                let fresh = Socket::open(to, source)?;
                ring.sockets.push(Rc::clone(&fresh));
                Ok(fresh)
            }
        }
    }
}

impl Socket {
    fn open(to: SocketAddr, source: Option<IpAddr>) -> io::Result<Rc<Socket>> {
        let any = if to.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) };
        let socket = std::net::UdpSocket::bind((source.unwrap_or(any), 0))?;
        socket.connect(to)?;
        socket.set_nonblocking(true)?;
        let socket = UdpSocket::from_std(socket)?;
        Ok(Rc::new(Socket { socket, uses: Cell::new(1), waiting: Waiting::default() }))
    }

    /// Reads the socket, for all that wait, until one's own answer is there.
    async fn receive(&self, mut answer: Answer) -> Result<Vec<u8>, ExchangeError> {
        thread_local! {
            static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; DATAGRAM_MAX].into());
        }
        loop {
            tokio::select! {
                biased;
                answer = &mut answer => return answer.unwrap_or(Err(ExchangeError::Closed)),
                ready = self.socket.readable() => ready.map_err(|error| network("read", &error))?,
            }
            BUFFER.with_borrow_mut(|buffer| self.read(buffer));
        }
    }

    /// Reads what is there.
    fn read(&self, buffer: &mut [u8]) {
        loop {
            match self.socket.try_recv(buffer) {
                Ok(length) => self.waiting.deliver(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // An upstream's host that says "port unreachable": no answer will come.
                Err(error) => self.waiting.fail_all(&network("read", &error)),
            }
        }
    }
}

pub(super) fn network(during: &'static str, error: &io::Error) -> ExchangeError {
    ExchangeError::Network { during, error: error.to_string() }
}
