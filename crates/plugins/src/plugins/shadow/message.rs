//! dnstap messages of another server (dnstap.proto): the answers that it gave to clients.

use core::net::{IpAddr, SocketAddr};

use engine::{PeerInfo, Transport};
use wire::{Flags, Header, Message, MessageBuf, Opt, Type};

/// Value of `Message.Type` for an answer to a client.
const CLIENT_RESPONSE: u64 = 6;
/// Value of `SocketProtocol` for UDP.
const UDP: u64 = 1;

/// Answer of another server to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirrored {
    /// Query in wire form. If the stream does not have it, it is made from the response.
    pub query: Vec<u8>,
    /// Response in wire form.
    pub response: Vec<u8>,
    /// Address of the client.
    pub client: SocketAddr,
    /// True if the client asked over UDP.
    pub over_udp: bool,
}

impl Mirrored {
    /// Returns the client as this server would see it.
    pub(super) fn peer(&self, local: SocketAddr) -> PeerInfo {
        let transport = if self.over_udp { Transport::Udp } else { Transport::Tcp };
        PeerInfo { address: self.client, local, transport, ..PeerInfo::default() }
    }
}

/// Reads a dnstap message. `None` for malformed messages, and for others than answers to clients with their bytes.
#[must_use]
pub fn read_client_response(frame: &[u8]) -> Option<Mirrored> {
    let message = Fields(frame).bytes(14)?;
    let fields = Fields(message);
    if fields.number(1)? != CLIENT_RESPONSE {
        return None;
    }
    let response = fields.bytes(14)?;
    let query = match fields.bytes(10) {
        Some(query) => query.to_vec(),
        None => query_of(response)?,
    };
    let port = fields.number(6).and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
    let client = SocketAddr::new(address(fields.bytes(4)?)?, port);
    Some(Mirrored { query, response: response.to_vec(), client, over_udp: fields.number(3) == Some(UDP) })
}

/// Returns the query that a response belongs to, as far as the response shows it: question, RD, CD, and EDNS.
fn query_of(response: &[u8]) -> Option<Vec<u8>> {
    let message = Message::parse(response).ok()?;
    let (name, qtype, qclass) = message.question()?;
    let flags = message.header().flags;
    let flags = Flags::default()
        .with_opcode(flags.opcode())
        .with_recursion_desired(flags.recursion_desired())
        .with_checking_disabled(flags.checking_disabled());
    let opt = message.records().find(|record| record.rtype() == Type::OPT);
    let opt = opt.map(|record| Opt { extended_rcode: 0, ..Opt::from_fields(record.class().0, record.raw_ttl()) });
    let mut query = MessageBuf::new();
    query.start(Header { flags, ..Header::default() }, Some((name.as_ref(), qtype, qclass)));
    Some(query.finish(opt, core::iter::empty()).to_vec())
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// Fields of a Protocol Buffers message. Each search reads from the start: a message has some ten fields.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

/// Value of a field.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Fields<'a> {
    fn number(self, field: u64) -> Option<u64> {
        match self.find(field)? {
            Value::Number(number) => Some(number),
            Value::Bytes(_) => None,
        }
    }

    fn bytes(self, field: u64) -> Option<&'a [u8]> {
        match self.find(field)? {
            Value::Bytes(bytes) => Some(bytes),
            Value::Number(_) => None,
        }
    }

    /// Returns the first field with this number, unless one before it is malformed.
    fn find(self, wanted: u64) -> Option<Value<'a>> {
        let mut rest = self.0;
        while !rest.is_empty() {
            let key = varint(&mut rest)?;
            let value = match key & 7 {
                0 => Value::Number(varint(&mut rest)?),
                1 => Value::Bytes(rest.split_off(..8)?),
                2 => {
                    let length = usize::try_from(varint(&mut rest)?).ok()?;
                    Value::Bytes(rest.split_off(..length)?)
                }
                5 => Value::Number(u32::from_le_bytes(*rest.split_off(..4)?.first_chunk()?).into()),
                _ => return None,
            };
            if key >> 3 == wanted {
                return Some(value);
            }
        }
        None
    }
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use wire::{Class, Name, Owner, Section};

    use super::*;
    use crate::shared::protobuf;

    fn response() -> Vec<u8> {
        let mut message = MessageBuf::new();
        let flags = Flags::default().with_response(true).with_recursion_desired(true).with_authoritative(true);
        let name = Name::from_text("a.test.").unwrap();
        message.start(Header { id: 7, flags, ..Header::default() }, Some((name.as_ref(), Type::A, Class::IN)));
        message.push_a(Section::Answer, Owner::Question, 5, [192, 0, 2, 1].into());
        let opt = Opt { udp_size: 1400, extended_rcode: 0, version: 0, dnssec_ok: true };
        message.finish(Some(opt), core::iter::empty()).to_vec()
    }

    fn frame(kind: u64, query: Option<&[u8]>) -> Vec<u8> {
        let mut frame = Vec::new();
        protobuf::bytes(&mut frame, 1, b"old");
        protobuf::written(&mut frame, 14, |out| {
            protobuf::number(out, 1, kind);
            protobuf::number(out, 3, UDP);
            protobuf::bytes(out, 4, &[10, 244, 0, 9]);
            protobuf::number(out, 6, 40_000);
            query.iter().for_each(|query| protobuf::bytes(out, 10, query));
            protobuf::fixed(out, 13, 5);
            protobuf::bytes(out, 14, &response());
        });
        frame
    }

    #[test]
    fn makes_the_query_from_the_response() {
        let mirrored = read_client_response(&frame(CLIENT_RESPONSE, None)).unwrap();
        assert_eq!((mirrored.client, mirrored.over_udp), ("10.244.0.9:40000".parse().unwrap(), true));
        assert_eq!(mirrored.response, response());
        let query = Message::parse(&mirrored.query).unwrap();
        let (name, qtype, _) = query.question().unwrap();
        assert_eq!((name.to_string().as_str(), qtype), ("a.test.", Type::A));
        assert_eq!(query.header().flags, Flags::default().with_recursion_desired(true));
        let opt = query.records().next().unwrap();
        assert_eq!((opt.rtype(), opt.class().0, opt.raw_ttl()), (Type::OPT, 1400, 0x8000));
    }

    #[test]
    fn takes_the_query_of_the_stream_if_there_is_one() {
        assert_eq!(read_client_response(&frame(CLIENT_RESPONSE, Some(b"query"))).unwrap().query, b"query");
    }

    #[test]
    fn ignores_other_messages_and_malformed_ones() {
        assert_eq!(read_client_response(&frame(5, None)), None);
        let whole = frame(CLIENT_RESPONSE, None);
        for length in 0..whole.len() {
            assert_eq!(read_client_response(&whole[..length]), None, "{length}");
        }
    }
}
