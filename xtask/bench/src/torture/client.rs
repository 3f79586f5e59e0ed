//! Clients: stub resolvers with two attempts of five seconds, over UDP and TCP.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use specification::message::{self, MessageError, Response};
use specification::record::Question;
use xtask::server::over_tcp;

/// Timeout of an attempt (resolv.conf(5): `timeout`).
const TIMEOUT: Duration = Duration::from_secs(5);
/// Number of attempts (resolv.conf(5): `attempts`).
const ATTEMPTS: usize = 2;
/// RD flag, in the third byte of a message.
const RD: u8 = 1;

/// Transport of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Udp,
    Tcp,
}

/// Outcome of a query.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// Begin and end of each attempt.
    pub(crate) attempts: Vec<(Instant, Instant)>,
    /// Response of the last attempt; an error if it cannot be read.
    pub(crate) response: Option<Result<Response, MessageError>>,
}

/// Asks a question until there is a response.
pub(crate) fn ask(server: SocketAddr, question: &Question, transport: Transport, id: u16) -> Outcome {
    let mut query = message::query(id, question);
    query[2] |= RD;
    let mut outcome = Outcome { attempts: Vec::new(), response: None };
    for _ in 0..ATTEMPTS {
        let begin = Instant::now();
        let mut response = exchange(server, &query, transport).map(|bytes| message::read(&bytes, question));
        if response.as_ref().is_ok_and(|read| read.as_ref().is_ok_and(|response| response.truncated)) {
            response = exchange(server, &query, Transport::Tcp).map(|bytes| message::read(&bytes, question));
        }
        outcome.attempts.push((begin, Instant::now()));
        if let Ok(response) = response {
            outcome.response = Some(response);
            break;
        }
    }
    outcome
}

/// Asks once, and waits this long for an answer.
pub(crate) fn probe(server: SocketAddr, question: &Question, timeout: Duration) -> Option<Response> {
    let bytes = over_udp(server, &message::query(1, question), timeout).ok()?;
    message::read(&bytes, question).ok()
}

fn exchange(server: SocketAddr, query: &[u8], transport: Transport) -> io::Result<Vec<u8>> {
    match transport {
        Transport::Udp => over_udp(server, query, TIMEOUT),
        Transport::Tcp => over_tcp(server, query, TIMEOUT),
    }
}

fn over_udp(server: SocketAddr, query: &[u8], timeout: Duration) -> io::Result<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server)?;
    let end = Instant::now() + timeout;
    socket.send(query)?;
    let mut buffer = [0; 65_535];
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut buffer)?;
        if buffer[..length].starts_with(&query[..2]) {
            return Ok(buffer[..length].to_vec());
        }
    }
}
