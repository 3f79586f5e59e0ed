//! Serving streams (RFC 7766): queries come one after the other or all at once, answers go as they are ready.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::time::Duration;

use engine::{Clock, Path, Transport, Turn, Walk};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use crate::clock::MonotonicClock;
use crate::limits::{PIPELINE_MAX, STREAMS_MAX};
use crate::tls;
use crate::worker::{Endpoint, Shared};

/// How long a query may take to arrive once its first octet has.
const READ_TIMEOUT: Duration = Duration::from_secs(3);
/// How long a client may take to greet.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may be silent.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to accept an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Octets read at once: some dozen pipelined queries.
const READ_AHEAD: usize = 4096;
/// Octets of one answer's messages that are made before they are written: one of the largest.
const WRITE_AHEAD: usize = 65_536;
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
            let _ = connection.serve(stream).await;
            shared.streams.set(shared.streams.get() - 1);
        });
    }
}

/// A client's connection.
struct Connection {
    shared: Rc<Shared>,
    endpoint: Rc<Endpoint>,
    path: Path,
    /// Answers that have not been written yet, each with its length before it.
    outgoing: RefCell<Vec<u8>>,
    /// Answers of which more messages are to follow, the first of them at present.
    unfinished: RefCell<VecDeque<Box<Walk>>>,
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
            path: Path { peer, local, transport: Transport::Tcp },
            outgoing: RefCell::new(Vec::new()),
            unfinished: RefCell::default(),
            awaited: Cell::new(0),
            arrived: Notify::new(),
        }
    }

    /// Greets the client, if there is TLS, and serves it.
    async fn serve(self: Rc<Self>, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let (generation, listener) = self.endpoint.listener(&self.shared);
        let tls = generation.listeners.get(listener).and_then(|listener| listener.tls.clone());
        drop(generation);
        let Some(tls) = tls else { return self.run(stream).await };
        let acceptor = tls::acceptor(&*tls).ok_or_else(|| io::Error::other("TLS is not of this process"))?;
        let mut stream = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await??;
        Rc::clone(&self).run(&mut stream).await?;
        timeout(WRITE_TIMEOUT, stream.shutdown()).await?
    }

    /// Reads queries and writes answers until the client has no more queries, is too slow, or the worker ends; answers
    /// that are on their way then are still written.
    async fn run(self: Rc<Self>, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut draining = self.shared.draining.subscribe();
        let mut buffer = Vec::with_capacity(READ_AHEAD);
        let mut deadline = Instant::now() + READ_TIMEOUT;
        let mut open = true;
        loop {
            self.write_outgoing(&mut stream).await?;
            if self.continue_unfinished() {
                continue;
            }
            if !open && self.awaited.get() == 0 {
                return Ok(());
            }
            let reads = open && self.awaited.get() < PIPELINE_MAX;
            tokio::select! {
                read = timeout_at(deadline, stream.read_buf(&mut buffer)), if reads => {
                    open = matches!(read, Ok(Ok(octets)) if octets > 0);
                    let used = self.answer_all(&buffer);
                    buffer.drain(..used);
                    if buffer.is_empty() {
                        deadline = Instant::now() + IDLE_TIMEOUT;
                    } else if used > 0 {
                        deadline = Instant::now() + READ_TIMEOUT;
                    } else {
                        // A query has as long to arrive as a whole, however many small pieces it comes in.
                        deadline = deadline.min(Instant::now() + READ_TIMEOUT);
                    }
                }
                () = self.arrived.notified() => {}
                _ = draining.wait_for(|on| *on), if open => open = false,
            }
        }
    }

    async fn write_outgoing(&self, stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        let octets = self.outgoing.take();
        if octets.is_empty() {
            return Ok(());
        }
        timeout(WRITE_TIMEOUT, async {
            stream.write_all(&octets).await?;
            stream.flush().await
        })
        .await?
    }

    /// Answers the whole queries in `octets`; gives how many octets they were.
    fn answer_all(self: &Rc<Self>, octets: &[u8]) -> usize {
        let mut used = 0;
        while let Some((query, next)) = framed(octets, used) {
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
        walk.query.path = self.path;
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
            frame(response.finish(query), &mut self.outgoing.borrow_mut());
            if response.has_more() {
                let mut kept = self.shared.worker.borrow_mut().take_walk();
                core::mem::swap(&mut *kept, walk);
                self.unfinished.borrow_mut().push_back(kept);
            }
        }
    }

    /// Takes as many messages of answers that are not finished as are written at once; says whether there were any. No
    /// other query is read meanwhile: the client takes them at its own pace.
    fn continue_unfinished(&self) -> bool {
        let mut outgoing = self.outgoing.borrow_mut();
        let mut unfinished = self.unfinished.borrow_mut();
        while outgoing.len() < WRITE_AHEAD {
            let Some(walk) = unfinished.front_mut() else { break };
            let Walk { query, response, .. } = &mut **walk;
            if let Some(message) = response.finish_next(query) {
                frame(message, &mut outgoing);
            } else if let Some(walk) = unfinished.pop_front() {
                self.shared.worker.borrow_mut().give_walk(walk);
            }
        }
        !outgoing.is_empty()
    }
}

/// Appends a message with its length before it.
fn frame(message: &[u8], outgoing: &mut Vec<u8>) {
    let length = u16::try_from(message.len()).unwrap_or(0);
    outgoing.extend_from_slice(&length.to_be_bytes());
    outgoing.extend_from_slice(&message[..usize::from(length)]);
}

/// The message at `at` of a stream, and where the next one begins; `None` if it is not there as a whole.
fn framed(octets: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let length = octets.get(at..)?.first_chunk::<LENGTH_LEN>()?;
    let end = at + LENGTH_LEN + usize::from(u16::from_be_bytes(*length));
    Some((octets.get(at + LENGTH_LEN..end)?, end))
}
