//! One connection to one member of etcd: HTTP/2, within TLS where that is wanted, as gRPC has it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use engine::tls::{ClientTls, Identity};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};
use net::grpc::{CallError, Here};
use rustls::pki_types::ServerName;
use skydns::Tls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, spawn_local};
use tokio_rustls::TlsConnector;

use crate::Timing;
use crate::endpoint::Endpoint;
use crate::failure::Failure;
use crate::sent::Sent;

/// Octets of a stream that may be on their way and unread: what a watch may have in reserve.
const STREAM_WINDOW: u32 = 1 << 20;
/// Octets of all streams of a connection.
const CONNECTION_WINDOW: u32 = 4 << 20;

/// A connection; it is closed when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) sender: SendRequest<Sent>,
    _driver: Arc<Driver>,
}

/// What reads and writes the socket.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// Connects, and greets.
    pub(crate) async fn open(endpoint: &Endpoint, tls: Option<&Tls>, timing: &Timing) -> Result<Connection, Failure> {
        let within = tokio::time::timeout(timing.connect, Connection::open_slowly(endpoint, tls, timing));
        within.await.unwrap_or(Err(Failure::Silent))
    }

    async fn open_slowly(endpoint: &Endpoint, tls: Option<&Tls>, timing: &Timing) -> Result<Connection, Failure> {
        let failed = |error: io::Error| Failure::Connection(net::in_words(&error));
        let stream = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.map_err(failed)?;
        // Small messages leave at once.
        stream.set_nodelay(true).map_err(failed)?;
        if !endpoint.has_tls {
            return Connection::greet(stream, timing).await;
        }
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| Failure::Tls(error.to_string()))?;
        let connector = TlsConnector::from(Arc::new(config(tls).map_err(Failure::Tls)?));
        let stream = connector.connect(name, stream).await.map_err(|error| Failure::Tls(net::in_words(&error)))?;
        Connection::greet(stream, timing).await
    }

    async fn greet<S>(stream: S, timing: &Timing) -> Result<Connection, Failure>
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let mut builder = Builder::new(Here);
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(timing.keep_alive)
            .keep_alive_timeout(timing.keep_alive_answer)
            .keep_alive_while_idle(true);
        let greeted = builder.handshake(TokioIo::new(stream)).await;
        let (sender, driver) = greeted.map_err(|error| CallError::broken(&error))?;
        // How it ends is seen by those who wait for an answer.
        let driver = spawn_local(async move { drop(driver.await) });
        Ok(Connection { sender, _driver: Arc::new(Driver(driver.abort_handle())) })
    }
}

/// TLS as it is wanted, from the files as they are now.
///
/// # Errors
/// In words, if one of them cannot be used.
pub(crate) fn config(tls: Option<&Tls>) -> Result<rustls::ClientConfig, String> {
    let read = |file: &PathBuf| std::fs::read(file).map_err(|error| format!("open {}: {error}", file.display()));
    let identity = tls
        .and_then(|tls| tls.identity.as_ref())
        .map(|(certificates, key)| Ok::<_, String>(Identity { certificates: read(certificates)?, key: read(key)? }));
    let authorities = tls.and_then(|tls| tls.authorities.as_ref()).map(read);
    let (authorities, identity) = (authorities.transpose()?, identity.transpose()?);
    let wanted = ClientTls { authorities, identity, ..ClientTls::default() };
    let mut config = net::client_config(&wanted)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
