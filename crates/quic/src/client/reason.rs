//! Reasons why a connection to an upstream fails, for people.

use core::fmt;

use quinn_proto::crypto::rustls::NoInitialCipherSuite;
use quinn_proto::{ConnectError, ConnectionError, TransportErrorCode};

use crate::protocol::Protocol;
use crate::{doq, h3};

/// Error code of the protocol on the streams, as its standard writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Protocol that gives the code its meaning.
    pub protocol: Protocol,
    /// Number of the code.
    pub code: u64,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.protocol {
            Protocol::Doq => doq::code::Name(self.code).fmt(f),
            Protocol::Http3 => h3::code::Name(self.code).fmt(f),
        }
    }
}

/// Reason why a connection to an upstream has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// The upstream was silent for too long.
    TimedOut,
    /// The upstream has closed the connection with this code.
    ByUpstream(Code),
    /// The upstream does not know the connection, for example after a restart.
    Reset,
    /// The TLS handshake failed.
    Tls(String),
    /// The upstream has broken a rule of DNS over QUIC or HTTP/3.
    Protocol(&'static str),
    /// The upstream has broken a rule of QUIC, or reports that this side has.
    Transport(String),
}

/// Maximum length of the reason that an upstream gives, in characters.
const REASON_MAX: usize = 200;

impl CloseReason {
    pub(super) fn new(protocol: Protocol, error: ConnectionError) -> CloseReason {
        match error {
            ConnectionError::TimedOut => CloseReason::TimedOut,
            ConnectionError::ApplicationClosed(close) => {
                CloseReason::ByUpstream(Code { protocol, code: close.error_code.into_inner() })
            }
            ConnectionError::Reset => CloseReason::Reset,
            // The TLS library has failed here. Its text says why, and the code is only that of the alert.
            ConnectionError::TransportError(error) if !error.reason.is_empty() && is_of_tls(error.code) => {
                CloseReason::Tls(error.reason)
            }
            other => CloseReason::Transport(other.to_string().chars().take(REASON_MAX).collect()),
        }
    }
}

/// Returns true for the codes of TLS alerts (RFC 9001 §4.8).
fn is_of_tls(code: TransportErrorCode) -> bool {
    (0x100..0x200).contains(&u64::from(code))
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::TimedOut => f.write_str("i/o timeout"),
            CloseReason::ByUpstream(code) => write!(f, "connection closed by the peer with {code}"),
            CloseReason::Reset => f.write_str("connection reset by the peer"),
            CloseReason::Tls(reason) => match reason.strip_prefix("invalid peer certificate: ") {
                Some(reason) => write!(f, "tls: failed to verify certificate: {reason}"),
                None => write!(f, "tls: {reason}"),
            },
            CloseReason::Protocol(rule) => write!(f, "protocol error of the peer: {rule}"),
            CloseReason::Transport(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for CloseReason {}

/// Error in the configuration of a connection to an upstream.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The TLS configuration lacks the cipher suite that QUIC requires.
    #[error("{0}")]
    CipherSuite(NoInitialCipherSuite),
    /// The address or the server name cannot be used.
    #[error("{0}")]
    Target(ConnectError),
}

/// The upstream allows no further stream at this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer allows no further stream")]
pub struct NoStreamError;
