//! gRPC framing on top of HTTP/2: the five-byte message prefix, headers and trailers, and status codes.
//!
//! Compression is not supported. The content of messages is up to the caller.

use std::error::Error;
use std::fmt;

use host::invariant::holds;
use http_body_util::BodyExt;
use hyper::body::{Body, Buf, Bytes, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use hyper::rt::Executor;
use hyper::{Request, StatusCode};
use prost::Message;
use prost::bytes::BytesMut;

use crate::error_text::root_cause;

/// Content type of requests and responses.
pub const GRPC: &str = "application/grpc";
/// Header or trailer with the status code of a call.
pub const STATUS: &str = "grpc-status";
/// Header or trailer with the reason of the status.
pub const STATUS_MESSAGE: &str = "grpc-message";
/// Length of the prefix of a message in bytes: compression flag and message length.
const PREFIX_LEN: usize = 5;
/// Maximum length, in characters, of a peer's error text in the log.
const REASON_MAX: usize = 200;

/// gRPC status code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

#[allow(missing_docs, reason = "the names are gRPC's")]
impl Code {
    pub const OK: Code = Code(0);
    pub const UNKNOWN: Code = Code(2);
    pub const INVALID_ARGUMENT: Code = Code(3);
    pub const DEADLINE_EXCEEDED: Code = Code(4);
    pub const PERMISSION_DENIED: Code = Code(7);
    pub const RESOURCE_EXHAUSTED: Code = Code(8);
    pub const FAILED_PRECONDITION: Code = Code(9);
    pub const OUT_OF_RANGE: Code = Code(11);
    pub const UNIMPLEMENTED: Code = Code(12);
    pub const UNAVAILABLE: Code = Code(14);
    pub const UNAUTHENTICATED: Code = Code(16);
}

/// Reason why a call has no response message. A retry on another connection may help after [`CallError::Connection`];
/// what helps after [`CallError::Status`] depends on the code. The others mean that the peer is not the expected
/// server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The connection failed for this reason.
    Connection(String),
    /// The peer answered with an HTTP error status, so it is probably not a gRPC server.
    Http(StatusCode),
    /// The peer ended the call with this status code and reason.
    Status(Code, String),
    /// A message exceeds the maximum length.
    TooLong,
    /// A message is compressed, although the call did not offer compression.
    Compressed,
    /// A message cannot be decoded, or the number of messages is wrong.
    Malformed,
}

impl fmt::Display for CallError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Connection(why) => out.write_str(why),
            CallError::Http(status) => write!(out, "HTTP status {status}"),
            CallError::Status(Code(code), why) => write!(out, "{why} (code {code})"),
            CallError::TooLong => out.write_str("a message exceeds the maximum length"),
            CallError::Compressed => out.write_str("a message is compressed, which was not negotiated"),
            CallError::Malformed => out.write_str("a message cannot be decoded"),
        }
    }
}

impl Error for CallError {}

impl CallError {
    /// Creates an error from the root cause.
    #[must_use]
    pub fn connection(error: &(dyn Error + 'static)) -> CallError {
        CallError::Connection(root_cause(error))
    }
}

/// Executor for hyper that spawns on the `LocalSet` of the current thread.
#[derive(Clone, Copy, Debug)]
pub struct LocalExecutor;

impl<F: Future<Output: 'static> + 'static> Executor<F> for LocalExecutor {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// Starts a call. The request is a POST with a body from [`encode_frame`]. Response messages may have at most
/// `message_max` bytes.
///
/// # Errors
/// Fails if the connection fails or the peer rejects the call at once.
pub async fn call<B: Body + 'static>(
    sender: &mut SendRequest<B>,
    mut request: Request<B>,
    message_max: usize,
) -> Result<Messages<Incoming>, CallError> {
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
    sender.ready().await.map_err(|error| CallError::connection(&error))?;
    let response = sender.send_request(request).await.map_err(|error| CallError::connection(&error))?;
    if !response.status().is_success() {
        return Err(CallError::Http(response.status()));
    }
    // A response without messages carries its status in the headers (Trailers-Only).
    check_status(response.headers())?;
    Ok(Messages::new(response.into_body(), message_max))
}

/// Checks the status of a call, if these headers or trailers contain it.
fn check_status(fields: &HeaderMap) -> Result<(), CallError> {
    let Some(status) = fields.get(STATUS) else { return Ok(()) };
    let code = status.to_str().ok().and_then(|text| text.parse().ok()).map_or(Code::UNKNOWN, Code);
    if code == Code::OK {
        return Ok(());
    }
    let reason = fields.get(STATUS_MESSAGE).map(|reason| String::from_utf8_lossy(reason.as_bytes()).into_owned());
    Err(CallError::Status(code, reason.unwrap_or_default().chars().take(REASON_MAX).collect()))
}

/// Encodes a message with its prefix.
#[must_use]
pub fn encode_frame(message: &impl Message) -> Bytes {
    let mut bytes = frame_prefix(message.encoded_len());
    // The vector has enough capacity.
    holds(message.encode(&mut bytes).is_ok(), "a message can be encoded");
    holds(bytes.len() == PREFIX_LEN + message.encoded_len(), "a frame is its prefix and its message");
    bytes.into()
}

/// Returns the prefix for a message of this length, with capacity for the message.
#[must_use]
pub fn frame_prefix(length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PREFIX_LEN + length);
    bytes.push(0);
    debug_assert!(u32::try_from(length).is_ok(), "a message of this process has less than 4 GiB");
    bytes.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    bytes
}

