//! HTTPS for subscribers: connections, tokens, and responses.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use host::invariant::{Expected as _, holds};
use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use net::{Connection, TableLimits};
use process::deadlines::HEAD_TIMEOUT;
use process::http_listener::{Evictions, Gate};
use process::http_server;
use relay::{Encoding, Headers, Next, PROFILE_HEADER, Refusal, Request};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tokio::time::{Sleep, sleep, sleep_until};
use transport::MonotonicClock;
use transport::grpc::LocalExecutor;
use transport::tls::{HTTP2, StreamProtocol, acceptor};

use super::certificate::Certificate;
use super::hub::{Hub, ListSlot, Peer, Registered, Subscriber, now};
use super::keys::Checker;

/// Maximum number of open connections.
pub(super) const CONNECTIONS_MAX: u64 = 4000;
/// Bound of the table of connections, above [`CONNECTIONS_MAX`]: an open watch is never closed for a new connection.
const TABLE: TableLimits = TableLimits { open_max: 4096, per_address_max: 4096, buffered_max: 0 };
/// Connections to accept before the open ones run.
const ACCEPTED_AT_ONCE: usize = 16;
/// HTTP/2 keepalive: interval between pings, and time to wait for the reply.
const PING: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(20)];
/// Time for a client to show a token that is accepted. Others cannot hold connections.
const ADMISSION: Duration = Duration::from_secs(10);
/// Maximum number of requests in flight on one connection.
const STREAMS_MAX: u32 = 64;
/// Size of a list up to which it is sent as a response of known length, which must be written within 10 s.
const SHORT_MAX: usize = 256 << 10;

/// State that all connections share.
pub(super) struct Server {
    pub(super) hub: Rc<Hub>,
    pub(super) checker: Rc<Checker>,
    pub(super) certificate: Rc<Certificate>,
    pub(super) refused_lists: Cell<u32>,
}

impl Server {
    /// Accepts connections until dropped.
    pub(super) async fn run(self: Rc<Server>, listener: TcpListener, evictions: Rc<Evictions>) {
        let gate = Gate::new(TABLE, evictions);
        let accepted = |stream: TcpStream, from| {
            let Some(open) = self.hub.meter.connect(CONNECTIONS_MAX) else { return };
            let server = Rc::clone(&self);
            gate.admit(from, async move |connection| {
                let _open = open;
                let peer = Rc::<Peer>::default();
                tokio::select! {
                    served = server.serve(stream, connection, &peer) => served,
                    () = peer.close.notified() => Ok(()),
                    () = overdue(&peer) => Err(io::ErrorKind::TimedOut.into()),
                }
            });
        };
        gate.run(&listener, ACCEPTED_AT_ONCE, accepted).await;
    }

