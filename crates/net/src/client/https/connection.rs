//! Opening of a connection over HTTPS, and the limits and timers of hyper, all explicit.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use engine::LocalFuture;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::client::route::{Route, connect_https};
use crate::http::HEADERS_MAX;

/// Bytes of a response that the upstream may send before they are read: one message of the maximum length.
const STREAM_WINDOW: u32 = 64 << 10;
/// The same for all streams of a connection. They are read at once, so this is a matter of round trips.
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Maximum payload of a frame: the minimum that RFC 9113 §6.5.2 allows.
const FRAME_MAX: u32 = 16 << 10;
/// Table for repeated header fields: the default of RFC 7541.
const HEADER_TABLE: u32 = 4096;
/// Cancelled streams on which late frames are ignored: as many as a connection carries queries.
const CANCELLED_MAX: usize = 100;
/// Streams that this side has reset because of protocol errors. More end the connection.
const ERROR_RESETS_MAX: usize = 128;
/// Bytes of requests on one stream that hyper keeps until they are written: more than any query has.
const UNWRITTEN_MAX: usize = 64 << 10;
/// Time for the last bytes of a connection, such as the announcement of its end.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Open connection.
pub(super) struct Opened {
    pub(super) sender: Sender,
    /// Host and port of the URLs.
    pub(super) authority: String,
    /// Local address, if the system knows it.
    pub(super) local: Option<SocketAddr>,
}

/// Way of requests into a connection.
pub(super) enum Sender {
    /// HTTP/1.1: the request in progress holds the sender.
    Http1(RefCell<Option<http1::SendRequest<Full<Bytes>>>>),
    /// HTTP/2, and the number of streams that the upstream allows.
    Http2(http2::SendRequest<Full<Bytes>>, Rc<Cell<usize>>),
}

impl Opened {
    pub(super) const fn is_http2(&self) -> bool {
        matches!(self.sender, Sender::Http2(..))
    }

    /// Returns the number of requests that the upstream allows at once.
    pub(super) fn streams_max(&self) -> usize {
        match &self.sender {
            Sender::Http1(_) => 1,
            Sender::Http2(_, streams_max) => streams_max.get(),
        }
    }
}

/// Opens a connection. Returns it with the future that drives it until its end.
pub(super) async fn open(route: &Route) -> io::Result<(Opened, LocalFuture<'static, ()>)> {
    let connected = connect_https(route).await?;
    let (authority, local) = (connected.authority, connected.local);
    let stream = TokioIo::new(connected.stream);
    if connected.is_http2 {
        let (guard, closed) = watch::channel(());
        let (sender, mut connection) = http2(Tasks(closed)).handshake(stream).await.map_err(io::Error::other)?;
        let streams_max = Rc::new(Cell::new(connection.current_max_send_streams()));
        let sender = Sender::Http2(sender, Rc::clone(&streams_max));
        let driver = Box::pin(async move {
            let _guard = guard;
            // hyper polls the connection for each request, and so notices new settings.
            poll_fn(|context| {
                let ended = Pin::new(&mut connection).poll(context).map(drop);
                streams_max.set(connection.current_max_send_streams());
                ended
            })
            .await;
        });
        return Ok((Opened { sender, authority, local }, driver));
    }
    let (sender, connection) = http1().handshake(stream).await.map_err(io::Error::other)?;
    let driver = Box::pin(async move { drop(connection.await) });
    Ok((Opened { sender: Sender::Http1(RefCell::new(Some(sender))), authority, local }, driver))
}

fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEADERS_MAX as usize).max_header_size(HEADERS_MAX as usize);
    builder
}

fn http2(tasks: Tasks) -> http2::Builder<Tasks> {
    let mut builder = http2::Builder::new(tasks);
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_MAX)
        .header_table_size(HEADER_TABLE)
        .max_header_list_size(HEADERS_MAX)
        .max_concurrent_reset_streams(CANCELLED_MAX)
        .max_local_error_reset_streams(ERROR_RESETS_MAX)
        .max_send_buf_size(UNWRITTEN_MAX);
    builder
}

/// Executor for the tasks of hyper. They end a while after the connection: a peer that does not read must not keep
/// them.
#[derive(Clone)]
struct Tasks(watch::Receiver<()>);

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
