//! Serving streams (RFC 7766): queries come one after the other or all at once, answers go as they are ready.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;

use engine::setup::{ProxyHeader, StreamLimits};
use engine::{Clock, Path, Transport, Turn, Walk};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use crate::clock::MonotonicClock;
use crate::limits::{PIPELINE_MAX, STREAMS_MAX};
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
        if shared.streams.get() >= STREAMS_MAX {
            shared.count(shared.limits.streams);
            continue;
        }
        let Ok(local) = stream.local_addr() else { continue };
        shared.streams.set(shared.streams.get() + 1);
        let connection = Rc::new(Connection::new(&shared, &endpoint, peer, local));
        let shared = Rc::clone(&shared);
        tokio::task::spawn_local(async move {
            // A client that went away is no error of ours.
            let _ = connection.run(stream).await;
            shared.streams.set(shared.streams.get() - 1);
        });
    }
}

/// A client's connection.
struct Connection {
    shared: Rc<Shared>,
    endpoint: Rc<Endpoint>,
    path: Cell<Path>,
    limits: StreamLimits,
    /// Queries so far.
    queries: Cell<u32>,
    /// Answers that have not been written yet, each with its length before it.
    outgoing: RefCell<Vec<u8>>,
    /// Answers that are being waited for.
    awaited: Cell<usize>,
    /// An answer that was waited for is there.
    arrived: Notify,
}

impl Connection {
    fn new(shared: &Rc<Shared>, endpoint: &Rc<Endpoint>, peer: SocketAddr, local: SocketAddr) -> Connection {
        Connection {
            shared: Rc::clone(shared),
            endpoint: Rc::clone(endpoint),
            path: Cell::new(Path { peer, local, transport: Transport::Tcp }),
            limits: endpoint.stream_limits(shared),
            queries: Cell::new(0),
            outgoing: RefCell::new(Vec::new()),
            awaited: Cell::new(0),
            arrived: Notify::new(),
        }
    }

    /// Reads queries and writes answers until the client has no more queries, is too slow, or the worker ends; answers
    /// that are on their way then are still written.
    async fn run(self: Rc<Self>, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut draining = self.shared.draining.subscribe();
        let mut buffer = Vec::with_capacity(READ_AHEAD);
        let StreamLimits { read: read_timeout, idle: idle_timeout, .. } = self.limits;
        let mut deadline = Instant::now() + read_timeout;
        let mut open = self.read_proxy_header(&mut stream, &mut buffer, deadline).await?;
        if open {
            // What came behind the header of a proxy.
            let used = self.answer_all(&buffer);
            buffer.drain(..used);
            open = !self.has_asked_enough();
        }
        loop {
            self.write_outgoing(&mut stream).await?;
            if !open && self.awaited.get() == 0 {
                return Ok(());
            }
            let reads = open && self.awaited.get() < PIPELINE_MAX;
            tokio::select! {
                read = timeout_at(deadline, stream.read_buf(&mut buffer)), if reads => {
                    let used = self.answer_all(&buffer);
                    open = matches!(read, Ok(Ok(octets)) if octets > 0) && !self.has_asked_enough();
                    buffer.drain(..used);
                    if buffer.is_empty() {
                        deadline = Instant::now() + idle_timeout;
                    } else if used > 0 {
                        deadline = Instant::now() + read_timeout;
                    } else {
                        // A query has as long to arrive as a whole, however many small pieces it comes in.
                        deadline = deadline.min(Instant::now() + read_timeout);
                    }
                }
                () = self.arrived.notified() => {}
                _ = draining.wait_for(|on| *on), if open => open = false,
            }
        }
    }

    /// Takes what a proxy says before the first query, if somebody looks for it; says whether the client is served.
    async fn read_proxy_header(
        &self,
        stream: &mut TcpStream,
        buffer: &mut Vec<u8>,
        deadline: Instant,
    ) -> io::Result<bool> {
        let Some(policy) = self.endpoint.proxy_policy(&self.shared) else { return Ok(true) };
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

    async fn write_outgoing(&self, stream: &mut TcpStream) -> io::Result<()> {
        let octets = self.outgoing.take();
        if octets.is_empty() { Ok(()) } else { timeout(self.limits.write, stream.write_all(&octets)).await? }
    }

    /// Answers the whole queries in `octets`; gives how many octets they were.
    fn answer_all(self: &Rc<Self>, octets: &[u8]) -> usize {
        let mut used = 0;
        while !self.has_asked_enough()
            && let Some((query, next)) = framed(octets, used)
        {
            self.queries.set(self.queries.get().saturating_add(1));
            self.answer(query);
            used = next;
        }
        used
    }

    /// Whether the client has used up its queries.
    fn has_asked_enough(&self) -> bool {
        self.limits.queries_max.is_some_and(|most| self.queries.get() >= most)
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
            self.awaited.set(self.awaited.get() + 1);
            let connection = Rc::clone(self);
            self.shared.park(&generation, walk, move |walk, turn| {
                connection.deliver(walk, turn);
                connection.awaited.set(connection.awaited.get() - 1);
                connection.arrived.notify_one();
            });
        } else {
            self.deliver(&mut walk, turn);
            self.shared.worker.borrow_mut().give_walk(walk);
        }
        self.shared.end_batch(&generation, 0);
    }

    fn deliver(&self, walk: &mut Walk, turn: Turn) {
        if turn == Turn::Answered {
            let Walk { query, response, .. } = walk;
            let answer = response.finish(query);
            let length = u16::try_from(answer.len()).unwrap_or(0);
            let mut outgoing = self.outgoing.borrow_mut();
            outgoing.extend_from_slice(&length.to_be_bytes());
            outgoing.extend_from_slice(&answer[..usize::from(length)]);
        }
    }
}

/// The message at `at` of a stream, and where the next one begins; `None` if it is not there as a whole.
fn framed(octets: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let length = octets.get(at..)?.first_chunk::<LENGTH_LEN>()?;
    let end = at + LENGTH_LEN + usize::from(u16::from_be_bytes(*length));
    Some((octets.get(at + LENGTH_LEN..end)?, end))
}
