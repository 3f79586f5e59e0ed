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
    /// Bytes that were read before, and are read again first.
    early: Vec<u8>,
}

impl<S> WatchedStream<S> {
    pub(crate) fn new(stream: S, activity: &Rc<Activity>, connection: &Arc<Connection>) -> WatchedStream<S> {
        let (activity, connection) = (Rc::clone(activity), Arc::clone(connection));
        WatchedStream { stream, activity, connection, reserved: None, early: Vec::new() }
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

impl<S: AsyncRead + Unpin> WatchedStream<S> {
    /// Makes these bytes the next ones to be read.
    pub(super) fn put_back(&mut self, bytes: &[u8]) {
        self.early.extend_from_slice(bytes);
    }

    /// Reads the first bytes of the next request, and keeps them. Returns false at the end of the stream. `space` is a
    /// buffer for the time of the call, so that the wait needs no memory.
    pub(super) fn poll_begin(&mut self, context: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<bool>> {
        if !self.early.is_empty() {
            return Poll::Ready(Ok(true));
        }
        let mut buffer = ReadBuf::new(space);
        ready!(Pin::new(&mut *self).poll_read(context, &mut buffer))?;
        self.put_back(buffer.filled());
        Poll::Ready(Ok(!self.early.is_empty()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.early.is_empty() {
            let length = this.early.len().min(buffer.remaining());
            buffer.put_slice(&this.early[..length]);
            // What is left over is read in one of the next calls.
            this.early = this.early.split_off(length);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        this.activity.has_read(buffer.filled().len() - before);
        Poll::Ready(if this.reserve() { Ok(()) } else { Err(io::ErrorKind::OutOfMemory.into()) })
    }
}

impl<S: AsyncWrite + Unpin> WatchedStream<S> {
    fn report<T>(&self, outcome: Poll<T>, is_flushed: bool) -> Poll<T> {
        self.activity.has_written(outcome.is_ready());
        self.activity.set_flushed(is_flushed && outcome.is_ready());
        outcome
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.report(outcome, false)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.report(outcome, false)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.report(outcome, true)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.activity.set_closing();
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.report(outcome, false)
    }
}
