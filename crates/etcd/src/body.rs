//! Request bodies: a single message, or the creation of watches on a stream that stays open.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use prost::Message;
use transport::grpc::encode_frame;

/// Body of a request.
pub(crate) struct RequestBody {
    bytes: Option<Bytes>,
    /// True if the stream stays open after the messages.
    stays_open: bool,
}

impl RequestBody {
    /// Creates a body of one message, which ends the stream.
    pub(crate) fn one(message: &impl Message) -> RequestBody {
        RequestBody { bytes: Some(encode_frame(message)), stays_open: false }
    }

    /// Creates a body of several messages that keeps the stream open.
    pub(crate) fn some<M: Message>(messages: impl Iterator<Item = M>) -> RequestBody {
        let bytes: Vec<u8> = messages.flat_map(|message| encode_frame(&message)).collect();
        RequestBody { bytes: Some(bytes.into()), stays_open: true }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.bytes.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            // No waker is needed, because dropping the call ends it.
            None if self.stays_open => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}
