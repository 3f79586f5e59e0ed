//! gRPC server for DNS queries.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::BodyExt;
use http_body_util::combinators::WithTrailers;
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http2::Builder;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::timeout_at;
use transport::byte_streams::Duplex;
use transport::grpc::{CallError, Code, GRPC, LocalExecutor, STATUS, STATUS_MESSAGE};
use transport::request_body::{Discarded, discard};

use super::{PATH, message, packet};
use crate::connected::Client;
use crate::connections::Reserved;
use crate::http::{
    Activity, AnswerBody, HEADERS_MAX, NoAnswer, OpenRequest, PING_EVERY, PING_TIMEOUT, REQUEST_COST, UNWRITTEN_MAX,
    WatchedStream, serve_until_closed,
};
use crate::limits::StreamLimits;

/// Idle timeout of a connection if the Corefile sets none. Clients keep one connection for all their calls. With the
/// timeout for TCP they would have to reconnect again and again.
const IDLE: Duration = Duration::from_secs(5 * 60);

/// Response with its message and the status trailers.
type Answer = Response<WithTrailers<AnswerBody, Ready<Option<Result<HeaderMap, Infallible>>>>>;

/// Serves calls until the connection has been idle too long or the address is closed. Calls in flight are still
/// answered.
pub(crate) async fn serve(client: Client, stream: Box<dyn Duplex>) -> io::Result<()> {
    let closing = client.endpoint.closing();
    let limits = StreamLimits { idle: client.listening.timeouts.idle.unwrap_or(IDLE), ..client.limits };
    let activity = Activity::new(&client.connection, limits, false);
    let stream = WatchedStream::new(stream, &activity, &client.connection);
    let mut builder = Builder::new(LocalExecutor);
    let calls_max = client.listening.calls.calls_max;
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams((calls_max > 0).then_some(calls_max))
        .max_header_list_size(HEADERS_MAX)
        .max_send_buf_size(UNWRITTEN_MAX);
    let (client, counted) = (Rc::new(client), Rc::clone(&activity));
    let service = service_fn(move |request| {
        let (client, activity) = (Rc::clone(&client), Rc::clone(&counted));
        async move { Ok::<_, Infallible>(client.call(request, &activity).await) }
    });
    let connection = Box::pin(builder.serve_connection(TokioIo::new(stream), service));
    serve_until_closed(connection, closing, &activity).await
}

impl Client {
    async fn call(&self, request: Request<Incoming>, activity: &Rc<Activity>) -> Answer {
        let open = OpenRequest::new(activity);
        let (head, mut body) = request.into_parts();
        let answer = self.answer(&head, &mut body, activity, &open).await;
        // Before the end of the body, the answer is a refusal.
        if discard(&head.headers, &mut body, open.whole_by).await == Discarded::Cut {
            self.shared.count(self.shared.limits.bodies);
        }
        answer
    }

    async fn answer(&self, head: &Parts, body: &mut Incoming, activity: &Rc<Activity>, open: &OpenRequest) -> Answer {
        if !is_grpc(&head.headers) {
            return refused(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::UNKNOWN, "content type is not application/grpc");
        }
        if head.uri.path() != PATH {
            return refused(StatusCode::OK, Code::UNIMPLEMENTED, "the only method is coredns.dns.DnsService/Query");
        }
        let refusal = |code, why| refused(StatusCode::OK, code, why);
        let no_room = || {
            self.shared.count(self.shared.limits.buffers);
            refusal(Code::RESOURCE_EXHAUSTED, "too many queries of this client are in flight")
        };
        let Some(reserved) = self.connection.reserved(REQUEST_COST) else { return no_room() };
        let body = Metered { body, reserved };
        match timeout_at(open.whole_by, message(body)).await {
            Err(_) => refusal(Code::DEADLINE_EXCEEDED, "the query took too long to arrive"),
            Ok(Err(CallError::TooLong)) => refusal(Code::RESOURCE_EXHAUSTED, "the query is too long"),
            Ok(Err(CallError::Compressed)) => refusal(Code::UNIMPLEMENTED, "the query is compressed"),
            Ok(Err(_)) => refusal(Code::INVALID_ARGUMENT, "the request is not a DnsPacket"),
            Ok(Ok(query)) => match self.ask(&query, packet).await {
                Ok((answer, mut reserved)) => {
                    if !reserved.grow(REQUEST_COST) {
                        return no_room();
                    }
                    reply(StatusCode::OK, AnswerBody::new(answer, reserved, activity), Code::OK, "")
                }
                Err(NoAnswer::NoRoom) => no_room(),
                Err(NoAnswer::Dropped) => refusal(Code::UNAVAILABLE, "the query gets no answer"),
            },
        }
    }
}

/// Request body that reserves its length from the buffer budget until it has been read.
struct Metered<'a> {
    body: &'a mut Incoming,
    reserved: Reserved,
}

impl Body for Metered<'_> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let frame = ready!(Pin::new(&mut *self.body).poll_frame(context));
        Poll::Ready(frame.map(|frame| {
            let frame = frame.map_err(io::Error::other)?;
            let length = frame.data_ref().map_or(0, Bytes::len);
            if self.reserved.grow(length) { Ok(frame) } else { Err(io::ErrorKind::OutOfMemory.into()) }
        }))
    }
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let said = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    said.is_some_and(|said| said.starts_with(GRPC))
}

fn refused(status: StatusCode, code: Code, why: &'static str) -> Answer {
    reply(status, AnswerBody::text(""), code, why)
}

fn reply(status: StatusCode, message: AnswerBody, code: Code, why: &'static str) -> Answer {
    let mut trailers = HeaderMap::with_capacity(2);
    trailers.insert(STATUS, HeaderValue::from(code.0));
    if !why.is_empty() {
        trailers.insert(STATUS_MESSAGE, HeaderValue::from_static(why));
    }
    let mut answer = Response::new(message.with_trailers(ready(Some(Ok(trailers)))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    answer
}
