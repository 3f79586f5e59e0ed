//! HTTP/1.1 on one connection, with deadlines and a bound for the request head.

use std::convert::Infallible;
use std::io;

use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use net::Connection;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::deadlines::{Phases, Watched};

/// Maximum size of a request head, in bytes.
const REQUEST_MAX: usize = 16 * 1024;

/// Serves a connection until it ends or a deadline of [`Phases`] passes. `answer` responds to a request. A response
/// body of unknown length is a stream, which has no deadline while the client reads it.
///
/// # Errors
/// The connection broke, or a deadline has passed.
pub(crate) async fn serve<B, A>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: &Connection,
    answer: impl Fn(Request<Incoming>) -> A,
) -> io::Result<()>
where
    B: Body<Data = Bytes, Error = Infallible> + 'static,
    A: Future<Output = Response<B>>,
{
    let phases = Phases::new();
    let service = service_fn(|request| {
        connection.touch();
        phases.has_request();
        let answering = answer(request);
        async {
            let response = answering.await;
            if response.body().size_hint().exact().is_some() {
                phases.has_response();
            } else {
                phases.has_stream();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let stream = TokioIo::new(Watched::new(stream, phases.clone()));
    // `phases` has the deadlines, so hyper's own is off.
    let http =
        http1::Builder::new().header_read_timeout(None).max_buf_size(REQUEST_MAX).serve_connection(stream, service);
    tokio::select! {
        ended = http => ended.map_err(io::Error::other),
        () = phases.overdue() => Err(io::ErrorKind::TimedOut.into()),
    }
}
