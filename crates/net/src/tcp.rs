//! Serving streams (RFC 7766): queries come one after the other or all at once, answers go as they are ready.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;

use engine::setup::ProxyHeader;
use engine::{Clock, Path, Query, Response, Transport, Turn, Walk};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use wire::OptionCode;

use crate::clock::MonotonicClock;
use crate::limits::{PIPELINE_MAX, StreamLimits, UNWRITTEN_MAX};
use crate::proxy::{Start, accept, look};
use crate::worker::{Endpoint, Shared};

/// Octets read at once: some dozen pipelined queries.
const READ_AHEAD: usize = 4096;
/// Octets of the length before each message.
const LENGTH_LEN: usize = 2;
/// How long to wait before accepting again when the system has no more descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves a listening socket until the worker closes it.
pub(crate) async fn serve(shared: Rc<Shared>, endpoint: Rc<Endpoint>, listener: TcpListener) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        if shared.streams.get() >= shared.stream_limits.open_max {
            shared.count(shared.limits.streams);
            continue;
        }
        let Ok(local) = stream.local_addr() else { continue };
        let connection = Rc::new(Connection::new(&shared, &endpoint, peer, local));
        tokio::task::spawn_local(async move {
            // A client that went away is no error of ours.
            let _ = connection.run(stream).await;
        });
    }
}

/// A client's connection.
struct Connection {
    shared: Rc<Shared>,
    endpoint: Rc<Endpoint>,
    path: Cell<Path>,
    limits: StreamLimits,
    /// Queries that may still be answered; `None` for any number.
    queries_left: Cell<Option<u32>>,
    /// Answers that have not been written yet, each with its length before it.
    outgoing: RefCell<Vec<u8>>,
    /// Answers that are being waited for.
    awaited: Cell<usize>,
    /// An answer that was waited for is there.
    arrived: Notify,
    /// No more queries are read: the client has no more, was too slow, or the address is served no more.
    ending: Cell<bool>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.shared.streams.set(self.shared.streams.get() - 1);
    }
}

impl Connection {
    fn new(shared: &Rc<Shared>, endpoint: &Rc<Endpoint>, peer: SocketAddr, local: SocketAddr) -> Connection {
        shared.streams.set(shared.streams.get() + 1);
        let (timeouts, usual) = (endpoint.timeouts(shared), shared.stream_limits);
        let limits = StreamLimits {
            read: timeouts.read.unwrap_or(usual.read),
            idle: timeouts.idle.unwrap_or(usual.idle),
            write: timeouts.write.unwrap_or(usual.write),
            ..usual
        };
        Connection {
            shared: Rc::clone(shared),
            endpoint: Rc::clone(endpoint),
            path: Cell::new(Path { peer, local, transport: Transport::Tcp }),
            limits,
            queries_left: Cell::new(timeouts.queries_max),
            outgoing: RefCell::new(Vec::new()),
            awaited: Cell::new(0),
            arrived: Notify::new(),
            ending: Cell::new(false),
        }
    }

