//! Client for DNS over HTTPS, with hyper.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;
use transport::grpc::LocalExecutor;

use super::{Answer, PATIENCE, query};

/// HTTP version and encryption of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    /// HTTP/1.1 without TLS.
    Clear,
    /// HTTP/1.1 over TLS.
    One,
    /// HTTP/2 over TLS.
    Two,
}

enum Sender {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// Connection to a server.
pub(crate) struct HttpClient {
    runtime: Runtime,
    tasks: LocalSet,
    sender: Sender,
}

/// Returns a TLS configuration that trusts `ca` and offers these protocols.
pub(crate) fn tls_client(ca: &Path, alpn: &[&str]) -> rustls::ClientConfig {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).expect("a certificate")).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut tls = tls.expect("TLS").with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    tls
}

/// Returns the name in the certificates of the tests.
pub(crate) fn server_name() -> ServerName<'static> {
    ServerName::try_from("dns.example.org").expect("a name")
}

impl HttpClient {
    /// Connects to a server whose certificate `ca` has signed.
    pub(crate) fn connect(server: SocketAddr, http: Http, ca: &Path) -> HttpClient {
        HttpClient::connect_behind(&[], server, http, ca)
    }

    /// Connects with these bytes before the handshake.
    pub(crate) fn connect_behind(prefix: &[u8], server: SocketAddr, http: Http, ca: &Path) -> HttpClient {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let tasks = LocalSet::new();
        let sender = tasks.block_on(&runtime, async {
            let mut stream = TcpStream::connect(server).await.expect("a connection");
            stream.write_all(prefix).await.expect("a header leaves");
            let alpn = match http {
                Http::Clear => return one(stream).await,
                Http::One => "http/1.1",
                Http::Two => "h2",
            };
            let connector = tokio_rustls::TlsConnector::from(Arc::new(tls_client(ca, &[alpn])));
            let stream = connector.connect(server_name(), stream).await.expect("a handshake");
            if http == Http::One { one(stream).await } else { two(stream).await }
        });
        HttpClient { runtime, tasks, sender }
    }

    /// Sends a request. Returns the response, or `None` if the connection is closed instead.
    pub(crate) fn send(&mut self, request: Request<Full<Bytes>>) -> Option<Response<Bytes>> {
        self.send_all(vec![request]).pop().flatten()
    }

    /// Sends requests at the same time over HTTP/2, and one after the other over HTTP/1.1.
    pub(crate) fn send_all(&mut self, requests: Vec<Request<Full<Bytes>>>) -> Vec<Option<Response<Bytes>>> {
        let HttpClient { runtime, tasks, sender } = self;
        let exchange = async {
            let mut responses = Vec::new();
            match sender {
                Sender::One(sender) => {
                    for request in requests {
                        let Ok(()) = sender.ready().await else { return vec![None] };
                        responses.push(read(sender.send_request(request).await).await);
                    }
                }
                Sender::Two(sender) => {
                    let Ok(()) = sender.ready().await else { return vec![None] };
                    let pending: Vec<_> = requests.into_iter().map(|request| sender.send_request(request)).collect();
                    for response in pending {
                        responses.push(read(response.await).await);
                    }
                }
            }
            responses
        };
        let exchange = async { tokio::time::timeout(PATIENCE, exchange).await.expect("responses in time") };
        tasks.block_on(runtime, exchange)
    }

    /// Keeps the connection open for some time.
    pub(crate) fn wait(&mut self, time: Duration) {
        self.tasks.block_on(&self.runtime, async { tokio::time::sleep(time).await });
    }

    /// Asks for a name with POST, and returns the answer.
    pub(crate) fn ask(&mut self, name: &str, qtype: wire::Type) -> Option<Answer> {
        let response = self.send(post(query(1, name, qtype)))?;
        (response.status() == 200).then(|| Answer(response.into_body().to_vec()))
    }
}

async fn one(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> Sender {
    let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP/1.1");
    tokio::task::spawn_local(async { drop(driver.await) });
    Sender::One(sender)
}

async fn two(stream: impl AsyncRead + AsyncWrite + Unpin + 'static) -> Sender {
    let handshake = http2::Builder::new(LocalExecutor).handshake(TokioIo::new(stream));
    let (sender, driver) = handshake.await.expect("HTTP/2");
    tokio::task::spawn_local(async { drop(driver.await) });
    Sender::Two(sender)
}

async fn read(response: hyper::Result<Response<hyper::body::Incoming>>) -> Option<Response<Bytes>> {
    let (head, body) = response.ok()?.into_parts();
    let body = body.collect().await.ok()?.to_bytes();
    Some(Response::from_parts(head, body))
}

/// Returns a request with these parts.
pub(crate) fn request(method: &str, target: &str, body: Vec<u8>) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(format!("https://dns.example.org{target}"));
    let request = request.header("host", "dns.example.org").header("content-type", "application/dns-message");
    request.body(Full::new(body.into())).expect("a request")
}

/// Returns a POST with a message.
pub(crate) fn post(message: Vec<u8>) -> Request<Full<Bytes>> {
    request("POST", "/dns-query", message)
}

/// Returns a call of gRPC with a message of less than 128 bytes.
pub(crate) fn call(message: &[u8]) -> Request<Full<Bytes>> {
    // A frame with a message `DnsPacket`, whose field 1 has the DNS message.
    let packet = [&[0x0a, u8::try_from(message.len()).expect("a short message")][..], message].concat();
    let length = u32::try_from(packet.len()).expect("a length").to_be_bytes();
    let request = Request::builder().method("POST").uri("https://dns.example.org/coredns.dns.DnsService/Query");
    let request = request.header("content-type", "application/grpc").header("te", "trailers");
    request.body(Full::new([&[0][..], &length, &packet].concat().into())).expect("a request")
}

/// Returns a GET with a message.
pub(crate) fn get(message: &[u8]) -> Request<Full<Bytes>> {
    request("GET", &format!("/dns-query?dns={}", base64url(message)), Vec::new())
}

/// Encodes base64url without padding.
pub(crate) fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for at in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * at) & 63) as usize]));
        }
    }
    text
}
