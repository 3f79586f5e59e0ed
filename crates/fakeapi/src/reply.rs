//! Responses: an object, a Status with an error, or a streamed body.

use std::io;

use http_body_util::channel::Channel;
use hyper::Response;
use hyper::body::Bytes;
use serde_json::{Value, json};

use crate::format::Format;

/// Streamed body.
pub(crate) type Body = Channel<Bytes, io::Error>;

/// A response.
pub(crate) enum Reply {
    /// An object, or a Status in its place.
    Object { code: u16, retry_after: Option<u32>, object: Value },
    /// A list or a watch.
    Stream(Response<Body>),
}

impl Reply {
    /// Builds the HTTP response in the client's preferred format.
    pub(crate) fn response(self, preferred: Format) -> Response<Body> {
        let (code, retry_after, object) = match self {
            Reply::Object { code, retry_after, object } => (code, retry_after, object),
            Reply::Stream(response) => return response,
        };
        let format = preferred.of_kind(object["kind"].as_str().unwrap_or_default());
        let mut response = Response::builder().status(code).header("content-type", format.content_type(false));
        if let Some(seconds) = retry_after {
            response = response.header("retry-after", seconds);
        }
        let body = format.object(&object);
        let (mut sender, channel) = Channel::new(1);
        tokio::spawn(async move { sender.send_data(body.into()).await });
        response.body(channel).unwrap()
    }
}

/// Builds an error response.
pub(crate) fn status(code: u16, retry_after: Option<u32>, message: &str) -> Reply {
    Reply::Object { code, retry_after, object: status_object(code, message) }
}

/// Builds an error response with a specific reason.
pub(crate) fn refused(code: u16, reason: &str, message: &str) -> Reply {
    let mut status = status_object(code, message);
    status["reason"] = reason.into();
    whole(code, status)
}

/// Builds a response with one object.
pub(crate) const fn whole(code: u16, object: Value) -> Reply {
    Reply::Object { code, retry_after: None, object }
}

/// Builds the Status for a code.
pub(crate) fn status_object(code: u16, message: &str) -> Value {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        504 => "Timeout",
        _ => "InternalError",
    };
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code, "message": message,
    })
}
