//! Serving of a connection until it is idle or its address is closed.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::server::conn::{http1, http2};
use hyper::service::HttpService;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use transport::grpc::LocalExecutor;

use super::activity::Stop;
use super::{Activity, WatchedStream};
use crate::connected::Client;
use crate::endpoint::{Closing, Stage};

/// Time that a client has to read its last answers after a graceful shutdown. Without it, a client that reads nothing
/// would keep the connection open indefinitely.
const PARTING: Duration = Duration::from_secs(30);

/// HTTP/2 keepalive: interval between pings, and time to wait for the reply.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(30);
pub(crate) const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// Connection of hyper that can end after its open requests.
pub(crate) trait Graceful: Future<Output = hyper::Result<()>> {
    fn end(self: Pin<&mut Self>);
}

impl<I, S, B> Graceful for http2::Connection<I, S, LocalExecutor>
where
    S: HttpService<Incoming, ResBody = B, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
    LocalExecutor: hyper::rt::bounds::Http2ServerConnExec<S::Future, B>,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S, B> Graceful for http1::Connection<I, S>
where
    S: HttpService<Incoming, ResBody = B, Error: Into<Box<dyn std::error::Error + Send + Sync>>>,
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
{
    fn end(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// Serves requests until the connection has been idle too long or the address is closed. Open requests are still
/// answered, unless the client stalls. The connection is boxed, because futures contain their arguments several times.
pub(crate) async fn serve_until_closed(
    mut connection: Pin<Box<impl Graceful>>,
    mut closing: Closing,
    activity: &Activity,
) -> io::Result<()> {
    tokio::select! {
        ended = &mut connection => return ended.map_err(io::Error::other),
        _ = closing.reaches(Stage::Ending) => {}
        stop = activity.stopped() => if stop == Stop::Stalled {
            return Err(io::ErrorKind::TimedOut.into());
        },
    }
    end(connection, activity).await
}

/// Serves requests of HTTP/1.1 like [`serve_until_closed`], but only until the client has been quiet for a while. Then
/// it returns the stream without the buffers of the connection, of 16 KiB.
pub(crate) async fn serve_until_quiet<S, H, B>(
    mut connection: Pin<Box<http1::Connection<TokioIo<WatchedStream<S>>, H>>>,
    closing: &mut Closing,
    activity: &Activity,
) -> io::Result<Option<WatchedStream<S>>>
where
    S: AsyncRead + AsyncWrite + Unpin,
    H: HttpService<Incoming, ResBody = B, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin,
    B: Body<Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin + 'static,
{
    tokio::select! {
        ended = &mut connection => return ended.map(|()| None).map_err(io::Error::other),
        () = activity.quiet() => {
            let parts = Pin::into_inner(connection).into_parts();
            let mut stream = parts.io.into_inner();
            stream.put_back(&parts.read_buf);
            return Ok(Some(stream));
        }
        _ = closing.reaches(Stage::Ending) => {}
        stop = activity.stopped() => if stop == Stop::Stalled {
            return Err(io::ErrorKind::TimedOut.into());
        },
    }
    end(connection, activity).await.map(|()| None)
}

/// Waits for the first bytes of the next request. Closes the stream, and returns false, if there will be none.
pub(crate) async fn wait_for_request<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut WatchedStream<S>,
    client: &Client,
    closing: &mut Closing,
    activity: &Activity,
) -> io::Result<bool> {
    let begins = tokio::select! {
        begins = poll_fn(|context| stream.poll_begin(context, &mut client.shared.read_buffer.borrow_mut())) => begins?,
        _ = closing.reaches(Stage::Ending) => false,
        _ = activity.stopped() => false,
    };
    if !begins {
        timeout(client.limits.write, stream.shutdown()).await??;
    }
    Ok(begins)
}

/// Answers the open requests, and closes the connection.
async fn end(mut connection: Pin<Box<impl Graceful>>, activity: &Activity) -> io::Result<()> {
    connection.as_mut().end();
    tokio::select! {
        ended = timeout(PARTING, connection) => ended?.map_err(io::Error::other),
        error = activity.stalled() => Err(error),
    }
}
