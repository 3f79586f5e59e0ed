//! Request bodies: a single message, or the creation of watches on a stream that stays open.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use prost::Message;
use transport::grpc::framed;

/// Body of a request.
pub(crate) struct Sent {
    octets: Option<Bytes>,
    /// True if the stream stays open after the messages.
    stays_open: bool,
}

impl Sent {
    /// Creates a body of one message, which ends the stream.
    pub(crate) fn one(message: &impl Message) -> Sent {
        Sent { octets: Some(framed(message)), stays_open: false }
    }

    /// Creates a body of several messages that keeps the stream open.
    pub(crate) fn some<M: Message>(messages: impl Iterator<Item = M>) -> Sent {
        let octets: Vec<u8> = messages.flat_map(|message| framed(&message)).collect();
        Sent { octets: Some(octets.into()), stays_open: true }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.octets.take() {
            Some(octets) => Poll::Ready(Some(Ok(Frame::data(octets)))),
            // No waker is needed, because dropping the call ends it.
            None if self.stays_open => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}
