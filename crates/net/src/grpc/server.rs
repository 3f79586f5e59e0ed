//! gRPC server for DNS queries.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use engine::{Progress, Transaction};
use http_body_util::combinators::WithTrailers;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
use transport::grpc::{CallError, Code, GRPC, LocalExecutor, STATUS, STATUS_MESSAGE};

use super::{PATH, message, packet};
use crate::connected::Client;
use crate::connections::Reserved;
use crate::endpoint::Stage;

/// Idle timeout of a connection if the Corefile sets none. Clients keep one connection for all their calls. With the
/// timeout for TCP they would have to reconnect again and again.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// HTTP/2 keepalive: interval between pings, and time to wait for the reply.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);
/// Time that a client has to read its last answers after a graceful shutdown. Without it, a client that reads nothing
/// would keep the connection open indefinitely.
const PARTING: Duration = Duration::from_secs(30);
/// Maximum length of the headers of one call in bytes. DNS over gRPC needs hardly any.
const HEADERS_MAX: u32 = 16 << 10;
/// Maximum number of answer bytes that one call may have unwritten.
const UNWRITTEN_MAX: usize = 64 << 10;

/// Memory that an open call needs besides its message, in hyper and here, in bytes.
const CALL_COST: usize = 2 << 10;

/// Response with its message and the status trailers.
type Answer = Response<WithTrailers<Full<Bytes>, Ready<Option<Result<HeaderMap, Infallible>>>>>;

/// Serves calls until the connection has been idle too long or the address is closed. Calls in flight are still
/// answered.
pub(crate) async fn serve(client: Client, stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> io::Result<()> {
    let mut closing = client.endpoint.closing();
    let calls = Rc::new(Calls::new(client.listening.timeouts.idle.unwrap_or(IDLE)));
    let mut builder = Builder::new(LocalExecutor);
    let calls_max = client.listening.calls.calls_max;
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams((calls_max > 0).then_some(calls_max))
        .max_header_list_size(HEADERS_MAX)
        .max_send_buf_size(UNWRITTEN_MAX);
    let (client, counted) = (Rc::new(client), Rc::clone(&calls));
    let service = service_fn(move |request| {
        let (client, call) = (Rc::clone(&client), Call::new(&counted));
        async move {
            let answer = client.call(request).await;
            drop(call);
            Ok::<_, Infallible>(answer)
        }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        ended = connection.as_mut() => return ended.map_err(io::Error::other),
        _ = closing.wait_for(|stage| *stage >= Stage::Ending) => {}
        () = calls.stopped() => {}
    }
    connection.as_mut().graceful_shutdown();
    timeout(PARTING, connection).await?.map_err(io::Error::other)
}

impl Client {
    async fn call(&self, request: Request<Incoming>) -> Answer {
        if !is_grpc(&request) {
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::UNKNOWN, "content type is not application/grpc");
        }
        if request.uri().path() != PATH {
            return refused(StatusCode::OK, Code::UNIMPLEMENTED, "the only method is coredns.dns.DnsService/Query");
        }
        let refusal = |code, why| refused(StatusCode::OK, code, why);
        let no_room = || {
            self.shared.count(self.shared.limits.buffers);
            refusal(Code::RESOURCE_EXHAUSTED, "too many queries of this client are in flight")
        };
        let Some(reserved) = self.connection.reserved(CALL_COST) else { return no_room() };
        let body = Metered { body: request.into_body(), reserved };
        match timeout(self.limits.read, message(body)).await {
            Err(_) => refusal(Code::DEADLINE_EXCEEDED, "the query took too long to arrive"),
            Ok(Err(CallError::TooLong)) => refusal(Code::RESOURCE_EXHAUSTED, "the query is too long"),
            Ok(Err(CallError::Compressed)) => refusal(Code::UNIMPLEMENTED, "the query is compressed"),
            Ok(Err(_)) => refusal(Code::INVALID_ARGUMENT, "the request is not a DnsPacket"),
            Ok(Ok(query)) => match self.answer(&query).await {
                Some(answer) => match self.connection.reserved(CALL_COST + answer.len()) {
                    Some(reserved) => answered(Bytes::from_owner(HeldAnswer { answer, _reserved: reserved })),
                    None => no_room(),
                },
                None => refusal(Code::UNAVAILABLE, "the query gets no answer"),
            },
        }
    }

    /// Returns the framed answer to a query, or `None` if the query gets no answer.
    async fn answer(&self, query: &[u8]) -> Option<Bytes> {
        match self.answer_or_wait(query) {
            Ok(answer) => answer,
            Err(waiting) => waiting.await.ok().flatten(),
        }
    }

    /// Returns the answer to a query, or the channel that will deliver it.
    fn answer_or_wait(&self, query: &[u8]) -> Result<Option<Bytes>, oneshot::Receiver<Option<Bytes>>> {
        let finish = |transaction: &mut Transaction, progress| {
            let Transaction { query, response, .. } = transaction;
            (progress == Progress::Answered).then(|| packet(response.finish(query)))
        };
        let (seen, mut transaction, progress) = self.receive(query);
        let answer = if progress == Progress::Waiting {
            let (sender, answer) = oneshot::channel();
            self.shared.park(&seen.generation, transaction, move |transaction, progress| {
                drop(sender.send(finish(transaction, progress)));
            });
            Err(answer)
        } else {
            let answer = finish(&mut transaction, progress);
            self.shared.worker.borrow_mut().give_transaction(transaction);
            Ok(answer)
        };
        self.shared.end_batch(&seen.generation, 0);
        answer
    }
}

/// Request body that reserves its length from the buffer budget until it has been read.
struct Metered {
    body: Incoming,
    reserved: Reserved,
}

impl Body for Metered {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(io::Error::other)?;
            let length = frame.data_ref().map_or(0, Bytes::len);
            if self.reserved.grow(length) { Ok(frame) } else { Err(io::ErrorKind::OutOfMemory.into()) }
        }))
    }
}

