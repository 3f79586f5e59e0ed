//! Deadlines of an HTTP/1.1 connection: for the request head, for idle time between requests and for writing a
//! response.
//!
//! hyper has a deadline for the head only, which also closes a connection that is kept open for the next scrape.
//! Therefore the stream itself tracks the phase of the connection: [`Watched`] detects the start of a head and the end
//! of a response, [`Phases`] holds the phase, and [`Phases::overdue`] returns when a phase has lasted too long.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// Limit for receiving a request head, in however many parts.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit for idle time between requests. Scrapers usually come once a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Limit for writing a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit for a client of a stream to make room for more: long enough to look at a screen that was stopped.
const STUCK_TIMEOUT: Duration = Duration::from_secs(60);

/// Phase of a connection with its start.
#[derive(Clone, Copy)]
enum Phase {
    Head(Instant),
    /// The page is being generated, which has no deadline.
    Page,
    Write(Instant),
    /// A stream is being written, which may last. It has been stuck since this time, if it is.
    Stream(Option<Instant>),
    Idle(Instant),
}

/// Current phase of a connection, shared between its stream and its service.
#[derive(Clone)]
pub(crate) struct Phases(Rc<Cell<Phase>>);

impl Phases {
    /// Creates the phase of a new connection, which waits for a request head.
    pub fn new() -> Phases {
        Phases(Rc::new(Cell::new(Phase::Head(Instant::now()))))
    }

    /// Records that a request head is complete.
    pub(crate) fn has_request(&self) {
        self.0.set(Phase::Page);
    }

    /// Records that the response is ready to be written.
    pub(crate) fn has_response(&self) {
        self.0.set(Phase::Write(Instant::now()));
    }

    /// Records that a response is ready that lasts. The connection ends with it.
    pub(crate) fn has_stream(&self) {
        self.0.set(Phase::Stream(None));
    }

    /// Records if a stream is stuck, because its client does not read.
    fn is_stuck(&self, is_stuck: bool) {
        if let Phase::Stream(since) = self.0.get() {
            self.0.set(Phase::Stream(is_stuck.then(|| since.unwrap_or_else(Instant::now))));
        }
    }

    /// Returns when a phase has lasted too long.
    pub(crate) async fn overdue(&self) {
        loop {
            let now = Instant::now();
            let deadline = match self.0.get() {
                Phase::Head(since) => since + HEAD_TIMEOUT,
                Phase::Write(since) => since + WRITE_TIMEOUT,
                Phase::Idle(since) => since + IDLE_TIMEOUT,
                Phase::Stream(Some(since)) => since + STUCK_TIMEOUT,
                Phase::Page | Phase::Stream(None) => now + HEAD_TIMEOUT,
            };
            if deadline <= now {
                return;
            }
            // The phase may change while this sleeps, so check again after the shortest limit.
            sleep_until(deadline.min(now + HEAD_TIMEOUT)).await;
        }
    }
}

/// Stream that tracks the phases of its connection.
pub struct Watched<S> {
    stream: S,
    phases: Phases,
}

impl<S> Watched<S> {
    /// Watches a stream.
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
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.phases.is_stuck(polled.is_pending());
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.phases.is_stuck(polled.is_pending());
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        // hyper flushes after it has written the whole response.
        if polled.is_ready() && matches!(self.phases.0.get(), Phase::Write(_)) {
            self.phases.0.set(Phase::Idle(Instant::now()));
        }
        polled
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
