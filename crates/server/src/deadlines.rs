//! Deadlines of an HTTP/1.1 connection: for a request head, for silence between requests, for a client that takes its response.
//!
//! hyper has a deadline for the head only, which also ends a connection that is kept for the next scrape. Here the
//! stream itself notes what the connection waits for: [`Watched`] sees the first bytes of a head and the last ones of a
//! response, [`Phases`] holds the phase, and [`Phases::overdue`] returns when the phase has lasted too long.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// How long a client may take to send the head of a request, however many pieces it comes in.
pub(crate) const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection is kept for another request: scrapers come once a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// How long a client may take to accept a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection waits for, and since when.
#[derive(Clone, Copy)]
enum Phase {
    Head(Instant),
    /// The page is made; that takes the time it needs.
    Page,
    Write(Instant),
    Idle(Instant),
}

/// The phases of a connection.
#[derive(Clone)]
pub(crate) struct Phases(Rc<Cell<Phase>>);

impl Phases {
    /// The connection is open and has sent nothing yet.
    pub(crate) fn new() -> Phases {
        Phases(Rc::new(Cell::new(Phase::Head(Instant::now()))))
    }

    /// The head of a request is complete.
    pub(crate) fn has_request(&self) {
        self.0.set(Phase::Page);
    }

    /// The response is ready to be written.
    pub(crate) fn has_response(&self) {
        self.0.set(Phase::Write(Instant::now()));
    }

    /// Returns when a phase has lasted too long.
    pub(crate) async fn overdue(&self) {
        loop {
            let now = Instant::now();
            let deadline = match self.0.get() {
                Phase::Head(since) => since + HEAD_TIMEOUT,
                Phase::Write(since) => since + WRITE_TIMEOUT,
                Phase::Idle(since) => since + IDLE_TIMEOUT,
                Phase::Page => now + HEAD_TIMEOUT,
            };
            if deadline <= now {
                return;
            }
            // A shorter phase may follow in the meantime.
            sleep_until(deadline.min(now + HEAD_TIMEOUT)).await;
        }
    }
}

/// A stream that notes its phases.
pub(crate) struct Watched<S> {
    stream: S,
    phases: Phases,
}

impl<S> Watched<S> {
    pub(crate) fn new(stream: S, phases: Phases) -> Watched<S> {
        Watched { stream, phases }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before && matches!(self.phases.0.get(), Phase::Idle(_)) {
            self.phases.0.set(Phase::Head(Instant::now()));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        // hyper flushes when all of a response is written.
        if polled.is_ready() && matches!(self.phases.0.get(), Phase::Write(_)) {
            self.phases.0.set(Phase::Idle(Instant::now()));
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
