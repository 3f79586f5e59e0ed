//! DNS by gRPC, as CoreDNS has it: service `coredns.dns.DnsService`, method `Query`, the message a packet each way.
//!
//! hyper speaks HTTP/2; what gRPC adds is small, and stands in `call`, for those too who call others than name servers.

mod call;
mod client;
mod server;

use hyper::body::{Body, Bytes};
use prost::Message;

pub use call::{CallError, Code, Here, Messages, call, framed};
pub(crate) use client::GrpcClient;
pub(crate) use server::serve;

/// The path of the method.
const PATH: &str = "/coredns.dns.DnsService/Query";
/// Octets of the longest message: a DNS message as long as there are, and its own field around it.
const PACKET_MAX: usize = u16::MAX as usize + 4;
/// What is before the DNS message in a packet: the number of its field, and that a length follows.
const MSG: u8 = (1 << 3) | 2;

/// The one message of the service, as it is read.
#[derive(Clone, PartialEq, Eq, Message)]
struct DnsPacket {
    /// A DNS message.
    #[prost(bytes = "bytes", tag = "1")]
    msg: Bytes,
}

/// A DNS message as it is sent; it is copied once.
fn packet(message: &[u8]) -> Bytes {
    let length = 1 + prost::length_delimiter_len(message.len()) + message.len();
    let mut octets = call::prefix(length);
    octets.push(MSG);
    // A vector has room for all.
    let _ = prost::encode_length_delimiter(message.len(), &mut octets);
    octets.extend_from_slice(message);
    octets.into()
}

/// The DNS message in what is sent.
async fn message<B>(body: B) -> Result<Bytes, CallError>
where
    B: Body<Data = Bytes, Error: std::error::Error + 'static> + Unpin,
{
    let packet: DnsPacket = Messages::new(body, PACKET_MAX).only().await?;
    Ok(packet.msg)
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    async fn read(octets: Bytes) -> Result<Bytes, CallError> {
        message(Full::new(octets)).await
    }

    #[tokio::test]
    async fn messages_come_out_as_they_went_in() {
        for message in [&b""[..], b"x", &[7; 127], &[7; 128], &[7; 65_535]] {
            assert_eq!(read(packet(message)).await.as_deref(), Ok(message));
            let usual = DnsPacket { msg: Bytes::copy_from_slice(message) };
            assert_eq!(read(framed(&usual)).await.as_deref(), Ok(message));
        }
        assert_eq!(packet(b"x"), framed(&DnsPacket { msg: Bytes::from_static(b"x") }));
    }

    #[tokio::test]
    async fn what_is_no_message() {
        let cases: [(&[u8], CallError); 9] = [
            (b"", CallError::Malformed),
            (b"\0\0\0\0", CallError::Malformed),
            (b"\x01\0\0\0\0", CallError::Compressed),
            (b"\0\0\0\0\x01", CallError::Malformed),
            (b"\0\0\0\0\0more", CallError::Malformed),
            (b"\0\0\0\0\0\0\0\0\0\0", CallError::Malformed),
            (b"\0\0\0\0\x02\x0a\x05", CallError::Malformed),
            (b"\0\0\0\0\x02\x08\x05", CallError::Malformed),
            (b"\0\0\x01\0\x04", CallError::TooLong),
        ];
        for (octets, error) in cases {
            assert_eq!(read(Bytes::from_static(octets)).await, Err(error), "{octets:?}");
        }
    }
}
