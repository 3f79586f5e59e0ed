//! Opening of a connection over HTTPS, and the limits and timers of hyper, all explicit.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;

use engine::LocalFuture;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioTimer;
use transport::http_client::{self, Http1Sender, Http2Sender, Tasks};

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
    Http1(RefCell<Option<Http1Sender>>),
    /// HTTP/2, and the number of streams that the upstream allows.
    Http2(Http2Sender, Rc<Cell<usize>>),
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
    if connected.is_http2 {
        let greeted = http_client::http2(&limit_http2, connected.stream).await;
        let (sender, mut connection) = greeted.map_err(io::Error::other)?;
        let streams_max = Rc::new(Cell::new(connection.streams_max()));
        let sender = Sender::Http2(sender, Rc::clone(&streams_max));
        let driver = Box::pin(async move {
            // hyper polls the connection for each request, and so notices new settings.
            poll_fn(|context| {
                let ended = Pin::new(&mut connection).poll(context).map(drop);
                streams_max.set(connection.streams_max());
                ended
            })
            .await;
        });
        return Ok((Opened { sender, authority, local }, driver));
    }
    let (sender, connection) = http_client::http1(&http1(), connected.stream).await.map_err(io::Error::other)?;
    let driver = Box::pin(async move { drop(connection.await) });
    Ok((Opened { sender: Sender::Http1(RefCell::new(Some(sender))), authority, local }, driver))
}

fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEADERS_MAX as usize).max_header_size(HEADERS_MAX as usize);
    builder
}

fn limit_http2(builder: &mut http2::Builder<Tasks>) {
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
}
