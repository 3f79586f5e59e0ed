//! Stream that reports its activity, and reserves memory for a request that arrives in pieces.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Activity, HEADERS_MAX};
use crate::connections::{Connection, Reserved};
use crate::limits::BUFFERED_FREE;

/// Bytes that hyper may buffer for a connection: the headers of a request, and a frame.
const INPUT_MAX: usize = 2 * HEADERS_MAX as usize;

/// Stream of a connection.
pub(crate) struct WatchedStream<S> {
    stream: S,
    activity: Rc<Activity>,
    connection: Arc<Connection>,
    /// Reservation for an incomplete request that is longer than [`BUFFERED_FREE`].
    reserved: Option<Reserved>,
}

impl<S> WatchedStream<S> {
    pub(crate) fn new(stream: S, activity: &Rc<Activity>, connection: &Arc<Connection>) -> WatchedStream<S> {
        let (activity, connection) = (Rc::clone(activity), Arc::clone(connection));
        WatchedStream { stream, activity, connection, reserved: None }
    }

    /// Adjusts the reservation to the bytes that have arrived since the last request. Returns false if the budget has
    /// no room.
    fn reserve(&mut self) -> bool {
        let arriving = self.activity.arriving().min(INPUT_MAX);
        if arriving <= BUFFERED_FREE {
            self.reserved = None;
            return true;
        }
        // All at once: a request of this length is rare, and likely to grow.
        self.reserved = self.reserved.take().or_else(|| self.connection.reserved(INPUT_MAX));
        self.reserved.is_some()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        this.activity.has_read(buffer.filled().len() - before);
        Poll::Ready(if this.reserve() { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) })
    }
}

impl<S: AsyncWrite + Unpin> WatchedStream<S> {
    fn report<T>(&self, outcome: Poll<T>) -> Poll<T> {
        self.activity.has_written(outcome.is_ready());
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report(outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.report(outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.report(outcome)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.report(outcome)
    }
}
