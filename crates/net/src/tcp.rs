//! DNS over TCP and TLS server (RFC 7766), with pipelined queries and out-of-order answers.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use engine::{Progress, Query, Response, Transaction};
use host::invariant::holds;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use wire::OptionCode;

use crate::connected::Client;
use crate::connections;
use crate::endpoint::Stage;
use crate::limits::{BUFFERED_FREE, PIPELINE_MAX, StreamLimits, UNWRITTEN_MAX};

/// Time to wait for the first query of a connection when the address shuts down: long enough for a query to cross a
/// cluster.
const FIRST_QUERY_GRACE: Duration = Duration::from_millis(200);
/// Buffer capacity in bytes that an idle connection keeps for its next query.
const KEPT: usize = 512;
/// Size of the length prefix in bytes.
const LENGTH_LEN: usize = 2;

/// Reads queries and writes answers until the client has no more queries, exceeds a timeout, or the address shuts down.
/// Answers in flight are still written. `early` holds bytes that were read before.
pub(crate) async fn serve(
    client: Client,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    early: Vec<u8>,
) -> io::Result<()> {
    let connection = Rc::new(Connection::new(client));
    let _end = End(Rc::clone(&connection));
    tokio::select! {
        biased;
        () = connection.overfull.notified() => Err(io::ErrorKind::OutOfMemory.into()),
        ended = Rc::clone(&connection).run(stream, early) => ended,
    }
}

/// Frees the buffers of a connection when it ends. Parked queries may still hold a reference to it.
struct End(Rc<Connection>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.gone.set(true);
        self.0.outgoing.take();
        self.0.unfinished.take();
        self.0.output.hold(0);
        holds(self.0.output.bytes.get() == 0, "a connection that ends returns its memory");
    }
}

/// Connection with its queries and answers.
struct Connection {
    client: Client,
    /// Queries that may still be answered, or `None` for any number.
    queries_left: Cell<Option<u32>>,
    /// True after the first query.
    has_asked: Cell<bool>,
    /// Unwritten answers, each with its length prefix.
    outgoing: RefCell<Vec<u8>>,
    /// Answers of several messages, of which the first one is being sent.
    unfinished: RefCell<VecDeque<Box<Transaction>>>,
    /// Number of pending answers.
    awaited: Cell<usize>,
    /// Notified when a pending answer has arrived.
    arrived: Notify,
    /// Bytes of answers being written, in addition to those in `outgoing`.
    writing: Cell<usize>,
    /// Reservation for answers.
    output: Held,
    /// Notified when the budget has no more room for answers.
    overfull: Notify,
    /// True after the connection has ended.
    gone: Cell<bool>,
    /// True if no more queries are read: the client has finished or timed out, or the address shuts down.
    ending: Cell<bool>,
}

impl Connection {
    fn new(client: Client) -> Connection {
        Connection {
            queries_left: Cell::new(client.listening.timeouts.queries_max),
            has_asked: Cell::new(false),
            output: Held::new(&client),
            client,
            writing: Cell::new(0),
            overfull: Notify::new(),
            gone: Cell::new(false),
            outgoing: RefCell::new(Vec::new()),
            unfinished: RefCell::default(),
            awaited: Cell::new(0),
            arrived: Notify::new(),
            ending: Cell::new(false),
        }
    }

