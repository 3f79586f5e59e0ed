//! DNS over gRPC, compatible with CoreDNS: service `coredns.dns.DnsService`, method `Query`, one `DnsPacket` each way.
//!
//! hyper implements HTTP/2, and [`transport::grpc`] gRPC.

mod client;
mod server;

use hyper::body::{Body, Bytes};
use prost::Message;
use transport::grpc::{CallError, Messages, frame_prefix};

pub(crate) use client::GrpcClient;
pub(crate) use server::serve;

/// Path of the method.
const PATH: &str = "/coredns.dns.DnsService/Query";
/// Length of the longest `DnsPacket` in bytes: the longest DNS message plus the header of its field.
const PACKET_MAX: usize = u16::MAX as usize + 4;
/// Tag of the field that holds the DNS message: field 1, length-delimited.
const MSG: u8 = (1 << 3) | 2;

/// Request and response message of the service, for decoding.
#[derive(Clone, PartialEq, Eq, Message)]
struct DnsPacket {
    /// DNS message.
    #[prost(bytes = "bytes", tag = "1")]
    msg: Bytes,
}

/// Encodes a DNS message as a framed `DnsPacket`, with one copy.
fn packet(message: &[u8]) -> Vec<u8> {
    let length = 1 + prost::length_delimiter_len(message.len()) + message.len();
    let mut bytes = frame_prefix(length);
    bytes.push(MSG);
    // Encoding cannot fail: the vector has enough capacity.
    let _ = prost::encode_length_delimiter(message.len(), &mut bytes);
    bytes.extend_from_slice(message);
    bytes
}

/// Decodes the DNS message of a request or response body.
async fn message<B>(body: B) -> Result<Bytes, CallError>
where
    B: Body<Data = Bytes, Error: std::error::Error + 'static> + Unpin,
{
    let packet: DnsPacket = Messages::new(body, PACKET_MAX).single().await?;
    Ok(packet.msg)
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use transport::grpc::encode_frame;

    use super::*;

    async fn read(bytes: Bytes) -> Result<Bytes, CallError> {
        message(Full::new(bytes)).await
    }

    #[tokio::test]
    async fn messages_survive_a_round_trip() {
        for message in [&b""[..], b"x", &[7; 127], &[7; 128], &[7; 65_535]] {
            assert_eq!(read(packet(message).into()).await.as_deref(), Ok(message));
            let usual = DnsPacket { msg: Bytes::copy_from_slice(message) };
            assert_eq!(read(encode_frame(&usual)).await.as_deref(), Ok(message));
        }
        assert_eq!(packet(b"x"), encode_frame(&DnsPacket { msg: Bytes::from_static(b"x") }));
    }
}
