//! What gRPC adds to HTTP/2: the five octets before each message, the fields of a call, and the codes by which it ends.
//!
//! Compression is not spoken, and whatever is in a message is for others to know.

use std::error::Error;
use std::fmt;

use http_body_util::BodyExt;
use hyper::body::{Body, Buf, Bytes, Incoming};
use hyper::client::conn::http2::SendRequest;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use hyper::rt::Executor;
use hyper::{Request, StatusCode};
use prost::Message;
use prost::bytes::BytesMut;

/// The type of what is sent.
pub(super) const GRPC: &str = "application/grpc";
/// Where a call says how it ended, and why.
pub(super) const STATUS: &str = "grpc-status";
pub(super) const STATUS_MESSAGE: &str = "grpc-message";
/// Octets before a message: whether it is compressed, and its length.
const PREFIX_LEN: usize = 5;
/// Characters of the text that somebody gives as the reason of a refusal, for the log.
const REASON_MAX: usize = 200;

/// How a call ended (the numbers are gRPC's).
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

/// Why a call brings no message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallError {
    /// The connection broke, for this reason.
    Broken(String),
    /// Who answers speaks HTTP and no gRPC.
    Http(StatusCode),
    /// The other side says that the call did not go well, and why.
    Refused(Code, String),
    /// A message is longer than is read.
    TooLong,
    /// A message is compressed, which nobody asked for.
    Compressed,
    /// What came is no message, or not as many as there are to be.
    Malformed,
}

impl fmt::Display for CallError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Broken(why) => out.write_str(why),
            CallError::Http(status) => write!(out, "HTTP status {status}"),
            CallError::Refused(Code(code), why) => write!(out, "{why} (code {code})"),
            CallError::TooLong => out.write_str("a message is longer than is read"),
            CallError::Compressed => out.write_str("a message is compressed, which nobody asked for"),
            CallError::Malformed => out.write_str("a message cannot be read"),
        }
    }
}

impl CallError {
    /// Of a connection that cannot be used: the last cause, as what is before it says only that something failed.
    #[must_use]
    pub fn broken(error: &(dyn Error + 'static)) -> CallError {
        let mut last = error;
        while let Some(cause) = last.source() {
            last = cause;
        }
        CallError::Broken(last.to_string())
    }
}

/// Runs what hyper wants to run beside a connection on this thread, in its `LocalSet`.
#[derive(Clone, Copy, Debug)]
pub struct Here;

impl<F: Future<Output: 'static> + 'static> Executor<F> for Here {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// Begins a call. The request is a POST of what [`framed`] makes; messages of at most `message_max` octets are read.
///
/// # Errors
/// If the connection broke, or the call is refused at once.
pub async fn call<B: Body + 'static>(
    sender: &mut SendRequest<B>,
    mut request: Request<B>,
    message_max: usize,
) -> Result<Messages<Incoming>, CallError> {
    request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    request.headers_mut().insert(TE, HeaderValue::from_static("trailers"));
    sender.ready().await.map_err(|error| CallError::broken(&error))?;
    let response = sender.send_request(request).await.map_err(|error| CallError::broken(&error))?;
    if !response.status().is_success() {
        return Err(CallError::Http(response.status()));
    }
    // Who has nothing to send says so before the body.
    how_it_ended(response.headers())?;
    Ok(Messages::new(response.into_body(), message_max))
}

/// Whether a call went well, as far as these fields speak of it.
fn how_it_ended(fields: &HeaderMap) -> Result<(), CallError> {
    let Some(status) = fields.get(STATUS) else { return Ok(()) };
    let code = status.to_str().ok().and_then(|text| text.parse().ok()).map_or(Code::UNKNOWN, Code);
    if code == Code::OK {
        return Ok(());
    }
    let reason = fields.get(STATUS_MESSAGE).map(|reason| String::from_utf8_lossy(reason.as_bytes()).into_owned());
    Err(CallError::Refused(code, reason.unwrap_or_default().chars().take(REASON_MAX).collect()))
}

/// A message as it is sent.
#[must_use]
pub fn framed(message: &impl Message) -> Bytes {
    let mut octets = prefix(message.encoded_len());
    // A vector has room for all.
    let _ = message.encode(&mut octets);
    octets.into()
}

/// What is before a message of this length, with room for it behind.
pub(super) fn prefix(length: usize) -> Vec<u8> {
    let mut octets = Vec::with_capacity(PREFIX_LEN + length);
    octets.push(0);
    octets.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    octets
}

/// The messages in what comes.
#[derive(Debug)]
pub struct Messages<B> {
    body: B,
    unread: BytesMut,
    message_max: usize,
}

impl<B: Body<Data = Bytes, Error: Error + 'static> + Unpin> Messages<B> {
    /// Of at most so many octets each.
    pub(super) fn new(body: B, message_max: usize) -> Messages<B> {
        Messages { body, unread: BytesMut::new(), message_max }
    }

    /// The next message; `None` if there are no more, and all went well.
    ///
    /// # Errors
    /// If there is no saying what comes next.
    pub async fn next<M: Message + Default>(&mut self) -> Result<Option<M>, CallError> {
        loop {
            if let Some(message) = self.take()? {
                return M::decode(message).map(Some).map_err(|_| CallError::Malformed);
            }
            let Some(frame) = self.body.frame().await else {
                return if self.unread.is_empty() { Ok(None) } else { Err(CallError::Malformed) };
            };
            match frame.map_err(|error| CallError::broken(&error))?.into_data() {
                Ok(data) => self.unread.extend_from_slice(&data),
                Err(frame) => frame.trailers_ref().map_or(Ok(()), how_it_ended)?,
            }
        }
    }

    /// The one message that there is to be.
    ///
    /// # Errors
    /// If that is not what comes.
    pub async fn only<M: Message + Default>(mut self) -> Result<M, CallError> {
        let message = self.next().await?.ok_or(CallError::Malformed)?;
        // How the call ended stands behind it.
        let more: Option<M> = self.next().await?;
        if more.is_some() { Err(CallError::Malformed) } else { Ok(message) }
    }

    /// Takes a message out of what has come, if it is there as a whole.
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
