//! Looking up the names of hosts while a configuration is built: by the system, or by the resolvers that it names.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use plugins::HostLookup;
use wire::{Class, Flags, Header, Message, MessageBuf, Name, Type};

/// How long one resolver may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Looks hosts up when asked, and waits for it: a configuration without its upstreams is none.
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
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut addresses = Vec::new();
    for qtype in [Type::A, Type::AAAA] {
        addresses.extend(ask(&socket, name, qtype)?);
    }
    Ok(addresses)
}

fn ask(socket: &UdpSocket, name: &Name, qtype: Type) -> io::Result<Vec<IpAddr>> {
    let mut id = [0; 2];
    aws_lc_rs::rand::fill(&mut id).map_err(|_| io::Error::other("the system gives no random numbers"))?;
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
        let length = socket.recv(&mut buffer)?;
        let message = Message::parse(&buffer[..length]).map_err(|error| io::Error::other(error.to_string()))?;
        let ours = message.question().is_some_and(|(asked, asked_type, _)| asked == *name && asked_type == qtype);
        if message.header().id == header.id && message.header().flags.is_response() && ours {
            return Ok(message.records().filter_map(|record| address(record.rtype(), record.rdata())).collect());
        }
    }
}

fn address(rtype: Type, rdata: &[u8]) -> Option<IpAddr> {
    match rtype {
        Type::A => rdata.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        Type::AAAA => rdata.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
        _ => None,
    }
}
