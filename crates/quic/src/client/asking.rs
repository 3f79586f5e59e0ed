//! The two protocols on the streams of a connection to an upstream.

use bytes::Bytes;
use doh::ResponseError;

use super::reason::Code;
use crate::doq::{self, ProtocolError};
use crate::h3::{self, ConnectionError, ReplyFailure, Response};
use crate::protocol::Protocol;

/// Protocol of a connection to an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// DNS over QUIC (RFC 9250).
    Doq,
    /// DNS over HTTPS (RFC 8484) over HTTP/3 (RFC 9114).
    Http3 {
        /// Host and port of the URLs.
        authority: String,
        /// True for GET, false for POST.
        is_get: bool,
    },
}

impl Asking {
    /// Returns the protocol without its settings.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        match self {
            Asking::Doq => Protocol::Doq,
            Asking::Http3 { .. } => Protocol::Http3,
        }
    }

    /// Returns the bytes of a stream with a query.
    pub(super) fn request(&self, message: &[u8]) -> Bytes {
        match self {
            Asking::Doq => doq::frame(message),
            Asking::Http3 { authority, is_get } => h3::request(authority, *is_get, message),
        }
    }

    /// Returns the reader of the response.
    pub(super) fn reader(&self) -> ReplyReader {
        match self {
            Asking::Doq => ReplyReader::Doq(Vec::new()),
            Asking::Http3 { .. } => ReplyReader::Http3(Box::default()),
        }
    }
}

/// Reason why an upstream gives no reply to a query.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The upstream has reset the stream.
    #[error("stream reset by the peer with {0}")]
    Reset(Code),
    /// The upstream has not processed the query, which may be sent again (RFC 9114 §4.1.1).
    #[error("the peer has not processed the request")]
    Unprocessed,
    /// The response is malformed.
    #[error("malformed HTTP response")]
    Malformed,
    /// The response has no DNS message.
    #[error("{0}")]
    Refused(ResponseError),
}

/// Reason why no response follows on a stream.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReplyError {
    /// Only this query has failed.
    #[error("{0}")]
    Rejected(Rejection),
    /// The response breaks a rule. The connection must be closed.
    #[error("{0}")]
    Connection(ConnectionError),
}

impl From<ProtocolError> for ReplyError {
    fn from(ProtocolError(reason): ProtocolError) -> Self {
        ReplyError::Connection(ConnectionError { code: doq::code::PROTOCOL_ERROR, reason })
    }
}

impl From<ReplyFailure> for ReplyError {
    fn from(failure: ReplyFailure) -> Self {
        match failure {
            ReplyFailure::Connection(error) => ReplyError::Connection(error),
            ReplyFailure::Malformed => ReplyError::Rejected(Rejection::Malformed),
            ReplyFailure::Refused(error) => ReplyError::Rejected(Rejection::Refused(error)),
        }
    }
}

/// Reader of the response to one query.
pub(super) enum ReplyReader {
    /// Bytes that have arrived, with the length prefix.
    Doq(Vec<u8>),
    Http3(Box<Response>),
}

impl ReplyReader {
    /// Takes the next bytes of the stream.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), ReplyError> {
        match self {
            ReplyReader::Doq(reply) if reply.len() + bytes.len() > doq::STREAM_MAX => Err(doq::TRAILING_BYTES.into()),
            ReplyReader::Doq(reply) => {
                reply.extend_from_slice(bytes);
                Ok(())
            }
            ReplyReader::Http3(response) => Ok(response.feed(bytes)?),
        }
    }

    /// Returns the bytes that are kept.
    pub(super) fn kept_len(&self) -> usize {
        match self {
            ReplyReader::Doq(reply) => reply.len(),
            ReplyReader::Http3(response) => response.kept_len(),
        }
    }

    /// Returns the reply if it is complete before the end of the stream. Over HTTP/3, trailers may follow.
    pub(super) fn early(&self) -> Result<Option<Vec<u8>>, ReplyError> {
        let ReplyReader::Doq(stream) = self else { return Ok(None) };
        let Some(message) = doq::message(stream)? else { return Ok(None) };
        doq::check_reply(message)?;
        Ok(Some(message.to_vec()))
    }

    /// Returns the reply, because the stream has ended.
    pub(super) fn end(&mut self) -> Result<Vec<u8>, ReplyError> {
        match self {
            ReplyReader::Doq(_) => self.early()?.ok_or(doq::INCOMPLETE.into()),
            ReplyReader::Http3(response) => Ok(std::mem::take(&mut **response).end()?),
        }
    }
}
