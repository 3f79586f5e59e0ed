//! Queries for the addresses of a name, over UDP and, for truncated responses, over TCP.
//!
//! A and AAAA are asked one after the other: two queries at once from one port can lose one of them to a race in the
//! connection tracking of Linux, which costs the whole timeout.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use wire::{Class, Flags, Header, Message, MessageBuf, Name, Rcode, Section, Type};

use crate::exchange::frame;
use crate::resolv_conf::ResolvConf;

/// Largest response that is read over UDP: queries offer no larger size (RFC 1035 §4.2.1), but servers may ignore that.
const RESPONSE_MAX: usize = 4096;
/// Number of addresses of a host that are kept. Clients try a few of them at most.
const ADDRESSES_MAX: usize = 64;

/// Asks the servers in turn for the addresses of a name. Returns none if the name has none or does not exist.
///
/// # Errors
/// The failure of the last server, if none gave a usable answer.
pub(crate) fn addresses(name: &Name, conf: &ResolvConf) -> io::Result<Vec<IpAddr>> {
    let mut outcome = Err(io::ErrorKind::NotFound.into());
    for server in (0..conf.attempts).flat_map(|_| &conf.servers) {
        outcome = addresses_from(*server, name, conf.timeout);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn addresses_from(server: SocketAddr, name: &Name, timeout: Duration) -> io::Result<Vec<IpAddr>> {
    let describe = |error: io::Error| {
        let kind = if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut } else { error.kind() };
        io::Error::new(kind, format!("lookup {name} at {server}: {}", reason(&error)))
    };
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).map_err(describe)?;
    socket.connect(server).map_err(describe)?;
    let mut found = ask(&socket, name, Type::A, timeout).map_err(describe)?;
    match ask(&socket, name, Type::AAAA, timeout) {
        Ok(more) => found.extend(more),
        // Some servers fail for AAAA only; the IPv4 addresses are good.
        Err(error) if found.is_empty() => return Err(describe(error)),
        Err(_) => {}
    }
    found.truncate(ADDRESSES_MAX);
    Ok(found)
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "no response in time".to_owned(),
        _ => error.to_string(),
    }
}

/// Query for one type, with the identity of its response.
struct Query<'a> {
    name: &'a Name,
    qtype: Type,
    id: u16,
}

/// Asks one server for one type.
fn ask(socket: &UdpSocket, name: &Name, qtype: Type, timeout: Duration) -> io::Result<Vec<IpAddr>> {
    let mut id = [0; 2];
    aws_lc_rs::rand::fill(&mut id).map_err(|_| io::Error::other("no random numbers from the system"))?;
    let query = Query { name, qtype, id: u16::from_ne_bytes(id) };
    let header = Header { id: query.id, flags: Flags::default().with_recursion_desired(true), ..Header::default() };
    let mut packet = MessageBuf::new();
    packet.start(header, Some((name.as_ref(), qtype, Class::IN)));
    let packet = packet.finish(None, std::iter::empty());
    let until = Instant::now() + timeout;
    socket.send(packet)?;
    let mut buffer = [0; RESPONSE_MAX];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut buffer)?;
        // Ignore anything that is not the response to this query, such as a forged one. The real one may still arrive.
        let Some(response) = query.response(&buffer[..length]) else { continue };
        if !response.header().flags.truncated() {
            return found(&response);
        }
        let long = over_tcp(socket.peer_addr()?, packet, left)?;
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "the response over TCP is for another query");
        return found(&query.response(&long).ok_or_else(wrong)?);
    }
}

impl Query<'_> {
    /// Parses a response, if it is one to this query.
    fn response<'b>(&self, packet: &'b [u8]) -> Option<Message<'b>> {
        let message = Message::parse(packet).ok()?;
        let is_ours = message.question().is_some_and(|(name, qtype, _)| name == *self.name && qtype == self.qtype);
        (message.header().id == self.id && message.header().flags.is_response() && is_ours).then_some(message)
    }
}

/// Sends a query over TCP and returns the response.
fn over_tcp(server: SocketAddr, packet: &[u8], timeout: Duration) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.set_write_timeout(Some(timeout))?;
    stream.write_all(&frame(packet).map_err(io::Error::other)?)?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut response = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut response)?;
    Ok(response)
}

/// Returns the addresses in the answer section. A name that does not exist has none.
fn found(message: &Message<'_>) -> io::Result<Vec<IpAddr>> {
    match message.header().flags.rcode() {
        Rcode::NOERROR | Rcode::NXDOMAIN => {}
        other => return Err(io::Error::other(format!("the server answers {other}"))),
    }
    // The records include aliases (CNAME) that the server has followed.
    let answers = message.records().filter(|record| record.section() == Section::Answer);
    Ok(answers.filter_map(|record| address(record.rtype(), record.rdata())).collect())
}

fn address(rtype: Type, rdata: &[u8]) -> Option<IpAddr> {
    match rtype {
        Type::A => Some(Ipv4Addr::from(<[u8; 4]>::try_from(rdata).ok()?).into()),
        Type::AAAA => Some(Ipv6Addr::from(<[u8; 16]>::try_from(rdata).ok()?).into()),
        _ => None,
    }
}
