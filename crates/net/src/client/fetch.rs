//! HTTP client for health checks and collectors: sends one request and returns the status code.

use std::io;

use engine::{Fetch, FetchError};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use stub_resolver::resolve_async;
use tokio::net::TcpStream;
use transport::byte_streams::Duplex;
use transport::error_text;
use transport::http_client::{self, RequestBody};
use transport::tls::Client;

/// Sends a request and returns the status code of the response.
pub(crate) async fn status(fetch: Fetch<'_>) -> Result<u16, FetchError> {
    let local = fetch.address.strip_prefix(':').map(|port| format!("localhost:{port}"));
    let host = local.as_deref().unwrap_or(fetch.address);
    let network = |error: io::Error| FetchError::Network(error_text(&error));
    let stream = TcpStream::connect(&*resolve_async(host).await.map_err(network)?).await.map_err(network)?;
    let Some(tls) = fetch.tls else { return send(Box::new(stream), host, fetch).await };
    let peer = stream.peer_addr().map_err(network)?.ip();
    let stream = Client::of(tls).map_err(network)?.connect(stream, peer).await.map_err(network)?;
    send(Box::new(stream), host, fetch).await
}

/// Bytes of the header section of a response, and of a part of its body: those of health pages have a few hundred.
const BUFFER_MAX: usize = 16 << 10;

async fn send(stream: Box<dyn Duplex>, host: &str, fetch: Fetch<'_>) -> Result<u16, FetchError> {
    let http = |error: hyper::Error| FetchError::Http(error.to_string());
    let (mut sender, connection) =
        http_client::http1(http1::Builder::new().max_buf_size(BUFFER_MAX), stream).await.map_err(http)?;
    let connection = tokio::task::spawn_local(connection);
    let request = Request::builder().uri(fetch.path).header(HOST, host);
    let request = match fetch.post {
        Some((kind, body)) => request
            .method(Method::POST)
            .header(CONTENT_TYPE, kind)
            .body(RequestBody::whole(Bytes::copy_from_slice(body))),
        None => request.body(RequestBody::default()),
    };
    let request = request.map_err(|error| FetchError::Http(error.to_string()))?;
    let response = sender.send_request(request).await;
    connection.abort();
    response.map(|response| response.status().as_u16()).map_err(http)
}