    async fn serve(self: Rc<Self>, stream: TcpStream, connection: &Connection, peer: &Rc<Peer>) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let acceptor = acceptor(&*self.certificate.server, StreamProtocol::Https)
            .ok_or_else(|| io::Error::other("unknown TLS implementation"))?;
        let stream = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await;
        let stream = stream.map_err(|_| io::ErrorKind::TimedOut)??;
        if stream.alpn_protocol() != Some(HTTP2) {
            let answer = |request| Rc::clone(&self).answer(request, Rc::clone(peer));
            return http_server::serve(Box::new(stream), connection, answer).await;
        }
        let service = service_fn(|request| {
            connection.touch();
            let answering = Rc::clone(&self).answer(request, Rc::clone(peer));
            async { Ok::<_, Infallible>(answering.await) }
        });
        let [interval, timeout] = PING;
        http2::Builder::new(LocalExecutor)
            .timer(TokioTimer::new())
            .keep_alive_interval(interval)
            .keep_alive_timeout(timeout)
            .max_concurrent_streams(STREAMS_MAX)
            .serve_connection(TokioIo::new(stream), service)
            .await
            .map_err(io::Error::other)
    }

    async fn answer(self: Rc<Self>, request: hyper::Request<Incoming>, peer: Rc<Peer>) -> Response<AnswerBody> {
        let head = http_server::without_body(request).await;
        let text = |name| header(&head.headers, name);
        let headers = Headers {
            accept: text(ACCEPT.as_str()),
            accept_encoding: text(ACCEPT_ENCODING.as_str()),
            profile: text(PROFILE_HEADER),
        };
        // An error is in JSON unless the client prefers protobuf.
        let is_protobuf = headers.accept.trim_start().starts_with("application/vnd.kubernetes.protobuf");
        let encoding = if is_protobuf { Encoding::Protobuf } else { Encoding::Json };
        let admitted = self.admit(&head.headers).await;
        peer.is_admitted.set(peer.is_admitted.get() || admitted.is_ok());
        let answered = match admitted {
            Err(refusal) => Err(refusal),
            Ok(()) if head.method != Method::GET => Err(Refusal::Method),
            Ok(()) => match self.document(head.uri.path()) {
                Some(document) => Ok(document),
                None => match Request::parse(head.uri.path(), head.uri.query().unwrap_or_default(), headers) {
                    Err(refusal) => Err(refusal),
                    Ok(request) => self.respond(&request, &peer).await,
                },
            },
        };
        answered.unwrap_or_else(|refusal| {
            self.hub.meter.refused(&refusal);
            refused(&refusal, encoding)
        })
    }

    /// Responds to a request for a document of API discovery or of the issuer of tokens. It is in JSON, which all
    /// clients accept.
    fn document(&self, path: &str) -> Option<Response<AnswerBody>> {
        let discovery = || Some(("application/json", relay::discovery(path, &self.hub.relay.borrow().kinds())?));
        let (content_type, document) = self.checker.document(path).or_else(discovery)?;
        let mut response = Response::new(AnswerBody::Short(Full::new(document.into())));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        Some(response)
    }

    /// Checks the token of a request.
    async fn admit(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if !self.checker.is_ready() {
            return Err(Refusal::NotReady);
        }
        let token = header(headers, AUTHORIZATION.as_str()).strip_prefix("Bearer ");
        let token = token.ok_or(Refusal::Unauthorized("a request needs a bearer token"))?;
        match self.checker.check(token.trim()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(Refusal::Unauthorized(reason(error))),
        }
    }

    /// Responds to a request. One for a version that the relay does not have yet waits for it.
    async fn respond(&self, request: &Request, peer: &Rc<Peer>) -> Result<Response<AnswerBody>, Refusal> {
        let slot = if request.is_large() { Some(self.list_slot()?) } else { None };
        let deadline = Hub::ahead_deadline();
        loop {
            let refusal = match self.try_respond(request, peer) {
                Ok(body) => return Ok(response(request, body.with(slot))),
                Err(refusal) => refusal,
            };
            if !matches!(refusal, Refusal::Ahead(..)) || tokio::time::Instant::now() >= deadline {
                return Err(refusal);
            }
            self.hub.wait_for_change(deadline).await;
        }
    }

    fn try_respond(&self, request: &Request, peer: &Rc<Peer>) -> Result<AnswerBody, Refusal> {
        let mut relay = self.hub.relay.borrow_mut();
        if !request.is_watch() {
            return Ok(AnswerBody::list(relay.list(request, now())?));
        }
        let cursor = relay.watch(request, now())?;
        drop(relay);
        let ends = MonotonicClock::tokio_instant(cursor.ends());
        let subscriber = self.hub.subscribe(cursor, peer).ok_or_else(|| self.too_many())?;
        let (hub, end) = (Rc::clone(&self.hub), Box::pin(sleep_until(ends)));
        Ok(AnswerBody::Watch(WatchBody { hub, subscriber, end, slot: None, pause: None, registered: None }))
    }

    fn list_slot(&self) -> Result<ListSlot, Refusal> {
        self.hub.list_slot().ok_or_else(|| self.too_many())
    }

    fn too_many(&self) -> Refusal {
        let number = self.refused_lists.get();
        self.refused_lists.set(number.wrapping_add(1));
        Refusal::TooManyLists(number)
    }
}

/// Returns when a client should have shown its token, if it has not.
async fn overdue(peer: &Peer) {
    sleep(ADMISSION).await;
    if peer.is_admitted.get() {
        std::future::pending::<()>().await;
    }
}

