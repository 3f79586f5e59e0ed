//! Host name lookup while a configuration is built, with the system resolver or with the resolvers that the
//! configuration names.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use plugins::HostLookup;
use wire::{Class, Flags, Header, Message, MessageBuf, Name, Type};

/// Limit for one resolver.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Blocking lookup: a configuration cannot be built without the addresses of its upstreams.
pub(crate) struct Lookup;

impl HostLookup for Lookup {
    fn lookup(&self, host: &str, resolvers: &[SocketAddr]) -> io::Result<Vec<IpAddr>> {
        if resolvers.is_empty() {
            return Ok((host, 0).to_socket_addrs()?.map(|address| address.ip()).collect());
        }
        let name = Name::from_text(host).map_err(|error| io::Error::other(error.to_string()))?;
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for resolver in resolvers {
            outcome = addresses_from(*resolver, &name);
            if outcome.as_ref().is_ok_and(|addresses| !addresses.is_empty()) {
                break;
            }
        }
        outcome
    }
}

fn addresses_from(resolver: SocketAddr, name: &Name) -> io::Result<Vec<IpAddr>> {
    let any = if resolver.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(resolver)?;
    let until = Instant::now() + TIMEOUT;
    let mut addresses = Vec::new();
    for qtype in [Type::A, Type::AAAA] {
        addresses.extend(ask(&socket, name, qtype, until)?);
    }
    Ok(addresses)
}

fn ask(socket: &UdpSocket, name: &Name, qtype: Type, until: Instant) -> io::Result<Vec<IpAddr>> {
    let mut id = [0; 2];
    aws_lc_rs::rand::fill(&mut id).map_err(|_| io::Error::other("no random numbers from the system"))?;
    let header = Header {
        id: u16::from_ne_bytes(id),
        flags: Flags::default().with_recursion_desired(true),
        ..Header::default()
    };
    let mut query = MessageBuf::new();
    query.start(header, Some((name.as_ref(), qtype, Class::IN)));
    socket.send(query.finish(None, std::iter::empty()))?;
    let mut buffer = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut buffer)?;
        // Ignore anything that is not the response to this query, such as a forged one. The real one may still arrive.
        let Ok(message) = Message::parse(&buffer[..length]) else { continue };
        let ours = message.question().is_some_and(|(asked, asked_type, _)| asked == *name && asked_type == qtype);
        if message.header().id == header.id && message.header().flags.is_response() && ours {
            return Ok(message.records().filter_map(|record| address(record.rtype(), record.rdata())).collect());
        }
    }
}

fn address(rtype: Type, rdata: &[u8]) -> Option<IpAddr> {
    match rtype {
        Type::A => rdata.first_chunk::<4>().map(|bytes| IpAddr::from(*bytes)),
        Type::AAAA => rdata.first_chunk::<16>().map(|bytes| IpAddr::from(*bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Starts a resolver that changes the first query with `answer` and sends it back repeatedly until the client is
    /// gone.
    fn resolver(answer: fn(&mut Vec<u8>)) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            let (length, peer) = socket.recv_from(&mut buffer).unwrap();
            let mut message = buffer[..length].to_vec();
            answer(&mut message);
            socket.connect(peer).unwrap();
            while socket.send(&message).is_ok() {
                std::thread::yield_now();
            }
        });
        address
    }

    #[test]
    fn times_out_despite_a_stream_of_wrong_responses() {
        let other_id = |message: &mut Vec<u8>| {
            message[0] ^= 1;
            message[2] |= 0x80;
        };
        for answer in [other_id, |message: &mut Vec<u8>| message.truncate(5)] {
            let error = Lookup.lookup("host.test", &[resolver(answer)]).unwrap_err();
            assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error:?}");
        }
    }
}
