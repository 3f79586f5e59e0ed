//! DNS over HTTPS (RFC 8484) with HTTP/1.1 and HTTP/2. [`doh`] decides about requests, hyper implements HTTP.
//!
//! With TLS, ALPN chooses the version. Without, the listener serves HTTP/1.1 only, like CoreDNS.

mod body;
mod limits;

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::rc::Rc;

use doh::{Accepted, Head, Policy, Refusal};
use engine::HttpsSettings;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ALLOW, ALT_SVC, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use tokio::time::timeout_at;
use transport::byte_streams::Duplex;
use transport::request_body::{Discarded, discard};

use crate::connected::Client;
use crate::connections::Reserved;
use crate::http::{
    Activity, AnswerBody, NoAnswer, OpenRequest, REQUEST_COST, WatchedStream, serve_until_closed, serve_until_quiet,
    wait_for_request,
};

/// Header fields of a response, with those that hyper adds: content type, cache control, length, date and `alt-svc`.
const FIELDS: usize = 5;

/// Serves requests until the connection has been idle too long or the address is closed. Open requests are still
/// answered.
pub(crate) async fn serve(client: Client, stream: Box<dyn Duplex>, version: Version) -> io::Result<()> {
    let mut closing = client.endpoint.closing();
    let is_http1 = version != Version::HTTP_2;
    let activity = Activity::new(&client.connection, client.limits, is_http1);
    let mut stream = WatchedStream::new(stream, &activity, &client.connection);
    let server = Rc::new(Server::new(client, &activity));
    let service = || {
        let server = Rc::clone(&server);
        service_fn(move |request| {
            let server = Rc::clone(&server);
            async move { Ok::<_, Infallible>(server.respond(request).await) }
        })
    };
    if !is_http1 {
        let streams_max = server.client.listening.https.streams_max.unwrap_or(HttpsSettings::STREAMS_MAX);
        let connection = Box::pin(limits::http2(streams_max).serve_connection(TokioIo::new(stream), service()));
        return serve_until_closed(connection, closing, &activity).await;
    }
    loop {
        let connection = Box::pin(limits::http1().serve_connection(TokioIo::new(stream), service()));
        let quiet = serve_until_quiet(connection, &mut closing, &activity).await?;
        let Some(quiet) = quiet else { return Ok(()) };
        stream = quiet;
        if !wait_for_request(&mut stream, &server.client, &mut closing, &activity).await? {
            return Ok(());
        }
    }
}

/// Connection with its settings.
struct Server {
    client: Client,
    activity: Rc<Activity>,
    policy: Policy,
    /// Value of `alt-svc`, if the listener announces HTTP/3.
    alt_svc: Option<HeaderValue>,
    /// Latest value of `cache-control`, with its seconds. Most answers of a server have one of a few TTLs.
    max_age: RefCell<(u32, HeaderValue)>,
}

impl Server {
    fn new(client: Client, activity: &Rc<Activity>) -> Server {
        let policy = Policy { strict: client.listening.https.is_strict };
        let announced = |port| HeaderValue::try_from(format!("h3=\":{port}\"")).ok();
        let alt_svc = client.listening.https.http3_port.and_then(announced);
        let max_age = RefCell::new((0, HeaderValue::from_static("max-age=0")));
        Server { client, activity: Rc::clone(activity), policy, alt_svc, max_age }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<AnswerBody> {
        let open = OpenRequest::new(&self.activity);
        let (head, mut body) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        let mut response = match self.answer(&head, &mut body, &open).await {
            Ok(response) => response,
            Err(refusal) => {
                if discard(&head.headers, &mut body, open.whole_by).await == Discarded::Cut {
                    self.client.shared.count(self.client.shared.limits.bodies);
                }
                self.activity.set_rest(!body.is_end_stream());
                refused(&refusal)
            }
        };
        if is_head {
            // hyper removes the body for HTTP/1.1 only.
            *response.body_mut() = AnswerBody::text("");
        }
        if let Some(alt_svc) = &self.alt_svc {
            response.headers_mut().insert(ALT_SVC, alt_svc.clone());
        }
        let status = u32::from(response.status().as_u16());
        self.client.endpoint.responses.count(status, &self.client.shared.worker.borrow().counters);
        response
    }

    async fn answer(
        &self,
        head: &Parts,
        body: &mut Incoming,
        open: &OpenRequest,
    ) -> Result<Response<AnswerBody>, Refusal> {
        let Some(mut reserved) = self.client.connection.reserved(REQUEST_COST) else { return Err(self.no_room()) };
        self.activity.set_rest(!body.is_end_stream());
        let target = head.uri.path_and_query().map_or("", |target| target.as_str());
        let content_type = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let head = Head { method: head.method.as_str().as_bytes(), target: target.as_bytes(), content_type };
        let message = match doh::accept(&head, self.policy)? {
            Accepted::Query(message) => Bytes::from(message),
            Accepted::Body => self.read(body, &mut reserved, open).await?,
        };
        doh::check_message(&message)?;
        let answer = self.client.ask(&message, |answer| (answer.to_vec(), doh::lifetime(answer))).await;
        let ((answer, seconds), for_answer) = answer.map_err(|error| match error {
            NoAnswer::Dropped => Refusal::NO_ANSWER,
            NoAnswer::NoRoom => self.no_room(),
        })?;
        reserved.absorb(for_answer);
        Ok(self.answered(answer, seconds, reserved))
    }

    async fn read(&self, body: &mut Incoming, reserved: &mut Reserved, open: &OpenRequest) -> Result<Bytes, Refusal> {
        let read = timeout_at(open.whole_by, body::read(body, reserved)).await;
        let read = read.map_err(|_| Refusal::TOO_SLOW)?.map_err(|error| match error {
            body::BodyError::TooLong => Refusal::too_long(self.policy),
            body::BodyError::NoRoom => self.no_room(),
            body::BodyError::Incomplete => Refusal::NOT_A_QUERY,
        })?;
        self.activity.set_rest(false);
        Ok(read)
    }

    /// Refuses a request because the budget for buffers has no room.
    fn no_room(&self) -> Refusal {
        self.client.shared.count(self.client.shared.limits.buffers);
        Refusal::NO_ROOM
    }

    fn answered(&self, answer: Vec<u8>, seconds: u32, reserved: Reserved) -> Response<AnswerBody> {
        let body = AnswerBody::new(answer, reserved, &self.activity);
        let mut fields = HeaderMap::with_capacity(FIELDS);
        fields.insert(CONTENT_TYPE, HeaderValue::from_static(doh::MEDIA_TYPE));
        fields.insert(CACHE_CONTROL, self.max_age(seconds));
        response(StatusCode::OK, fields, body)
    }

    fn max_age(&self, seconds: u32) -> HeaderValue {
        let mut latest = self.max_age.borrow_mut();
        if latest.0 != seconds
            && let Ok(value) = HeaderValue::try_from(format!("max-age={seconds}"))
        {
            *latest = (seconds, value);
        }
        latest.1.clone()
    }
}

fn refused(refusal: &Refusal) -> Response<AnswerBody> {
    let mut fields = HeaderMap::with_capacity(FIELDS);
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(doh::TEXT_TYPE));
    if let Some(allowed) = refusal.allow {
        fields.insert(ALLOW, HeaderValue::from_static(allowed));
    }
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response(status, fields, AnswerBody::text(refusal.text))
}

fn response(status: StatusCode, fields: HeaderMap, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = fields;
    response
}
