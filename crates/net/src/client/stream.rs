//! Connections of the stream client for upstreams: TCP, with or without TLS.
//!
//! Each connection has a task, which opens and reads it. A query is written by its own task if the connection accepts
//! it at once; otherwise the connection's task writes the rest.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};

use engine::{Exchange, ExchangeError, ExchangeReply, UnwantedReplies};
use tokio::io::ReadBuf;
use upstream::{ConnectionId, Mismatch, QueryError, Random};

use super::pool::{PoolDriver, Transport};
use super::replies::{Incomplete, Replies};
use super::route::{Route, connect};
use super::{count_unwanted, now, query_error};
use transport::byte_streams::Duplex;

/// Bytes to read at once.
const READ_AT_ONCE: usize = 16 << 10;

/// TCP client of one worker.
pub(crate) struct StreamClient(Rc<Driver>);

type Driver = PoolDriver<Streams>;

/// Connections over TCP and TLS.
struct Streams;

struct Stream {
    io: RefCell<Box<dyn Duplex>>,
    /// Local address, if the system knows it.
    local: Option<SocketAddr>,
    /// Waker of the connection's task.
    waker: Waker,
    /// True if the stream did not accept all bytes. The connection's task continues when it does.
    is_blocked: Cell<bool>,
    /// Beginning of a reply whose rest has not arrived.
    incomplete: RefCell<Incomplete>,
}

impl StreamClient {
    pub(crate) fn new(random: Random, replies: &Rc<Replies>) -> StreamClient {
        StreamClient(PoolDriver::new(Streams, random, replies))
    }

    /// Sends one query. The future returns the reply. It does not keep the exchange, to be small.
    pub(crate) fn exchange<'a>(
        &'a self,
        exchange: Exchange<'_>,
    ) -> impl Future<Output = Result<ExchangeReply, ExchangeError>> + use<'a> {
        self.0.exchange(&exchange)
    }
}

impl Transport for Streams {
    type Carrier = upstream::Framed;
    type Opened = Stream;
    type Outcome = Result<ExchangeReply, QueryError>;

    fn open(driver: &Rc<Driver>, id: ConnectionId, route: Route) {
        let task = tokio::task::spawn_local(run(Rc::downgrade(driver), id, route)).abort_handle();
        driver.insert(id, task, None);
    }

    /// Sends what the client has for a connection, until the connection accepts no more.
    fn transmit(driver: &Driver, id: ConnectionId) {
        // The connection may be closed since the event was made. A blocked one is written when it accepts bytes again.
        let Some(stream) = driver.opened(id).filter(|stream| !stream.is_blocked.get()) else { return };
        let sent = stream.write(&driver.client, id);
        stream.is_blocked.set(sent.is_pending());
        if let Poll::Ready(Err(error)) = sent {
            driver.fail(id, &query_error("write", &error));
        }
    }

    fn local(stream: &Stream) -> Option<SocketAddr> {
        stream.local
    }
}

impl Driver {
    /// Reads all bytes that have arrived, and continues to write if the connection was blocked. Ready when the
    /// connection is closed.
    fn poll(
        self: &Rc<Self>,
        id: ConnectionId,
        (stream, unwanted): (&Stream, Option<&UnwantedReplies>),
        context: &mut Context<'_>,
    ) -> Poll<()> {
        let ignored = |reason| count_unwanted(unwanted, reason);
        let end = self.poll_read(id, stream, context, ignored);
        if let Poll::Ready(error) = &end {
            self.fail(id, error);
        } else if stream.is_blocked.replace(false) {
            Streams::transmit(self, id);
        }
        self.process();
        end.map(drop)
    }

    /// Reads what has arrived, until the replies have to be taken first. Ready at the end of the stream.
    fn poll_read(
        self: &Rc<Self>,
        id: ConnectionId,
        stream: &Stream,
        context: &mut Context<'_>,
        mut ignored: impl FnMut(Mismatch),
    ) -> Poll<QueryError> {
        while !self.outcomes.replies.must_wait() {
            let is_open = stream.poll_read(context, |bytes| {
                let mut client = self.client.borrow_mut();
                client.handle_input(now(), id, bytes, &mut ignored);
                stream.incomplete.borrow_mut().set(client.incomplete_len(id))
            });
            match ready!(is_open) {
                Some(Ok(())) => self.process(),
                Some(Err(error)) => return Poll::Ready(error.into()),
                None => return Poll::Ready(QueryError::Closed),
            }
        }
        // The tasks of the replies are woken, so they run before this one.
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Opens a connection and reads it until its end.
async fn run(driver: Weak<Driver>, id: ConnectionId, route: Route) {
    let connected = connect(&route).await;
    let waker = poll_fn(|context| Poll::Ready(context.waker().clone())).await;
    let Some(running) = driver.upgrade() else { return };
    let stream = match connected {
        Ok((local, io)) => Rc::new(Stream {
            io: RefCell::new(io),
            local,
            waker,
            is_blocked: Cell::new(false),
            incomplete: RefCell::new(Incomplete::new(&running.outcomes.replies)),
        }),
        Err(error) => {
            running.fail(id, &query_error("dial", &error));
            return running.process();
        }
    };
    running.set_opened(id, Rc::clone(&stream));
    running.client.borrow_mut().handle_connected(now(), id);
    running.process();
    drop(running);
    let unwanted = route.unwanted.as_deref();
    let poll = |driver: Rc<Driver>, context: &mut Context<'_>| driver.poll(id, (&stream, unwanted), context);
    poll_fn(|context| driver.upgrade().map_or(Poll::Ready(()), |driver| poll(driver, context))).await;
}

impl Stream {
    /// Writes the bytes that `client` has for this stream, and flushes it. If it accepts no more, it wakes the
    /// connection's task when it does.
    fn write(&self, client: &RefCell<upstream::StreamClient<Route>>, id: ConnectionId) -> Poll<io::Result<()>> {
        let (mut io, mut client) = (self.io.borrow_mut(), client.borrow_mut());
        let mut io = Pin::new(&mut **io);
        let context = &mut Context::from_waker(&self.waker);
        while let Some(bytes) = client.poll_transmit(id) {
            match ready!(io.as_mut().poll_write(context, bytes))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                length => client.handle_transmitted(id, length),
            }
        }
        io.poll_flush(context)
    }

    /// Passes bytes that have arrived to `each` and returns its result. `None` at the end of the stream.
    fn poll_read<T>(&self, context: &mut Context<'_>, each: impl FnOnce(&[u8]) -> T) -> Poll<Option<T>> {
        thread_local! {
            static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_AT_ONCE].into());
        }
        BUFFER.with_borrow_mut(|buffer| {
            let mut read = ReadBuf::new(buffer);
            let outcome = ready!(Pin::new(&mut **self.io.borrow_mut()).poll_read(context, &mut read));
            let is_open = outcome.is_ok() && !read.filled().is_empty();
            Poll::Ready(is_open.then(|| each(read.filled())))
        })
    }
}