/// Answer that is reserved from the buffer budget until the client has read it.
struct HeldAnswer {
    answer: Bytes,
    _reserved: Reserved,
}

impl AsRef<[u8]> for HeldAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

fn is_grpc(request: &Request<Incoming>) -> bool {
    let said = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    said.is_some_and(|said| said.starts_with(GRPC))
}

fn answered(message: Bytes) -> Answer {
    reply(StatusCode::OK, message, Code::OK, "")
}

fn refused(status: StatusCode, code: Code, why: &'static str) -> Answer {
    reply(status, Bytes::new(), code, why)
}

fn reply(status: StatusCode, message: Bytes, code: Code, why: &'static str) -> Answer {
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert(STATUS, HeaderValue::from(code.0));
    if !why.is_empty() {
        trailers.insert(STATUS_MESSAGE, HeaderValue::from_static(why));
    }
    let mut answer = Response::new(Full::new(message).with_trailers(ready(Some(Ok(trailers)))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    answer
}

/// Open calls of a connection.
struct Calls {
    open: Cell<usize>,
    /// Time when the last call started or ended.
    last: Cell<Instant>,
    idle: Duration,
}

impl Calls {
    fn new(idle: Duration) -> Calls {
        Calls { open: Cell::new(0), last: Cell::new(Instant::now()), idle }
    }

    /// Returns after the connection has been idle too long.
    async fn stopped(&self) {
        loop {
            let since = if self.open.get() > 0 { Instant::now() } else { self.last.get() };
            if since.elapsed() >= self.idle {
                return;
            }
            sleep_until(since + self.idle).await;
        }
    }
}

/// Counts an open call. Dropping it ends the count.
struct Call(Rc<Calls>);

impl Call {
    fn new(calls: &Rc<Calls>) -> Call {
        calls.open.set(calls.open.get() + 1);
        Call(Rc::clone(calls))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.last.set(Instant::now());
    }
}