fn reason(error: relay::token::TokenError) -> &'static str {
    use relay::token::TokenError;
    match error {
        TokenError::Syntax => "the token is not a signed JSON Web Token",
        TokenError::UnknownKey => "the key of the token is not known",
        TokenError::Signature => "the signature of the token is wrong",
        TokenError::Issuer => "the token is from another issuer",
        TokenError::Audience => "the token is for another audience",
        TokenError::Time => "the token has expired or is not valid yet",
        TokenError::Subject => "the account of the token is not allowed",
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn response(request: &Request, body: AnswerBody) -> Response<AnswerBody> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(request.content_type()));
    if request.is_gzip() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn refused(refusal: &Refusal, encoding: Encoding) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Short(Full::new(refusal.body(encoding).into())));
    let status = StatusCode::from_u16(refusal.code()).ok().expected("a status code of HTTP");
    *response.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    let content_type = match encoding {
        Encoding::Json => "application/json",
        Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    if let Some(seconds) = refusal.retry_after() {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if refusal.code() == 401 {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Body of a response.
pub(super) enum AnswerBody {
    /// Error or short list.
    Short(Full<Bytes>),
    /// Long list: a stream, which may last as long as the client reads it.
    Long {
        rest: Bytes,
        slot: Option<ListSlot>,
    },
    Watch(WatchBody),
}

/// Body of a watch.
pub(super) struct WatchBody {
    hub: Rc<Hub>,
    subscriber: Rc<Subscriber>,
    end: Pin<Box<Sleep>>,
    /// Slot of the initial events.
    slot: Option<ListSlot>,
    /// Pause before the next part of the initial events. Each may take a millisecond to encode, and there may be many:
    /// changes for other subscribers go first.
    pause: Option<Pin<Box<dyn Future<Output = ()>>>>,
    registered: Option<Registered>,
}

/// Maximum number of bytes of a long list that are handed over at once, without a copy.
const CHUNK: usize = 64 << 10;

impl AnswerBody {
    fn list(body: Bytes) -> AnswerBody {
        if body.len() <= SHORT_MAX {
            AnswerBody::Short(Full::new(body))
        } else {
            AnswerBody::Long { rest: body, slot: None }
        }
    }

    fn with(mut self, given: Option<ListSlot>) -> AnswerBody {
        match &mut self {
            AnswerBody::Short(_) => {}
            AnswerBody::Long { slot, .. } | AnswerBody::Watch(WatchBody { slot, .. }) => *slot = given,
        }
        self
    }
}

impl WatchBody {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(context));
            self.pause = None;
        }
        let mut cursor = self.subscriber.cursor.borrow_mut();
        let next = self.hub.relay.borrow_mut().next(&mut cursor, now());
        if cursor.has_initial() {
            self.slot = None;
        } else {
            self.pause = Some(Box::pin(yield_now()));
        }
        holds(next != Next::Wait || cursor.has_initial(), "a subscriber waits after its initial events");
        match next {
            Next::Data(bytes) => Poll::Ready(Some(bytes)),
            Next::End => Poll::Ready(None),
            Next::Wait => {
                self.hub.wake_later(cursor.kind(), &mut self.registered, context.waker());
                drop(cursor);
                if self.end.as_mut().poll(context).is_ready() {
                    // The clocks of both timers differ by less than this.
                    self.end.as_mut().reset(tokio::time::Instant::now() + Duration::from_millis(1));
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            AnswerBody::Short(body) => Pin::new(body).poll_frame(context),
            AnswerBody::Long { rest, slot } => {
                if rest.is_empty() {
                    *slot = None;
                    return Poll::Ready(None);
                }
                Poll::Ready(Some(Ok(Frame::data(rest.split_to(rest.len().min(CHUNK))))))
            }
            AnswerBody::Watch(watch) => watch.poll(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            AnswerBody::Short(body) => body.size_hint(),
            AnswerBody::Long { .. } | AnswerBody::Watch(_) => SizeHint::default(),
        }
    }
}