    async fn run(self: Rc<Self>, mut stream: impl AsyncRead + AsyncWrite + Unpin, early: Vec<u8>) -> io::Result<()> {
        let mut closing = self.client.endpoint.closing();
        let mut input = Input::new(&self.client, early);
        loop {
            input.take(self.answer_all(&input.buffer), &self.client);
            if self.write_outgoing(&mut stream).await? {
                input.touch(&self.client);
            }
            if self.gone.get() {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            if self.continue_unfinished() {
                continue;
            }
            if self.has_room() && framed(&input.buffer, 0).is_some() {
                continue;
            }
            if self.queries_left.get() == Some(0) {
                self.ending.set(true);
            }
            if self.ending.get() && self.awaited.get() == 0 {
                return Ok(());
            }
            let reads = !self.ending.get() && self.has_room();
            let answer_awaited = self.awaited.get() > 0;
            tokio::select! {
                open = input.read(&mut stream, &self.client, answer_awaited), if reads => self.ending.set(!open),
                () = self.arrived.notified() => {}
                _ = closing.reaches(Stage::Ending), if !self.ending.get() => {
                    // Bytes that the kernel has already acknowledged must be served. A new client's first query may
                    // still be on the network.
                    let grace = if self.has_asked.get() { Duration::ZERO } else { FIRST_QUERY_GRACE };
                    let read = poll_fn(|context| input.poll_read(context, Pin::new(&mut stream), &self.client));
                    let _ = timeout(grace, read).await;
                    self.ending.set(true);
                }
            }
        }
    }

    /// Returns true if one more query may be answered. An answer with more messages to come blocks further queries.
    fn has_room(&self) -> bool {
        !self.gone.get()
            && self.queries_left.get() != Some(0)
            && self.awaited.get() < PIPELINE_MAX
            && self.outgoing.borrow().len() < UNWRITTEN_MAX
            && self.unfinished.borrow().is_empty()
    }

    /// Writes the answers that are ready. Returns true if there were any.
    async fn write_outgoing(&self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<bool> {
        let bytes = self.outgoing.take();
        if bytes.is_empty() {
            return Ok(false);
        }
        holds(self.writing.get() == 0, "one buffer is written at a time");
        holds(framed(&bytes, 0).is_some(), "whole answers are written");
        self.writing.set(bytes.capacity());
        let written = async {
            stream.write_all(&bytes).await?;
            stream.flush().await
        };
        timeout(self.client.limits.write, written).await??;
        self.writing.set(0);
        self.hold_outgoing();
        Ok(true)
    }

    /// Answers the complete queries in `bytes` while there is room. Returns the number of bytes consumed.
    fn answer_all(self: &Rc<Self>, bytes: &[u8]) -> usize {
        let mut used = 0;
        while self.has_room()
            && let Some((query, next)) = framed(bytes, used)
        {
            self.has_asked.set(true);
            self.queries_left.set(self.queries_left.get().map(|left| left.saturating_sub(1)));
            self.answer(query);
            holds(used < next && next <= bytes.len(), "queries follow each other in the buffer");
            used = next;
        }
        used
    }

    fn answer(self: &Rc<Self>, query: &[u8]) {
        let shared = &self.client.shared;
        let (seen, mut transaction, progress) = self.client.receive(query);
        if progress == Progress::Waiting {
            let awaited = Awaited::new(self);
            shared.park(&seen.generation, transaction, move |transaction, progress| {
                awaited.0.deliver(transaction, progress);
            });
        } else {
            self.deliver(&mut transaction, progress);
            shared.worker.borrow_mut().give_transaction(transaction);
        }
        shared.end_batch(&seen.generation, 0);
    }

    /// Reserves memory for unwritten answers. Ends the connection if the budget has no room.
    fn hold_outgoing(&self) {
        let bytes = self.outgoing.borrow().capacity() + self.writing.get();
        if !self.output.hold(bytes) {
            self.refuse();
        }
    }

    fn deliver(&self, transaction: &mut Transaction, progress: Progress) {
        if progress == Progress::Answered && !self.gone.get() {
            let Transaction { query, response, .. } = transaction;
            self.say_how_long_to_stay(query, response);
            if self.append(response.finish(query)) && response.has_more() {
                let mut kept = self.client.shared.worker.borrow_mut().take_transaction();
                core::mem::swap(&mut *kept, transaction);
                self.unfinished.borrow_mut().push_back(kept);
            }
        }
    }

    /// Appends an answer to the unwritten ones if the budget has room for it. Otherwise the connection ends, and its
    /// unwritten answers are freed at once. Returns false if the answer was not appended.
    fn append(&self, message: &[u8]) -> bool {
        let mut outgoing = self.outgoing.borrow_mut();
        let needed = outgoing.len() + LENGTH_LEN + message.len();
        if needed > outgoing.capacity() {
            let room = (2 * outgoing.capacity()).min(UNWRITTEN_MAX).max(needed);
            if !self.output.hold(room + self.writing.get()) {
                drop(outgoing);
                self.refuse();
                return false;
            }
            let length = outgoing.len();
            outgoing.reserve_exact(room - length);
        }
        holds(outgoing.capacity() >= needed, "the memory of an answer was reserved");
        let fits = frame(message, &mut outgoing);
        holds(!fits || outgoing.len() == needed, "an answer is its prefix and its message");
        if !fits {
            self.ending.set(true);
        }
        fits
    }

    /// Ends the connection because the budget has no room for its answers, and frees them.
    fn refuse(&self) {
        self.gone.set(true);
        self.outgoing.take();
        self.unfinished.take();
        self.output.hold(self.writing.get());
        self.client.shared.count(self.client.shared.limits.buffers);
        self.overfull.notify_one();
    }

    /// Appends messages of unfinished answers up to the write limit. Returns true if there were any. The server reads
    /// no other query meanwhile, so the client sets the pace.
    fn continue_unfinished(&self) -> bool {
        while self.outgoing.borrow().len() < UNWRITTEN_MAX {
            let Some(mut transaction) = self.unfinished.borrow_mut().pop_front() else { break };
            let Transaction { query, response, .. } = &mut *transaction;
            let Some(message) = response.finish_next(query) else {
                self.client.shared.worker.borrow_mut().give_transaction(transaction);
                continue;
            };
            if !self.append(message) {
                self.unfinished.take();
                break;
            }
            self.unfinished.borrow_mut().push_front(transaction);
        }
        holds(self.unfinished.borrow().len() <= PIPELINE_MAX, "each unfinished answer is that of a query");
        !self.outgoing.borrow().is_empty()
    }

    /// Adds the idle timeout to the response if the client asks for it, in units of 100 ms. The value is 0 if the
    /// connection is about to end (RFC 7828 §3.1, §3.3.2).
    fn say_how_long_to_stay(&self, query: &Query, response: &mut Response) {
        let asks = |query: &Query| query.options().any(|(code, _)| code == OptionCode::TCP_KEEPALIVE);
        if query.opt().is_some() && asks(query) {
            let idle = if self.ending.get() { Duration::ZERO } else { self.client.idle_time() };
            let tenths = u16::try_from(idle.as_millis() / 100).unwrap_or(u16::MAX);
            response.set_option(OptionCode::TCP_KEEPALIVE, tenths.to_be_bytes().to_vec());
        }
    }
}

/// Counts a pending answer. Dropping it ends the count, even if the query is cancelled.
struct Awaited(Rc<Connection>);

impl Awaited {
    fn new(connection: &Rc<Connection>) -> Awaited {
        connection.awaited.set(connection.awaited.get() + 1);
        holds(connection.awaited.get() <= PIPELINE_MAX, "a connection awaits a bounded number of answers");
        Awaited(Rc::clone(connection))
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        holds(self.0.awaited.get() > 0, "an answer that has come was awaited");
        self.0.awaited.set(self.0.awaited.get() - 1);
        self.0.arrived.notify_one();
    }
}

/// Share of one buffer in the process-wide budget: its capacity beyond [`BUFFERED_FREE`].
struct Held {
    connection: Arc<connections::Connection>,
    bytes: Cell<usize>,
}

impl Held {
    fn new(client: &Client) -> Held {
        Held { connection: Arc::clone(&client.connection), bytes: Cell::new(0) }
    }

    /// Adjusts the reservation to a buffer of this many bytes. Returns false if the budget has no room.
    fn hold(&self, bytes: usize) -> bool {
        let (wanted, held) = (bytes.saturating_sub(BUFFERED_FREE), self.bytes.get());
        if wanted > held && !self.connection.reserve(wanted - held) {
            return false;
        }
        if wanted < held {
            self.connection.release(held - wanted);
        }
        self.bytes.set(wanted);
        true
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.connection.release(self.bytes.get());
    }
}

/// Input buffer and read deadlines.
struct Input {
    buffer: Vec<u8>,
    held: Held,
    limits: StreamLimits,
    /// Time when an answer was last written or a query was last completed.
    touched: Instant,
    /// Idle timeout.
    patience: Duration,
    /// Deadline for completing the query whose first bytes have arrived.
    whole_by: Option<Instant>,
}

impl Input {
    /// Creates an input buffer with bytes that were read early.
    fn new(client: &Client, buffer: Vec<u8>) -> Input {
        let patience = client.limits.read.min(client.idle_time());
        let (held, limits) = (Held::new(client), client.limits);
        Input { buffer, held, limits, touched: Instant::now(), patience, whole_by: None }
    }

    /// Restarts the idle timeout.
    fn touch(&mut self, client: &Client) {
        self.touched = Instant::now();
        self.patience = client.idle_time();
    }

    /// Removes the answered queries from the buffer.
    fn take(&mut self, used: usize, client: &Client) {
        holds(used <= self.buffer.len(), "queries that were answered are in the buffer");
        if used > 0 {
            self.buffer.drain(..used);
            self.whole_by = None;
            self.touch(client);
        }
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT {
            self.buffer = Vec::new();
            self.held.hold(0);
        }
    }

    /// Reads more bytes. Returns false at the end of the stream or after a timeout. Waiting for an answer does not
    /// count as idle.
    async fn read(&mut self, stream: &mut (impl AsyncRead + Unpin), client: &Client, answer_awaited: bool) -> bool {
        if !self.buffer.is_empty() && self.whole_by.is_none() {
            // The deadline covers the whole query, however many small pieces it arrives in.
            self.whole_by = Some(Instant::now() + self.limits.read);
        }
        let silent_until = (!answer_awaited).then(|| self.touched + self.patience);
        let until = self.whole_by.or(silent_until);
        let read = poll_fn(|context| self.poll_read(context, Pin::new(stream), client));
        let read = match until {
            Some(until) => timeout_at(until, read).await.ok(),
            None => Some(read.await),
        };
        matches!(read, Some(Ok(bytes)) if bytes > 0)
    }

    /// Reads into the worker's shared buffer and copies the bytes out, so that an idle connection needs no buffer.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        stream: Pin<&mut (impl AsyncRead + Unpin)>,
        client: &Client,
    ) -> Poll<io::Result<usize>> {
        let mut shared = client.shared.read_buffer.borrow_mut();
        let mut read = ReadBuf::new(&mut shared);
        ready!(stream.poll_read(context, &mut read))?;
        Poll::Ready(self.keep(read.filled(), client))
    }

    /// Appends bytes if the budget has room. Returns their number.
    fn keep(&mut self, read: &[u8], client: &Client) -> io::Result<usize> {
        let needed = self.buffer.len() + read.len();
        if needed > self.buffer.capacity() {
            // Allocate no more than the current message needs, once its length is known.
            let length = self.buffer.first_chunk::<LENGTH_LEN>().map_or(0, |length| u16::from_be_bytes(*length));
            let room = (2 * self.buffer.capacity()).min(LENGTH_LEN + usize::from(length)).max(needed);
            if !self.held.hold(room) {
                client.shared.count(client.shared.limits.buffers);
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            self.buffer.reserve_exact(room - self.buffer.len());
            let counted = self.buffer.capacity().saturating_sub(BUFFERED_FREE);
            holds(counted <= self.held.bytes.get(), "the memory of a query was reserved");
        }
        self.buffer.extend_from_slice(read);
        Ok(read.len())
    }
}

/// Appends a message with its length prefix. Returns false if it exceeds 65,535 bytes. The connection must then end,
/// because the client would take the next message for this answer.
#[must_use]
fn frame(message: &[u8], outgoing: &mut Vec<u8>) -> bool {
    let Ok(length) = u16::try_from(message.len()) else { return false };
    outgoing.extend_from_slice(&length.to_be_bytes());
    outgoing.extend_from_slice(message);
    true
}

/// Returns the message at offset `at` and the offset of the next one, or `None` if it is incomplete.
fn framed(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let length = bytes.get(at..)?.first_chunk::<LENGTH_LEN>()?;
    let end = at + LENGTH_LEN + usize::from(u16::from_be_bytes(*length));
    Some((bytes.get(at + LENGTH_LEN..end)?, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_above_65535_bytes_is_not_framed() {
        let mut outgoing = b"before".to_vec();
        assert!(!frame(&[0; 65_536], &mut outgoing));
        assert_eq!(outgoing, b"before");
        assert!(frame(&[7; 65_535], &mut outgoing));
        assert_eq!(framed(&outgoing, 6).map(|(message, end)| (message.len(), end)), Some((65_535, 65_543)));
    }
}
