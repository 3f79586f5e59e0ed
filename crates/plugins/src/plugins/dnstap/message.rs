//! Encoding of a dnstap message as a data frame (dnstap.proto, Frame Streams).

use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

use crate::shared::protobuf::{bytes, fixed, number, written};

/// Type of the event. The numbers are those of `Message.Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ClientQuery = 5,
    ClientResponse = 6,
    ForwarderQuery = 7,
    ForwarderResponse = 8,
}

/// Transport protocol. The numbers are those of `SocketProtocol`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Udp = 1,
    Tcp = 2,
    Tls = 3,
    Https = 4,
    Quic = 7,
}

/// Description of one DNS message.
pub(super) struct Message<'a> {
    pub(super) kind: Kind,
    pub(super) protocol: Protocol,
    /// Address of the side that sent the query.
    pub(super) query_address: Option<SocketAddr>,
    /// Address of the side that received the query.
    pub(super) response_address: Option<SocketAddr>,
    /// Time since 1970 at which the query was received or sent.
    pub(super) query_time: Duration,
    /// Time since 1970 at which the response was sent or received.
    pub(super) response_time: Option<Duration>,
    /// The DNS message itself, if it is to be included.
    pub(super) bytes: Option<&'a [u8]>,
}

/// Identification of this server.
pub(super) struct Sender<'a> {
    pub(super) identity: &'a [u8],
    pub(super) version: &'a [u8],
}

/// `Dnstap.type` for a message.
const TYPE_MESSAGE: u64 = 1;
/// Values of `SocketFamily`.
const INET: u64 = 1;
const INET6: u64 = 2;

/// Appends a data frame: a length and a `Dnstap` of that length.
pub(super) fn write_frame(
    frame: &mut Vec<u8>,
    sender: &Sender<'_>,
    extra: impl FnOnce(&mut Vec<u8>),
    message: &Message<'_>,
) {
    let start = frame.len();
    frame.extend_from_slice(&[0; 4]);
    if !sender.identity.is_empty() {
        bytes(frame, 1, sender.identity);
    }
    if !sender.version.is_empty() {
        bytes(frame, 2, sender.version);
    }
    write_extra(frame, extra);
    written(frame, 14, |out| message.write(out));
    number(frame, 15, TYPE_MESSAGE);
    let length = u32::try_from(frame.len() - start - 4);
    debug_assert!(length.is_ok(), "a DNS message and its description have far less than 4 GiB");
    let length = length.unwrap_or_default();
    frame[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends the `extra` field unless it is empty.
fn write_extra(frame: &mut Vec<u8>, extra: impl FnOnce(&mut Vec<u8>)) {
    let start = frame.len();
    let mut is_empty = true;
    written(frame, 3, |out| {
        let before = out.len();
        extra(out);
        is_empty = out.len() == before;
    });
    if is_empty {
        frame.truncate(start);
    }
}

impl Message<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        number(out, 1, self.kind as u64);
        if let Some(address) = self.query_address.or(self.response_address) {
            number(out, 2, if address.ip().to_canonical().is_ipv4() { INET } else { INET6 });
        }
        number(out, 3, self.protocol as u64);
        let ends = [(self.query_address, 4), (self.response_address, 5)];
        let ends = ends.iter().filter_map(|(address, field)| Some(((*address)?, *field)));
        ends.clone().for_each(|(address, field)| write_ip(out, field, address.ip()));
        ends.for_each(|(address, field)| number(out, field + 2, address.port().into()));
        number(out, 8, self.query_time.as_secs());
        fixed(out, 9, self.query_time.subsec_nanos());
        if let Some(time) = self.response_time {
            number(out, 12, time.as_secs());
            fixed(out, 13, time.subsec_nanos());
        }
        if let Some(message) = self.bytes {
            bytes(out, if self.response_time.is_some() { 14 } else { 10 }, message);
        }
    }
}

fn write_ip(out: &mut Vec<u8>, field: u32, address: IpAddr) {
    match address.to_canonical() {
        IpAddr::V4(v4) => bytes(out, field, &v4.octets()),
        IpAddr::V6(v6) => bytes(out, field, &v6.octets()),
    }
}
