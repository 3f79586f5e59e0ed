//! Body of a POST.

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes, Incoming};
use transport::request_body::DISCARDED_MAX;

use crate::connections::Reserved;

use host::invariant::holds;

/// Reason why a body contains no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BodyError {
    /// The body is longer than a message can be.
    #[error("the body is longer than a DNS message can be")]
    TooLong,
    /// The budget for buffers has no room.
    #[error("the budget for buffers has no room for the body")]
    NoRoom,
    /// The client has closed the stream or broken the protocol.
    #[error("the client has closed the stream before the end of the body")]
    Incomplete,
}

/// Reads a body of at most [`doh::BODY_MAX`] bytes. Its length is added to the reservation.
pub(super) async fn read(body: &mut Incoming, reserved: &mut Reserved) -> Result<Bytes, BodyError> {
    let (mut message, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| BodyError::Incomplete)?.into_data() else { continue };
        length += data.len();
        if length > DISCARDED_MAX {
            return Err(BodyError::TooLong);
        }
        if length > doh::BODY_MAX {
            message = Vec::new();
            continue;
        }
        if !reserved.grow(data.len()) {
            return Err(BodyError::NoRoom);
        }
        // Nearly every query is in one piece, which needs no copy.
        if message.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        message.extend_from_slice(&data);
        holds(message.len() == length, "a body is all of its data");
    }
    if length > doh::BODY_MAX { Err(BodyError::TooLong) } else { Ok(message.into()) }
}
