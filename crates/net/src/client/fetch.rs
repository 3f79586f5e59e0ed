//! Asking an HTTP server for a page, as far as a health check needs it: the status alone.

use http_body_util::Empty;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::HOST;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The status of `GET http://ADDRESS/PATH`; an address without a host is this machine.
pub(crate) async fn status(address: &str, path: &str) -> Result<u16, String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let host = if address.starts_with(':') { format!("localhost{address}") } else { address.to_owned() };
    let stream = TcpStream::connect(&host).await.map_err(|error| text(&error))?;
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| text(&error))?;
    let connection = tokio::task::spawn_local(connection);
    let request = Request::get(path).header(HOST, &host).body(Empty::<Bytes>::new()).map_err(|error| text(&error))?;
    let answer = sender.send_request(request).await;
    connection.abort();
    answer.map(|answer| answer.status().as_u16()).map_err(|error| text(&error))
}
