//! Settings of a listener: timeouts, limits, PROXY protocol.

use core::net::IpAddr;
use core::time::Duration;
use std::sync::Arc;

/// Settings of a listener. If several blocks share it, the settings of the first block apply.
#[derive(Clone, Debug, Default)]
pub struct Listening {
    /// Timeouts of streams.
    pub timeouts: Timeouts,
    /// Policy for PROXY protocol headers; `None` disables the protocol.
    pub proxy: Option<ProxyPolicy>,
    /// Limits for gRPC.
    pub calls: CallLimits,
    /// Limits for encrypted connections.
    pub encryption: EncryptionLimits,
    /// Settings of DNS over HTTPS with HTTP/1.1 and HTTP/2.
    pub https: HttpsSettings,
    /// Limits for DNS over QUIC.
    pub quic: QuicLimits,
    /// Limits for DNS over HTTP/3.
    pub https3: QuicLimits,
}

/// Limits for connections that begin with a TLS handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncryptionLimits {
    /// Maximum number of new connections from one source per second; 0 means no limit.
    pub connection_rate: u32,
}

impl Default for EncryptionLimits {
    /// A handshake takes up to half a millisecond of CPU, so one source gets at most half a core. The pods of a node
    /// that share its address need less, even if all of them reconnect at once.
    fn default() -> Self {
        EncryptionLimits { connection_rate: 1000 }
    }
}

/// Limits for connections over QUIC. The defaults are those of CoreDNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicLimits {
    /// Maximum number of connections to a listener; 0 means no limit.
    pub connections_max: usize,
    /// Maximum number of open streams on a connection, and with them of concurrent queries.
    pub streams_max: u32,
}

impl Default for QuicLimits {
    fn default() -> Self {
        QuicLimits { connections_max: 200, streams_max: 256 }
    }
}

/// Settings of DNS over HTTPS with HTTP/1.1 and HTTP/2. The defaults are those of CoreDNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpsSettings {
    /// Maximum number of connections to a listener; 0 means no limit.
    pub connections_max: usize,
    /// Maximum number of open streams on a connection over HTTP/2, and with them of concurrent queries. `None` for
    /// [`HttpsSettings::STREAMS_MAX`]. Applies to a listener if any of its blocks sets it.
    pub streams_max: Option<u32>,
    /// True to use the status codes of RFC 9110 where CoreDNS answers with 400, and to require the content type.
    pub is_strict: bool,
    /// Port of DNS over HTTP/3 that responses announce (RFC 7838); `None` announces nothing.
    pub http3_port: Option<u16>,
}

impl HttpsSettings {
    /// Default of `streams_max`, as in CoreDNS.
    pub const STREAMS_MAX: u32 = 250;
}

impl Default for HttpsSettings {
    fn default() -> Self {
        HttpsSettings { connections_max: 200, streams_max: None, is_strict: false, http3_port: None }
    }
}

/// Limits for gRPC connections; 0 means no limit. The defaults are those of CoreDNS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Maximum number of connections to a listener.
    pub connections_max: usize,
    /// Maximum number of concurrent calls on a connection.
    pub calls_max: u32,
}

impl Default for CallLimits {
    fn default() -> Self {
        CallLimits { connections_max: 200, calls_max: 256 }
    }
}

/// Handling of PROXY protocol headers.
#[derive(Clone)]
pub struct ProxyPolicy {
    /// Handling of the headers of a proxy, by its address.
    pub of: Arc<dyn Fn(IpAddr) -> ProxyHeader + Send + Sync>,
    /// True to keep the TLVs of used headers for the label `proxyproto/tlv`.
    pub keeps_tlvs: bool,
}

impl core::fmt::Debug for ProxyPolicy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("ProxyPolicy")
    }
}

/// Handling of a PROXY protocol header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// Uses the client address in the header.
    Use,
    /// Parses and discards the header.
    Ignore,
    /// Closes the connection, or drops the datagram, if it starts with a header.
    Reject,
    /// Treats the data as DNS without looking for a header.
    Skip,
}

/// Timeouts and limits of streams; `None` keeps the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Time for the rest of a query to arrive after its first byte.
    pub read: Option<Duration>,
    /// Time for a response to be accepted by the client.
    pub write: Option<Duration>,
    /// Time that a connection may be idle.
    pub idle: Option<Duration>,
    /// Maximum number of queries on one connection.
    pub queries_max: Option<u32>,
}
