//! Limits and timers of hyper, all explicit.

use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioTimer;
use transport::grpc::LocalExecutor;

use crate::http::{HEADERS_MAX, PING_EVERY, PING_TIMEOUT, UNWRITTEN_MAX};

/// Bytes of a body that a client may send before the server has read them. The server reads at once.
const STREAM_WINDOW: u32 = 16 << 10;
/// The same for all streams of a connection: the minimum that RFC 9113 §6.9.2 allows.
const CONNECTION_WINDOW: u32 = u16::MAX as u32;
/// Maximum payload of a frame: the minimum that RFC 9113 §6.5.2 allows.
const FRAME_MAX: u32 = 16 << 10;
/// Table for repeated header fields: the default of RFC 7541.
const HEADER_TABLE: u32 = 4096;
/// Streams that a client has reset before the server looked at them. More end the connection (CVE-2023-44487).
const PENDING_RESETS_MAX: usize = 20;
/// Streams that the server has reset because of protocol errors. More end the connection (CVE-2025-8671).
const ERROR_RESETS_MAX: usize = 128;

/// Returns the settings for HTTP/1.1.
///
/// The timer of hyper for the headers also runs while a connection is idle, so it is off. The deadlines of
/// [`Activity`](crate::http::Activity) replace it.
pub(super) fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .keep_alive(true)
        .half_close(false)
        .max_buf_size(HEADERS_MAX as usize)
        .max_header_size(HEADERS_MAX as usize);
    builder
}

/// Returns the settings for HTTP/2 with this maximum number of open streams on a connection.
pub(super) fn http2(streams_max: u32) -> http2::Builder<LocalExecutor> {
    let mut builder = http2::Builder::new(LocalExecutor);
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(streams_max)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(FRAME_MAX)
        .header_table_size(HEADER_TABLE)
        .max_header_list_size(HEADERS_MAX)
        .max_pending_accept_reset_streams(PENDING_RESETS_MAX)
        .max_local_error_reset_streams(ERROR_RESETS_MAX)
        .max_send_buf_size(UNWRITTEN_MAX);
    builder
}
