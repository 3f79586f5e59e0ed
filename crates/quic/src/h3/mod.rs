//! HTTP/3 (RFC 9114) as far as DNS over HTTPS needs it, on both sides: requests with a body, responses, and the
//! critical streams.
//!
//! Not implemented, because nobody needs it for DNS: server push, the dynamic table of QPACK, CONNECT, extended
//! methods, priorities and datagrams. The announced settings say so.

mod decimal;
mod frame;
mod huffman;
pub(crate) mod qpack;
mod reply;
mod request;
mod response;
mod session;
mod static_table;

pub use reply::{ReplyFailure, Response};
pub use request::{Failure, Outcome, Request};
pub use session::CriticalStreams;

pub(crate) use reply::request;
pub(crate) use response::{answer, refusal};
pub(crate) use session::{Peer, Session, UniStream, control_stream, goaway};

use decimal::Decimal;

/// ALPN identifier (RFC 9114 §3.1).
pub(crate) const ALPN: &[u8] = b"h3";

/// Longest header section in bytes, counted as in RFC 9114 §4.2.2.
pub(crate) const HEADERS_MAX: usize = 16 << 10;

/// Error codes of HTTP/3 (RFC 9114 §8.1) and QPACK (RFC 9204 §6).
pub mod code {
    /// No error.
    pub const NO_ERROR: u32 = 0x100;
    /// Stream that must not exist, or exists twice.
    pub const STREAM_CREATION_ERROR: u32 = 0x103;
    /// A critical stream was closed.
    pub const CLOSED_CRITICAL_STREAM: u32 = 0x104;
    /// Frame that is not allowed here.
    pub const FRAME_UNEXPECTED: u32 = 0x105;
    /// Frame with an invalid layout or size.
    pub const FRAME_ERROR: u32 = 0x106;
    /// The peer uses too many resources.
    pub const EXCESSIVE_LOAD: u32 = 0x107;
    /// Push ID that was never allowed.
    pub(crate) const ID_ERROR: u32 = 0x108;
    /// Invalid setting.
    pub(crate) const SETTINGS_ERROR: u32 = 0x109;
    /// The control stream does not begin with the settings.
    pub const MISSING_SETTINGS: u32 = 0x10a;
    /// Request that was not processed, and may be sent again.
    pub const REQUEST_REJECTED: u32 = 0x10b;
    /// Request that is cancelled.
    pub const REQUEST_CANCELLED: u32 = 0x10c;
    /// Stream that ends before the request is complete.
    pub const REQUEST_INCOMPLETE: u32 = 0x10d;
    /// Malformed request.
    pub const MESSAGE_ERROR: u32 = 0x10e;
    /// Header section that cannot be decoded.
    pub const QPACK_DECOMPRESSION_FAILED: u32 = 0x200;
    /// Invalid instruction on the encoder stream.
    pub const QPACK_ENCODER_STREAM_ERROR: u32 = 0x201;
    /// Invalid instruction on the decoder stream.
    pub const QPACK_DECODER_STREAM_ERROR: u32 = 0x202;

    /// Code as the standard writes it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Name(pub u64);

    impl core::fmt::Display for Name {
        fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
            match self.0 {
                0x100 => f.write_str("H3_NO_ERROR"),
                0x101 => f.write_str("H3_GENERAL_PROTOCOL_ERROR"),
                0x102 => f.write_str("H3_INTERNAL_ERROR"),
                0x105 => f.write_str("H3_FRAME_UNEXPECTED"),
                0x107 => f.write_str("H3_EXCESSIVE_LOAD"),
                0x10b => f.write_str("H3_REQUEST_REJECTED"),
                0x10c => f.write_str("H3_REQUEST_CANCELLED"),
                0x10e => f.write_str("H3_MESSAGE_ERROR"),
                other => write!(f, "error code {other:#x}"),
            }
        }
    }
}

/// Error that closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} (code {code:#x})")]
pub struct ConnectionError {
    /// One of the codes of [`code`].
    pub code: u32,
    /// Reason for the log of the peer.
    pub reason: &'static str,
}

const fn error(code: u32, reason: &'static str) -> ConnectionError {
    ConnectionError { code, reason }
}
