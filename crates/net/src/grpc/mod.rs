//! DNS by gRPC, as CoreDNS has it: service `coredns.dns.DnsService`, method `Query`, the message a packet each way.
//!
//! hyper speaks HTTP/2; what gRPC adds is small, and stands here, for those too who call others than name servers: the five
//! octets before a message, and the codes by which a call ends.

mod client;
mod server;

use hyper::body::Bytes;
use hyper::header::HeaderMap;
use prost::Message;

pub(crate) use client::GrpcClient;
pub(crate) use server::serve;

/// The path of the method.
const PATH: &str = "/coredns.dns.DnsService/Query";
/// The type of what is sent.
pub const CONTENT_TYPE: &str = "application/grpc";
/// Where a call says how it ended, and why.
const STATUS: &str = "grpc-status";
const STATUS_MESSAGE: &str = "grpc-message";
/// Octets before a message: whether it is compressed, and its length.
pub const PREFIX_LEN: usize = 5;
/// Octets of the longest message: a DNS message as long as there are, its own field around it, and the prefix.
const FRAME_MAX: usize = u16::MAX as usize + 4 + PREFIX_LEN;

/// Octets of the text that somebody gives as the reason of a refusal, for the log.
const REASON_MAX: usize = 200;

/// How a call ended (the numbers are gRPC's).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code(u32);

/// How a call ended that did not go well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// gRPC's number for it.
    pub code: u32,
    /// What the other side says about it, as far as that is of use.
    pub reason: String,
}

impl Code {
    const OK: Code = Code(0);
    const UNKNOWN: Code = Code(2);
    const INVALID_ARGUMENT: Code = Code(3);
    const DEADLINE_EXCEEDED: Code = Code(4);
    const RESOURCE_EXHAUSTED: Code = Code(8);
    const UNIMPLEMENTED: Code = Code(12);
    const UNAVAILABLE: Code = Code(14);
}

/// The one message of the service.
#[derive(Clone, PartialEq, Eq, Message)]
struct DnsPacket {
    /// A DNS message.
    #[prost(bytes = "bytes", tag = "1")]
    msg: Bytes,
}

/// A message as it is sent.
#[must_use]
pub fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut octets = Vec::with_capacity(PREFIX_LEN + length);
    octets.push(0);
    octets.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    octets.extend_from_slice(&message.encode_to_vec());
    octets.into()
}

/// Whether a call went well, as far as these fields speak of it: those before what is sent, or behind.
///
/// # Errors
/// If they say that it did not.
pub fn how_it_ended(fields: &HeaderMap) -> Result<(), Ended> {
    let Some(status) = fields.get(STATUS) else { return Ok(()) };
    let code = status.to_str().ok().and_then(|text| text.parse().ok()).map_or(Code::UNKNOWN, Code);
    if code == Code::OK {
        return Ok(());
    }
    let reason = fields.get(STATUS_MESSAGE).map(|reason| String::from_utf8_lossy(reason.as_bytes()).into_owned());
    let reason = reason.unwrap_or_default().chars().take(REASON_MAX).collect();
    Err(Ended { code: code.0, reason })
}

/// A DNS message as it is sent.
fn framed(message: &[u8]) -> Bytes {
    frame(&DnsPacket { msg: Bytes::copy_from_slice(message) })
}

/// The DNS message in what was sent.
fn unframed(mut octets: Bytes) -> Result<Bytes, Code> {
    let prefix = octets.first_chunk::<PREFIX_LEN>().copied().ok_or(Code::INVALID_ARGUMENT)?;
    let message = octets.split_off(PREFIX_LEN);
    let [compressed, length @ ..] = prefix;
    if compressed != 0 {
        return Err(Code::UNIMPLEMENTED);
    }
    if u32::from_be_bytes(length) as usize != message.len() {
        return Err(Code::INVALID_ARGUMENT);
    }
    DnsPacket::decode(message).map(|packet| packet.msg).map_err(|_| Code::INVALID_ARGUMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_as_they_went_in() {
        for message in [&b""[..], b"x", &[7; 65_535]] {
            let octets = framed(message);
            assert!(octets.len() <= FRAME_MAX);
            assert_eq!(unframed(octets).as_deref(), Ok(message));
        }
    }

    #[test]
    fn what_is_no_message() {
        let cases: [(&[u8], Code); 7] = [
            (b"", Code::INVALID_ARGUMENT),
            (b"\0\0\0\0", Code::INVALID_ARGUMENT),
            (b"\x01\0\0\0\0", Code::UNIMPLEMENTED),
            (b"\0\0\0\0\x01", Code::INVALID_ARGUMENT),
            (b"\0\0\0\0\0more", Code::INVALID_ARGUMENT),
            (b"\0\0\0\0\x02\x0a\x05", Code::INVALID_ARGUMENT),
            (b"\0\0\0\0\x02\x08\x05", Code::INVALID_ARGUMENT),
        ];
        for (octets, code) in cases {
            assert_eq!(unframed(Bytes::from_static(octets)), Err(code), "{octets:?}");
        }
    }
}
