//! Responses of the endpoints, and their form over HTTP.

use std::fmt;

use control::ErrorBody;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use hyper::{Response, StatusCode};
use serde::Serialize;

/// Maximum size of a response in bytes. Only a report of a server with very many metrics comes near it.
pub(super) const RESPONSE_MAX: usize = 16 << 20;

const JSON: &str = "application/json";

/// Successful response of an endpoint.
pub(super) struct Answer {
    content_type: &'static str,
    body: Vec<u8>,
}

impl Answer {
    /// Returns a response with a value as JSON.
    pub(super) fn json(value: &impl Serialize) -> Result<Answer, Refusal> {
        let body = serde_json::to_vec(value).map_err(|error| Refusal::failed(&error))?;
        Ok(Answer { content_type: JSON, body })
    }

    /// Returns a response with these bytes.
    pub(super) fn bytes(content_type: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer { content_type, body: body.into() }
    }
}

/// Refused or failed request.
#[derive(Clone, Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Refusal {
        Refusal { status, message: message.into() }
    }

    /// Returns the refusal of a request with an invalid parameter or body.
    pub(super) fn invalid(message: impl Into<String>) -> Refusal {
        Refusal::new(StatusCode::BAD_REQUEST, message)
    }

    /// Returns the failure of a valid request.
    pub(super) fn failed(error: &dyn fmt::Display) -> Refusal {
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

/// Builds the HTTP response.
pub(super) fn respond(outcome: Result<Answer, Refusal>) -> Response<Full<Bytes>> {
    let too_long = |answer: &Answer| answer.body.len() > RESPONSE_MAX;
    let outcome = match outcome {
        Ok(answer) if too_long(&answer) => {
            Err(Refusal::failed(&format_args!("the response has more than {RESPONSE_MAX} bytes")))
        }
        outcome => outcome,
    };
    let (status, content_type, body) = match outcome {
        Ok(answer) => (StatusCode::OK, answer.content_type, answer.body),
        Err(Refusal { status, message }) => {
            (status, JSON, serde_json::to_vec(&ErrorBody { error: message }).unwrap_or_default())
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    response.headers_mut().extend(headers);
    response
}
