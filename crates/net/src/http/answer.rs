//! Response body that holds its reservation until the client has read it.

use std::borrow::Cow;
use std::convert::Infallible;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use hyper::body::{Body, Buf, Frame, SizeHint};

use super::Activity;
use crate::connections::Reserved;

/// Response body of one piece.
pub(crate) struct AnswerBody(Option<Piece>);

/// Bytes that hyper writes.
pub(crate) struct Piece {
    bytes: Cow<'static, [u8]>,
    /// Number of written bytes.
    at: usize,
    /// Reservation for an answer, and the activity of its connection. A fixed text needs none.
    held: Option<(Reserved, Rc<Activity>)>,
}

impl AnswerBody {
    /// Returns the body of an answer whose bytes are reserved.
    pub(crate) fn new(bytes: Vec<u8>, reserved: Reserved, activity: &Rc<Activity>) -> AnswerBody {
        activity.add_unread();
        AnswerBody(Some(Piece { bytes: bytes.into(), at: 0, held: Some((reserved, Rc::clone(activity))) }))
    }

    /// Returns a body with a fixed text.
    pub(crate) fn text(text: &'static str) -> AnswerBody {
        let piece = Piece { bytes: text.as_bytes().into(), at: 0, held: None };
        AnswerBody((!text.is_empty()).then_some(piece))
    }
}

impl Body for AnswerBody {
    type Data = Piece;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Piece>, Infallible>>> {
        Poll::Ready(self.0.take().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |piece| piece.remaining() as u64))
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn advance(&mut self, count: usize) {
        self.at += count.min(self.remaining());
        if let Some((_, activity)) = &self.held
            && self.at < self.bytes.len()
        {
            activity.has_taken();
        }
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some((_, activity)) = &self.held {
            activity.remove_unread();
        }
    }
}
