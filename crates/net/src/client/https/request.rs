//! One request over HTTPS, and its response.

use std::io;
use std::rc::Rc;

use doh::{
    Alternative, BODY_MAX, MEDIA_TYPE, PATH, ResponseError, ResponseHead, alternative, check_response, get_target,
    subtract_age,
};
use engine::HttpMethod;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, AGE, ALT_SVC, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName,
    HeaderValue,
};
use hyper::{Method, Request, Response};
use transport::http_client::RequestBody;
use transport::root_cause;

use super::connection::{Opened, Sender};
use crate::client::replies::{CountedBody, Replies};

/// Response with a DNS message.
pub(super) struct Answered {
    pub(super) message: Vec<u8>,
    /// True if the upstream closes the connection after it.
    pub(super) is_last: bool,
    /// Offer of HTTP/3, if the response says anything about alternatives.
    pub(super) offer: Option<Option<Alternative>>,
}

/// Reason why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    /// The response has no DNS message.
    #[error("{0}")]
    Refused(ResponseError),
    /// The connection or the stream has ended. Another connection may have more luck.
    #[error("{0}")]
    Lost(String),
}

impl From<hyper::Error> for RequestError {
    fn from(error: hyper::Error) -> Self {
        RequestError::Lost(root_cause(&error))
    }
}

impl From<io::Error> for RequestError {
    fn from(error: io::Error) -> Self {
        RequestError::Lost(root_cause(&error))
    }
}

impl From<ResponseError> for RequestError {
    fn from(error: ResponseError) -> Self {
        RequestError::Refused(error)
    }
}

/// Sends a query and reads the response.
pub(super) async fn request(
    opened: Rc<Opened>,
    method: HttpMethod,
    mut query: Vec<u8>,
    replies: Rc<Replies>,
) -> Result<Answered, RequestError> {
    // RFC 8484 §4.1: the same query is then the same request for HTTP caches.
    query.iter_mut().take(2).for_each(|byte| *byte = 0);
    let is_http2 = opened.is_http2();
    let request =
        build(&opened.authority, is_http2, method, query).map_err(|error| RequestError::Lost(error.to_string()))?;
    match &opened.sender {
        Sender::Http2(sender, _) => {
            let mut sender = sender.clone();
            read(sender.send_request(request).await?, false, &replies).await
        }
        Sender::Http1(idle) => {
            let sender = idle.borrow_mut().take();
            let mut sender = sender.ok_or_else(|| RequestError::Lost("connection closed".to_owned()))?;
            sender.ready().await?;
            let response = sender.send_request(request).await?;
            let is_last = is_close(response.headers());
            let answered = read(response, is_last, &replies).await?;
            idle.borrow_mut().replace(sender);
            Ok(answered)
        }
    }
}

/// Builds a request. HTTP/2 has the authority in the URL, HTTP/1.1 in a header field.
fn build(
    authority: &str,
    is_http2: bool,
    method: HttpMethod,
    query: Vec<u8>,
) -> Result<Request<RequestBody>, hyper::http::Error> {
    let target = match method {
        HttpMethod::Post => PATH.to_owned(),
        HttpMethod::Get => get_target(&query),
    };
    let request = Request::builder().header(ACCEPT, HeaderValue::from_static(MEDIA_TYPE));
    let request = match is_http2 {
        true => request.uri(format!("https://{authority}{target}")),
        false => request.uri(target).header(HOST, authority),
    };
    match method {
        HttpMethod::Post => request
            .method(Method::POST)
            .header(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE))
            .body(RequestBody::whole(query)),
        HttpMethod::Get => request.body(RequestBody::default()),
    }
}

fn is_close(fields: &HeaderMap) -> bool {
    fields.get(CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// Reads a response with a DNS message.
async fn read(response: Response<Incoming>, is_last: bool, replies: &Rc<Replies>) -> Result<Answered, RequestError> {
    let (head, body) = response.into_parts();
    let mut body = CountedBody::new(body, replies);
    let field = |name: HeaderName| head.headers.get(name).map(HeaderValue::as_bytes);
    check_response(&ResponseHead {
        status: head.status.as_u16(),
        content_type: field(CONTENT_TYPE),
        content_encoding: field(CONTENT_ENCODING),
        content_length: field(CONTENT_LENGTH),
    })?;
    let mut message = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if message.len() + data.len() > BODY_MAX {
            return Err(ResponseError::TooLong.into());
        }
        message.extend_from_slice(&data);
    }
    if let Some(age) = field(AGE) {
        subtract_age(&mut message, age);
    }
    Ok(Answered { message, is_last, offer: field(ALT_SVC).map(alternative) })
}
