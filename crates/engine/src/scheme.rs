//! Transports of a server block, as the scheme of its keys writes them: `tls://example.org`.

/// Transport of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// UDP and TCP.
    #[default]
    Dns,
    /// DNS over TLS (RFC 7858).
    Tls,
    /// DNS over HTTPS (RFC 8484).
    Https,
    /// DNS over HTTP/3.
    Https3,
    /// DNS over QUIC (RFC 9250).
    Quic,
    /// CoreDNS's gRPC service.
    Grpc,
}

impl Scheme {
    /// All schemes.
    pub const ALL: [Scheme; 6] = [Scheme::Dns, Scheme::Tls, Scheme::Https, Scheme::Https3, Scheme::Quic, Scheme::Grpc];

    /// Name as written in a key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scheme::Dns => "dns",
            Scheme::Tls => "tls",
            Scheme::Https => "https",
            Scheme::Https3 => "https3",
            Scheme::Quic => "quic",
            Scheme::Grpc => "grpc",
        }
    }

    /// Returns true if the transport runs over QUIC. Such a transport is always encrypted.
    #[must_use]
    pub const fn is_quic(self) -> bool {
        matches!(self, Scheme::Quic | Scheme::Https3)
    }

    /// Default port, where `dns_port` is the one of plain DNS.
    #[must_use]
    pub const fn port(self, dns_port: u16) -> u16 {
        match self {
            Scheme::Dns => dns_port,
            Scheme::Tls | Scheme::Quic => 853,
            Scheme::Https | Scheme::Https3 | Scheme::Grpc => 443,
        }
    }
}
