//! Calls by gRPC: one message goes, and one or many come.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2::SendRequest;
use net::grpc::{PREFIX_LEN, frame, how_it_ended};
use prost::Message;
use prost::bytes::{Buf, Bytes, BytesMut};

use crate::failure::{Failure, causes};

/// Octets of the longest message that is read: etcd's own longest value several times. Lists are asked for in shorter
/// pages if one is longer.
const MESSAGE_MAX: usize = 16 << 20;

/// What is sent in one call.
pub(crate) struct Sent {
    octets: Option<Bytes>,
    /// Whether the call goes on behind it.
    stays_open: bool,
}

impl Sent {
    /// One message, and that is all.
    pub(crate) fn one(message: &impl Message) -> Sent {
        Sent { octets: Some(frame(message)), stays_open: false }
    }

    /// Some messages, behind which more might come, as far as the other side knows.
    pub(crate) fn some<M: Message>(messages: impl Iterator<Item = M>) -> Sent {
        let octets: Vec<u8> = messages.flat_map(|message| frame(&message)).collect();
        Sent { octets: Some(octets.into()), stays_open: true }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.octets.take() {
            Some(octets) => Poll::Ready(Some(Ok(Frame::data(octets)))),
            // Nobody needs to be woken: the call ends by being dropped.
            None if self.stays_open => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

/// Begins a call, with these fields more.
pub(crate) async fn call(
    sender: &mut SendRequest<Sent>,
    to: Uri,
    fields: &[(HeaderName, HeaderValue)],
    sent: Sent,
) -> Result<Messages, Failure> {
    let mut request = Request::new(sent);
    *request.method_mut() = Method::POST;
    *request.uri_mut() = to;
    let own =
        [(CONTENT_TYPE, HeaderValue::from_static(net::grpc::CONTENT_TYPE)), (TE, HeaderValue::from_static("trailers"))];
    request.headers_mut().extend(own.into_iter().chain(fields.iter().cloned()));
    sender.ready().await.map_err(|error| broken(&error))?;
    let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
    if response.status() != StatusCode::OK {
        return Err(Failure::Refused(format!("it says HTTP {}", response.status())));
    }
    ended(response.headers())?;
    Ok(Messages { body: response.into_body(), unread: BytesMut::new() })
}

/// What comes in one call.
pub(crate) struct Messages {
    body: Incoming,
    unread: BytesMut,
}

impl Messages {
    /// The next message; `None` if that was the last, and all went well.
    pub(crate) async fn next<M: Message + Default>(&mut self) -> Result<Option<M>, Failure> {
        loop {
            if let Some(message) = self.take()? {
                let message = M::decode(message);
                return message.map(Some).map_err(|error| Failure::Refused(format!("it cannot be read: {error}")));
            }
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            match frame.map_err(|error| broken(&error))?.into_data() {
                Ok(data) => self.unread.extend_from_slice(&data),
                Err(frame) => ended(frame.trailers_ref().unwrap_or(&HeaderMap::new()))?,
            }
        }
    }

    /// Takes a message out of what has come, if it is there as a whole.
    fn take(&mut self) -> Result<Option<Bytes>, Failure> {
        let Some([compressed, length @ ..]) = self.unread.first_chunk::<PREFIX_LEN>() else { return Ok(None) };
        if *compressed != 0 {
            return Err(Failure::Refused("it answers compressed, which nobody asked for".to_owned()));
        }
        let length = u32::from_be_bytes(*length) as usize;
        if length > MESSAGE_MAX {
            return Err(Failure::TooLong);
        }
        if self.unread.len() < PREFIX_LEN + length {
            self.unread.reserve(PREFIX_LEN + length - self.unread.len());
            return Ok(None);
        }
        self.unread.advance(PREFIX_LEN);
        Ok(Some(self.unread.split_to(length).freeze()))
    }
}

fn ended(fields: &HeaderMap) -> Result<(), Failure> {
    how_it_ended(fields).map_err(Failure::from)
}

/// The connection broke.
pub(crate) fn broken(error: &hyper::Error) -> Failure {
    Failure::Connection(causes(error))
}