    /// Reads queries and writes answers until the client has no more queries, is too slow, or the address is served no
    /// more; answers that are on their way then are still written.
    async fn run(self: Rc<Self>, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut closing = self.endpoint.closing();
        let mut input = Input::new(self.limits);
        if !self.read_proxy_header(&mut stream, &mut input.buffer).await? {
            return Ok(());
        }
        loop {
            input.take(self.answer_all(&input.buffer));
            if self.write_outgoing(&mut stream).await? {
                input.touch();
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
            tokio::select! {
                open = input.read(&mut stream, self.awaited.get() > 0), if reads => self.ending.set(!open),
                () = self.arrived.notified() => {}
                _ = closing.wait_for(|closed| *closed), if !self.ending.get() => {
                    // What the kernel has taken already is still ours.
                    let _ = stream.try_read_buf(&mut input.buffer);
                    self.ending.set(true);
                }
            }
        }
    }

    /// Takes what a proxy says before the first query, if somebody looks for it; says whether the client is served.
    async fn read_proxy_header(&self, stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let Some(policy) = self.endpoint.proxy_policy(&self.shared) else { return Ok(true) };
        let deadline = Instant::now() + self.limits.read;
        let path = self.path.get();
        let said = (policy.0)(path.peer.ip().to_canonical());
        if said == ProxyHeader::Skip {
            return Ok(true);
        }
        loop {
            match look(buffer, true) {
                Start::Bare => return Ok(true),
                Start::Broken => return Ok(false),
                Start::Header(length, ends) => {
                    buffer.drain(..length);
                    let path = accept(said, ends, path);
                    path.into_iter().for_each(|path| self.path.set(path));
                    return Ok(path.is_some());
                }
                Start::Partial if timeout_at(deadline, stream.read_buf(buffer)).await?? == 0 => return Ok(false),
                Start::Partial => {}
            }
        }
    }

    /// Whether one more query may be answered.
    fn has_room(&self) -> bool {
        self.queries_left.get() != Some(0)
            && self.awaited.get() < PIPELINE_MAX
            && self.outgoing.borrow().len() < UNWRITTEN_MAX
    }

    /// Writes what is ready; says whether there was something.
    async fn write_outgoing(&self, stream: &mut TcpStream) -> io::Result<bool> {
        let octets = self.outgoing.take();
        if octets.is_empty() {
            return Ok(false);
        }
        timeout(self.limits.write, stream.write_all(&octets)).await??;
        Ok(true)
    }

    /// Answers the whole queries in `octets`, as long as there is room; gives how many octets they were.
    fn answer_all(self: &Rc<Self>, octets: &[u8]) -> usize {
        let mut used = 0;
        while self.has_room()
            && let Some((query, next)) = framed(octets, used)
        {
            self.queries_left.set(self.queries_left.get().map(|left| left.saturating_sub(1)));
            self.answer(query);
            used = next;
        }
        used
    }

    fn answer(self: &Rc<Self>, query: &[u8]) {
        let (generation, listener) = self.endpoint.listener(&self.shared);
        let mut walk = self.shared.worker.borrow_mut().take_walk();
        walk.query.packet.clear();
        walk.query.packet.extend_from_slice(query);
        walk.query.path = self.path.get();
        walk.query.received = MonotonicClock.now();
        let turn = generation.receive(listener, &mut walk, &mut self.shared.worker.borrow_mut());
        if turn == Turn::Waiting {
            let awaited = Awaited::new(self);
            self.shared.park(&generation, walk, move |walk, turn| awaited.0.deliver(walk, turn));
        } else {
            self.deliver(&mut walk, turn);
            self.shared.worker.borrow_mut().give_walk(walk);
        }
        self.shared.end_batch(&generation, 0);
    }

    fn deliver(&self, walk: &mut Walk, turn: Turn) {
        if turn == Turn::Answered {
            let Walk { query, response, .. } = walk;
            self.say_how_long_to_stay(query, response);
            let answer = response.finish(query);
            let length = u16::try_from(answer.len()).unwrap_or(0);
            let mut outgoing = self.outgoing.borrow_mut();
            outgoing.extend_from_slice(&length.to_be_bytes());
            outgoing.extend_from_slice(&answer[..usize::from(length)]);
        }
    }

    /// Tells a client that wants to know how long the connection may be silent, in tenths of a second; none at all if it
    /// is to end (RFC 7828 §3.1, §3.3.2).
    fn say_how_long_to_stay(&self, query: &Query, response: &mut Response) {
        let asks = |query: &Query| query.options().any(|(code, _)| code == OptionCode::TCP_KEEPALIVE);
        if query.opt().is_some() && asks(query) {
            let idle = if self.ending.get() { Duration::ZERO } else { self.limits.idle };
            let tenths = u16::try_from(idle.as_millis() / 100).unwrap_or(u16::MAX);
            response.set_option(OptionCode::TCP_KEEPALIVE, tenths.to_be_bytes().to_vec());
        }
    }
}

/// An answer that is waited for, counted as long as somebody may bring it.
struct Awaited(Rc<Connection>);

impl Awaited {
    fn new(connection: &Rc<Connection>) -> Awaited {
        connection.awaited.set(connection.awaited.get() + 1);
        Awaited(Rc::clone(connection))
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.awaited.set(self.0.awaited.get() - 1);
        self.0.arrived.notify_one();
    }
}

/// What has been read, and until when more must come.
struct Input {
    buffer: Vec<u8>,
    limits: StreamLimits,
    /// When the last thing happened: an answer was written, a query was there as a whole.
    touched: Instant,
    /// How long nothing may happen.
    patience: Duration,
    /// By when the query must be there whose first octets are.
    whole_by: Option<Instant>,
}

impl Input {
    fn new(limits: StreamLimits) -> Input {
        let buffer = Vec::with_capacity(READ_AHEAD);
        Input { buffer, limits, touched: Instant::now(), patience: limits.read, whole_by: None }
    }

    /// Something happened: the time of silence begins anew.
    fn touch(&mut self) {
        self.touched = Instant::now();
        self.patience = self.limits.idle;
    }

    /// Takes the queries away that were answered.
    fn take(&mut self, used: usize) {
        if used > 0 {
            self.buffer.drain(..used);
            self.whole_by = None;
            self.touch();
        }
        if self.buffer.is_empty() && self.buffer.capacity() > 2 * READ_AHEAD {
            self.buffer = Vec::with_capacity(READ_AHEAD);
        }
    }

    /// Reads more; says whether there may be more still. A client that waits for an answer is not silent.
    async fn read(&mut self, stream: &mut TcpStream, answer_awaited: bool) -> bool {
        if !self.buffer.is_empty() && self.whole_by.is_none() {
            // A query has so long to arrive as a whole, however many small pieces it comes in.
            self.whole_by = Some(Instant::now() + self.limits.read);
        }
        let silent_until = (!answer_awaited).then(|| self.touched + self.patience);
        let read = stream.read_buf(&mut self.buffer);
        let read = match self.whole_by.or(silent_until) {
            Some(until) => timeout_at(until, read).await.ok(),
            None => Some(read.await),
        };
        matches!(read, Some(Ok(octets)) if octets > 0)
    }
}

/// The message at `at` of a stream, and where the next one begins; `None` if it is not there as a whole.
fn framed(octets: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let length = octets.get(at..)?.first_chunk::<LENGTH_LEN>()?;
    let end = at + LENGTH_LEN + usize::from(u16::from_be_bytes(*length));
    Some((octets.get(at + LENGTH_LEN..end)?, end))
}
