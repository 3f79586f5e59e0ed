//! What is sent to etcd in one call: a question, or watches behind which more might come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use net::grpc::framed;
use prost::Message;

/// What is sent in one call.
pub(crate) struct Sent {
    octets: Option<Bytes>,
    /// Whether the call goes on behind it.
    stays_open: bool,
}

impl Sent {
    /// One message, and that is all.
    pub(crate) fn one(message: &impl Message) -> Sent {
        Sent { octets: Some(framed(message)), stays_open: false }
    }

    /// Some messages, behind which more might come, as far as the other side knows.
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
            // Nobody needs to be woken: the call ends by being dropped.
            None if self.stays_open => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}