/// Decoder for the messages in a body.
#[derive(Debug)]
pub struct Messages<B> {
    body: B,
    unread: BytesMut,
    message_max: usize,
}

impl<B: Body<Data = Bytes, Error: Error + 'static> + Unpin> Messages<B> {
    /// Creates a decoder for messages of at most `message_max` bytes.
    pub fn new(body: B, message_max: usize) -> Messages<B> {
        Messages { body, unread: BytesMut::new(), message_max }
    }

    /// Replaces the body, for example by one that counts its bytes.
    pub fn map_body<C>(self, map: impl FnOnce(B) -> C) -> Messages<C> {
        Messages { body: map(self.body), unread: self.unread, message_max: self.message_max }
    }

    /// Returns the next message, or `None` after the last one if the call succeeded.
    ///
    /// # Errors
    /// Fails if the connection fails, the call has failed, or a message cannot be decoded.
    pub async fn next<M: Message + Default>(&mut self) -> Result<Option<M>, CallError> {
        loop {
            if let Some(message) = self.take()? {
                return M::decode(message).map(Some).map_err(|_| CallError::Malformed);
            }
            let Some(frame) = self.body.frame().await else {
                return if self.unread.is_empty() { Ok(None) } else { Err(CallError::Malformed) };
            };
            match frame.map_err(|error| CallError::connection(&error))?.into_data() {
                Ok(data) => self.unread.extend_from_slice(&data),
                Err(frame) => frame.trailers_ref().map_or(Ok(()), check_status)?,
            }
        }
    }

    /// Returns the single message of a unary call.
    ///
    /// # Errors
    /// Fails like [`Messages::next`], or if the number of messages is not one.
    pub async fn single<M: Message + Default>(mut self) -> Result<M, CallError> {
        let message = self.next().await?.ok_or(CallError::Malformed)?;
        // The status of the call follows the message.
        let more: Option<M> = self.next().await?;
        if more.is_some() { Err(CallError::Malformed) } else { Ok(message) }
    }

    /// Removes the next message from the buffer, if it is complete.
    fn take(&mut self) -> Result<Option<Bytes>, CallError> {
        let Some([compressed, length @ ..]) = self.unread.first_chunk::<PREFIX_LEN>() else { return Ok(None) };
        if *compressed != 0 {
            return Err(CallError::Compressed);
        }
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.message_max {
            return Err(CallError::TooLong);
        }
        if self.unread.len() - PREFIX_LEN < length {
            return Ok(None);
        }
        self.unread.advance(PREFIX_LEN);
        Ok(Some(self.unread.split_to(length).freeze()))
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::Full;

    use super::*;

    const MESSAGE_MAX: usize = 65_539;

    async fn read(bytes: Bytes) -> Result<Bytes, CallError> {
        Messages::new(Full::new(bytes), MESSAGE_MAX).single().await
    }

    #[tokio::test]
    async fn messages_survive_a_round_trip() {
        for message in [&b""[..], b"x", &[7; 128], &[7; 65_535]].map(Bytes::from_static) {
            assert_eq!(read(encode_frame(&message)).await, Ok(message));
        }
    }

    #[tokio::test]
    async fn rejects_malformed_messages() {
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
        for (bytes, error) in cases {
            assert_eq!(read(Bytes::from_static(bytes)).await, Err(error), "{bytes:?}");
        }
    }
}
