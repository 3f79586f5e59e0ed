//! Transport and addresses of a query.

use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Transport of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    /// UDP: one datagram in each direction.
    #[default]
    Udp,
    /// TCP: a stream of length-prefixed messages.
    Tcp,
    /// gRPC: one call for each query.
    Grpc,
    /// DNS over QUIC: one stream for each query.
    Quic,
    /// DNS over HTTPS with HTTP/1.1 or HTTP/2: one request for each query.
    Https,
    /// DNS over HTTP/3: one request for each query.
    Https3,
}

impl Transport {
    /// Returns true if a message may have up to 65,535 bytes.
    #[must_use]
    pub const fn is_stream(self) -> bool {
        !matches!(self, Transport::Udp)
    }

    /// Returns true if a response may consist of several messages (zone transfers).
    #[must_use]
    pub const fn takes_many(self) -> bool {
        matches!(self, Transport::Tcp | Transport::Quic)
    }

    /// Name in logs and metrics. CoreDNS counts gRPC and HTTPS as `tcp`, and everything over QUIC as `udp`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Transport::Udp | Transport::Quic | Transport::Https3 => "udp",
            Transport::Tcp | Transport::Grpc | Transport::Https => "tcp",
        }
    }
}

/// Type-length-value fields (TLVs) of a PROXY protocol header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProxyTlvs {
    /// There are no fields, or the listener does not keep them.
    #[default]
    None,
    /// The fields are longer than what is kept.
    TooLong,
    /// The fields as in the header. Shared by all queries of a connection.
    Kept(Arc<[u8]>),
}

/// Addresses and transport of a query.
#[derive(Clone, Debug)]
pub struct PeerInfo {
    /// Address of the client.
    pub address: SocketAddr,
    /// Local address that received the query.
    pub local: SocketAddr,
    /// Transport.
    pub transport: Transport,
    /// TLVs of the PROXY protocol header before the query or at the start of its connection.
    pub tlvs: ProxyTlvs,
}

impl Default for PeerInfo {
    fn default() -> Self {
        let nowhere = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), 0);
        PeerInfo { address: nowhere, local: nowhere, transport: Transport::Udp, tlvs: ProxyTlvs::None }
    }
}
