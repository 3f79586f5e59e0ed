//! HTTP clients on one connection.
//!
//! Streams are boxed and there is one type of body, so that the program has hyper's client once: each further type of
//! stream or body would add 25 KB for HTTP/1.1 and 50 KB for HTTP/2.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::byte_streams::Duplex;

/// Time for the last bytes of a connection, such as the announcement of its end.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Way of requests into a connection over HTTP/1.1.
pub type Http1Sender = http1::SendRequest<RequestBody>;
/// Way of requests into a connection over HTTP/2.
pub type Http2Sender = http2::SendRequest<RequestBody>;
/// Connection over HTTP/2, as hyper has it.
type Http2Driver = http2::Connection<TokioIo<Box<dyn Duplex>>, RequestBody, Tasks>;

/// Body of a request: bytes, and whether more could follow.
#[derive(Debug, Default)]
pub struct RequestBody {
    bytes: Option<Bytes>,
    stays_open: bool,
}

impl RequestBody {
    /// Creates a body of some bytes.
    #[must_use]
    pub fn whole(bytes: impl Into<Bytes>) -> RequestBody {
        let bytes = bytes.into();
        RequestBody { bytes: (!bytes.is_empty()).then_some(bytes), stays_open: false }
    }

    /// Creates a body of some bytes that does not end after them.
    #[must_use]
    pub fn open(bytes: impl Into<Bytes>) -> RequestBody {
        RequestBody { bytes: Some(bytes.into()), stays_open: true }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.bytes.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            // No waker is needed, because dropping the request ends it.
            None if self.stays_open => Poll::Pending,
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none() && !self.stays_open
    }

    fn size_hint(&self) -> SizeHint {
        match &self.bytes {
            _ if self.stays_open => SizeHint::default(),
            bytes => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
        }
    }
}

/// Connection over HTTP/1.1. As a future, it does the work, and completes when the connection has ended.
pub struct Http1Connection(http1::Connection<TokioIo<Box<dyn Duplex>>, RequestBody>);

impl Future for Http1Connection {
    type Output = hyper::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        Pin::new(&mut self.0).poll(context)
    }
}

/// Prepares a stream for requests over HTTP/1.1.
///
/// # Errors
/// The error of hyper.
pub async fn http1(
    settings: &http1::Builder,
    stream: Box<dyn Duplex>,
) -> hyper::Result<(Http1Sender, Http1Connection)> {
    let (sender, connection) = settings.handshake(TokioIo::new(stream)).await?;
    Ok((sender, Http1Connection(connection)))
}

/// Connection over HTTP/2. As a future, it does the work, and completes when the connection has ended.
pub struct Http2Connection {
    driver: Http2Driver,
    /// Ends the tasks of the connection when it is dropped.
    _guard: watch::Sender<()>,
}

impl Http2Connection {
    /// Returns the number of streams that the server allows at once. It may change whenever the connection has worked.
    #[must_use]
    pub fn streams_max(&self) -> usize {
        self.driver.current_max_send_streams()
    }
}

impl Future for Http2Connection {
    type Output = hyper::Result<()>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        Pin::new(&mut self.driver).poll(context)
    }
}

/// Greets a server over HTTP/2. Must be called within a local set, which gets the tasks of the connection.
///
/// # Errors
/// The error of hyper.
pub async fn http2(
    configure: &dyn Fn(&mut http2::Builder<Tasks>),
    stream: Box<dyn Duplex>,
) -> hyper::Result<(Http2Sender, Http2Connection)> {
    let (guard, closed) = watch::channel(());
    let mut settings = http2::Builder::new(Tasks(closed));
    configure(&mut settings);
    let (sender, driver) = settings.handshake(TokioIo::new(stream)).await?;
    Ok((sender, Http2Connection { driver, _guard: guard }))
}

/// Executor for the tasks of hyper. They end a while after the connection: a peer that does not read must not keep
/// them.
#[derive(Clone)]
pub struct Tasks(watch::Receiver<()>);

impl<F: Future<Output: 'static> + 'static> Executor<F> for Tasks {
    fn execute(&self, future: F) {
        let mut closed = self.0.clone();
        tokio::task::spawn_local(async move {
            let mut future = pin!(future);
            tokio::select! {
                _ = future.as_mut() => return,
                _ = closed.changed() => {}
            }
            let _ = timeout(CLOSE_GRACE, future).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, duplex};
    use tokio::task::LocalSet;

    use super::*;

    #[test]
    fn a_peer_that_does_not_read_keeps_no_task() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            // The buffer takes the preface (RFC 9113 §3.4) and no settings, so a task waits to write.
            let (own, mut peer) = duplex(32);
            let greeted = http2(&|_| {}, Box::new(own)).await;
            assert!(greeted.is_ok());
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(greeted);
            tokio::time::sleep(CLOSE_GRACE + Duration::from_millis(1)).await;
            // The stream has ended, and not by being read.
            let mut received = Vec::new();
            peer.read_to_end(&mut received).await.unwrap();
            assert_eq!(received.len(), 32);
        });
    }
}
