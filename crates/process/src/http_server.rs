//! HTTP/1.1 on one connection, with deadlines and a bound for the request head.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body, Bytes, Incoming};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use net::Connection;
use tokio::time::Instant;
use transport::byte_streams::Duplex;
use transport::request_body::{Discarded, discard};

use crate::deadlines::{Phases, Watched};
use crate::limit_hits;

/// Maximum size of a request head, in bytes.
const REQUEST_MAX: usize = 16 * 1024;

/// Time limit for a body that is not used to arrive.
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Takes the body off a request that does not need one. It is read and discarded, so that the client sees the response.
pub async fn without_body(request: Request<Incoming>) -> Parts {
    let (head, mut body) = request.into_parts();
    discard_rest(&head, &mut body).await;
    head
}

/// Reads and discards the rest of a body, so that the client sees the response. Counts a body that is too long.
pub async fn discard_rest(head: &Parts, body: &mut Incoming) {
    if discard(&head.headers, body, Instant::now() + BODY_TIMEOUT).await == Discarded::Cut {
        limit_hits::count(|limits| limits.bodies);
    }
}

/// Body of a response.
type ResponseBody = Pin<Box<dyn Body<Data = Bytes, Error = Infallible>>>;

/// Serves a connection until it ends or a deadline of [`Phases`] passes. `answer` responds to a request. A response
/// body of unknown length is a stream, which has no deadline while the client reads it.
///
/// # Errors
/// The connection broke, or a deadline has passed.
pub async fn serve<B, A>(
    stream: Box<dyn Duplex>,
    connection: &Connection,
    answer: impl Fn(Request<Incoming>) -> A,
) -> io::Result<()>
where
    B: Body<Data = Bytes, Error = Infallible> + 'static,
    A: Future<Output = Response<B>>,
{
    let answer = |request| -> Pin<Box<dyn Future<Output = Response<ResponseBody>> + '_>> {
        let answering = answer(request);
        Box::pin(async { answering.await.map(|body| Box::pin(body) as ResponseBody) })
    };
    serve_boxed(stream, connection, &answer).await
}

/// Serves a connection like [`serve`]. Not generic, so that the program has hyper's server for pages once.
async fn serve_boxed<'a>(
    stream: Box<dyn Duplex>,
    connection: &Connection,
    answer: &dyn Fn(Request<Incoming>) -> Pin<Box<dyn Future<Output = Response<ResponseBody>> + 'a>>,
) -> io::Result<()> {
    let phases = Phases::new();
    let service = service_fn(|request| {
        connection.touch();
        phases.has_request();
        let answering = answer(request);
        async {
            let response = answering.await;
            if response.body().size_hint().exact().is_some() {
                phases.has_response();
            } else {
                phases.has_stream();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let stream = TokioIo::new(Watched::new(stream, phases.clone()));
    // `phases` has the deadlines, so hyper's own is off.
    let http =
        http1::Builder::new().header_read_timeout(None).max_buf_size(REQUEST_MAX).serve_connection(stream, service);
    tokio::select! {
        ended = http => ended.map_err(io::Error::other),
        () = phases.overdue() => Err(io::ErrorKind::TimedOut.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use hyper::body::Frame;
    use net::{ConnectionTable, TableLimits};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// Size of the buffer between client and server in bytes.
    const BUFFER: usize = 4096;

    /// Body that always has more.
    struct Endless;

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1000])))))
        }
    }

    /// Serves an endless stream to a client that reads `reads` times, once in 50 seconds, and then no more. Returns how
    /// long the connection lasted.
    async fn serve_endless_stream(reads: u32) -> Duration {
        let (mut client, server) = duplex(BUFFER);
        let table = ConnectionTable::new(TableLimits { open_max: 1, per_address_max: 1, buffered_max: 0 });
        let (connection, _) = table.admit(IpAddr::V4(Ipv4Addr::LOCALHOST));
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let start = Instant::now();
        let serving = serve(Box::new(server), &connection, async |_| Response::new(Endless));
        let reading = async {
            for _ in 0..reads {
                tokio::time::sleep(Duration::from_secs(50)).await;
                client.read_exact(&mut [0; BUFFER]).await.unwrap();
            }
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! {
            ended = serving => ended,
            () = reading => unreachable!("the client stays"),
        };
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::TimedOut);
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn ends_a_stream_that_its_client_has_not_read_for_a_minute() {
        assert_eq!(serve_endless_stream(0).await.as_secs(), 60);
        // Each read starts the minute again.
        assert_eq!(serve_endless_stream(10).await.as_secs(), 560);
    }
}
