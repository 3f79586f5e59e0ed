//! The two protocols on QUIC: DNS over QUIC and DNS over HTTP/3.

use crate::{doq, h3};

/// Protocol on the streams of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// DNS over QUIC (RFC 9250).
    Doq,
    /// DNS over HTTPS (RFC 8484) over HTTP/3 (RFC 9114).
    Http3,
}

/// Error codes of a protocol for the same situations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Codes {
    /// Connections close after their last answer.
    pub(crate) no_error: u32,
    /// The client uses more memory or streams than it may.
    pub(crate) excessive_load: u32,
    /// The listener has as many connections as it may have.
    pub(crate) turned_away: u32,
    /// The query on a stream is given up.
    pub(crate) cancelled: u32,
    /// Status of an answer in metrics.
    pub(crate) success: u32,
}

impl Protocol {
    /// ALPN identifier.
    #[must_use]
    pub const fn alpn(self) -> &'static [u8] {
        match self {
            Protocol::Doq => doq::ALPN,
            Protocol::Http3 => h3::ALPN,
        }
    }

    /// Unidirectional streams that the peer may open: none in DNS over QUIC; in HTTP/3 the control stream and the two
    /// of QPACK.
    pub(crate) const fn uni_streams_max(self) -> u32 {
        match self {
            Protocol::Doq => 0,
            Protocol::Http3 => 3,
        }
    }

    pub(crate) const fn codes(self) -> Codes {
        match self {
            Protocol::Doq => Codes {
                no_error: doq::code::NO_ERROR,
                excessive_load: doq::code::EXCESSIVE_LOAD,
                // As in CoreDNS.
                turned_away: doq::code::NO_ERROR,
                cancelled: doq::code::REQUEST_CANCELLED,
                success: doq::code::NO_ERROR,
            },
            Protocol::Http3 => Codes {
                no_error: h3::code::NO_ERROR,
                excessive_load: h3::code::EXCESSIVE_LOAD,
                turned_away: h3::code::EXCESSIVE_LOAD,
                cancelled: h3::code::REQUEST_CANCELLED,
                success: 200,
            },
        }
    }
}
