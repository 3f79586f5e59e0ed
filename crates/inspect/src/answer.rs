//! Responses of the endpoints, and their form over HTTP.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use control::ErrorBody;
use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::refusal::Refusal;
use super::watch::Lines;
use control::socket::RESPONSE_MAX;
use process::limit_hits;

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const JSON_LINES: &str = "application/x-ndjson";

/// Successful response of an endpoint.
pub(super) struct Answer {
    content_type: &'static str,
    body: AnswerBody,
    /// Content security policy.
    policy: Option<HeaderValue>,
}

/// Body of a response.
pub(super) enum AnswerBody {
    /// Complete.
    Whole(Full<Bytes>),
    /// Lines that come until the stream ends or the client leaves.
    Stream(Lines),
}

impl AnswerBody {
    fn whole(bytes: Vec<u8>) -> AnswerBody {
        AnswerBody::Whole(Full::new(Bytes::from(bytes)))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            AnswerBody::Whole(body) => Pin::new(body).poll_frame(context),
            AnswerBody::Stream(lines) => Pin::new(lines).poll_frame(context),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Whole(body) => body.size_hint(),
            AnswerBody::Stream(_) => SizeHint::default(),
        }
    }
}

impl Answer {
    fn new(content_type: &'static str, body: AnswerBody) -> Answer {
        Answer { content_type, body, policy: None }
    }

    /// Returns a page for browsers with its content security policy.
    pub(super) fn page(html: String, policy: HeaderValue) -> Answer {
        Answer { policy: Some(policy), ..Answer::new(HTML, AnswerBody::whole(html.into_bytes())) }
    }

    /// Returns a response with a value as JSON.
    pub(super) fn json(value: &impl Serialize) -> Result<Answer, Refusal> {
        let body = serde_json::to_vec(value).map_err(|error| Refusal::failed(&error))?;
        Ok(Answer::new(JSON, AnswerBody::whole(body)))
    }

    /// Returns a response with these bytes.
    pub(super) fn bytes(content_type: &'static str, body: impl Into<Vec<u8>>) -> Answer {
        Answer::new(content_type, AnswerBody::whole(body.into()))
    }

    /// Returns a response with lines of JSON, which come until the stream ends or the client leaves.
    pub(super) fn stream(lines: Lines) -> Answer {
        Answer::new(JSON_LINES, AnswerBody::Stream(lines))
    }
}

/// Builds the HTTP response.
pub(super) fn respond(outcome: Result<Answer, Refusal>) -> Response<AnswerBody> {
    let too_long = |answer: &Answer| answer.body.size_hint().exact().is_some_and(|length| length > RESPONSE_MAX as u64);
    let outcome = match outcome {
        Ok(answer) if too_long(&answer) => {
            limit_hits::count(|limits| limits.control_responses);
            Err(Refusal::failed(&format_args!("the response has more than {RESPONSE_MAX} bytes")))
        }
        outcome => outcome,
    };
    let (status, Answer { content_type, body, policy }) = match outcome {
        Ok(answer) => (StatusCode::OK, answer),
        Err(Refusal { status, message }) => {
            let body = serde_json::to_vec(&ErrorBody { error: message }).unwrap_or_default();
            (status, Answer::new(JSON, AnswerBody::whole(body)))
        }
    };
    let is_stream = matches!(body, AnswerBody::Stream(_));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    response.headers_mut().extend(headers);
    if let Some(policy) = policy {
        response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    }
    if is_stream {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
