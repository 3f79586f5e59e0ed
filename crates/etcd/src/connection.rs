//! Connection to one member of etcd: HTTP/2 for gRPC, optionally with TLS.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use host::boxed;
use host::tls::{ClientTls, Identity};
use hyper::client::conn::http2::Builder;
use hyper_util::rt::TokioTimer;
use rustls::pki_types::ServerName;
use skydns::Tls;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, spawn_local};
use tokio_rustls::TlsConnector;
use transport::byte_streams::Duplex;
use transport::files::{PEM_FILE_MAX, read_file};
use transport::grpc::CallError;
use transport::http_client::{self, Http2Sender, Tasks};

use crate::Timing;
use crate::endpoint::Endpoint;
use crate::error::{EtcdError, StoreError};

/// HTTP/2 flow-control window of a stream in bytes, which bounds the unread data of a watch.
const STREAM_WINDOW: u32 = 1 << 20;
/// HTTP/2 flow-control window of a connection in bytes.
const CONNECTION_WINDOW: u32 = 4 << 20;

/// Connection that closes when the last clone is dropped.
#[derive(Clone)]
pub(crate) struct Connection {
    pub(crate) sender: Http2Sender,
    _driver: Arc<Driver>,
}

/// Task that reads from and writes to the socket. Dropping it aborts the task.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// Connects, with the TLS handshake if enabled and the HTTP/2 handshake.
    pub(crate) async fn open(endpoint: &Endpoint, tls: Option<&Tls>, timing: &Timing) -> Result<Connection, EtcdError> {
        let within = tokio::time::timeout(timing.connect, Connection::open_slowly(endpoint, tls, timing));
        within.await.unwrap_or(Err(EtcdError::Silent))
    }

    async fn open_slowly(endpoint: &Endpoint, tls: Option<&Tls>, timing: &Timing) -> Result<Connection, EtcdError> {
        let failed = |error: io::Error| EtcdError::Connection(transport::error_text(&error));
        let found = stub_resolver::look_up_async(&endpoint.host).await.map_err(failed)?;
        let addresses: Vec<SocketAddr> = found.into_iter().map(|ip| SocketAddr::new(ip, endpoint.port)).collect();
        let stream = TcpStream::connect(&*addresses).await.map_err(failed)?;
        // Send small messages without delay.
        stream.set_nodelay(true).map_err(failed)?;
        if !endpoint.has_tls {
            return Connection::greet(Box::new(stream), timing).await;
        }
        let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| EtcdError::Tls(error.to_string()))?;
        let connector = TlsConnector::from(Arc::new(config(tls).map_err(|error| EtcdError::Tls(error.to_string()))?));
        let stream =
            connector.connect(name, stream).await.map_err(|error| EtcdError::Tls(transport::error_text(&error)))?;
        Connection::greet(Box::new(stream), timing).await
    }

    async fn greet(stream: Box<dyn Duplex>, timing: &Timing) -> Result<Connection, EtcdError> {
        let configure = |builder: &mut Builder<Tasks>| {
            builder
                .timer(TokioTimer::new())
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .keep_alive_interval(timing.keep_alive)
                .keep_alive_timeout(timing.keep_alive_response)
                .keep_alive_while_idle(true);
        };
        let greeted = http_client::http2(&configure, stream).await;
        let (sender, driver) = greeted.map_err(|error| CallError::connection(&error))?;
        // The pending calls report the error of the connection.
        let driver = spawn_local(boxed(async move { drop(driver.await) }));
        Ok(Connection { sender, _driver: Arc::new(Driver(driver.abort_handle())) })
    }
}

/// Creates the TLS configuration from the current content of the files.
///
/// # Errors
/// A file that cannot be read or used.
pub(crate) fn config(tls: Option<&Tls>) -> Result<rustls::ClientConfig, StoreError> {
    let read =
        |file: &PathBuf| read_file(file, PEM_FILE_MAX).map_err(|error| StoreError::File { file: file.clone(), error });
    let identity = tls.and_then(|tls| tls.identity.as_ref()).map(|(certificates, key)| {
        Ok::<_, StoreError>(Identity { certificates: read(certificates)?, key: read(key)? })
    });
    let authorities = tls.and_then(|tls| tls.authorities.as_ref()).map(read);
    let (authorities, identity) = (authorities.transpose()?, identity.transpose()?);
    let wanted = ClientTls { authorities, identity, ..ClientTls::default() };
    let mut config = transport::tls::client_config(&wanted).map_err(|error| StoreError::Tls(error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}
