//! Thread that accepts connections and passes requests on.

use std::convert::Infallible;
use std::future;
use std::net::TcpListener;
use std::sync::Arc;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};
use tokio_rustls::TlsAcceptor;

use crate::answer::{Relaying, answer};
use crate::format::Format;
use crate::query::Query;
use crate::reply::{Body, Reply, status, whole};
use crate::tls::H2;
use crate::{Fault, ReceivedRequest, Shared};

/// Serves until `stopped` fires.
pub(crate) fn run(
    listener: TcpListener,
    acceptor: Option<&TlsAcceptor>,
    shared: &Arc<Shared>,
    stopped: oneshot::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        tokio::select! {
            () = accept(&listener, acceptor, shared) => {}
            _ = stopped => {}
        }
    });
}

async fn accept(listener: &tokio::net::TcpListener, acceptor: Option<&TlsAcceptor>, shared: &Arc<Shared>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let Some(open) = OpenConnection::new(shared) else { continue };
        stream.set_nodelay(true).unwrap();
        let acceptor = acceptor.cloned();
        tokio::spawn(async move {
            let mut broken = open.broken.clone();
            tokio::select! {
                biased;
                _ = broken.changed() => {}
                () = connection(stream, acceptor, &open.shared) => {}
            }
        });
    }
}

/// An open connection, registered in the shared state.
struct OpenConnection {
    shared: Arc<Shared>,
    broken: watch::Receiver<u64>,
    number: u64,
}

impl OpenConnection {
    /// Registers a connection. Returns `None` if the server is down.
    fn new(shared: &Arc<Shared>) -> Option<OpenConnection> {
        let mut state = shared.lock();
        if state.down {
            return None;
        }
        state.accepted += 1;
        let number = state.accepted;
        state.connections.insert(number);
        Some(OpenConnection { shared: Arc::clone(shared), broken: shared.broken.subscribe(), number })
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.shared.lock().connections.remove(&self.number);
        self.shared.activity.notify_all();
    }
}

async fn connection(stream: TcpStream, acceptor: Option<TlsAcceptor>, shared: &Arc<Shared>) {
    match acceptor {
        None => requests(stream, (false, false), shared).await,
        Some(acceptor) => {
            // A client that does not trust this server aborts the handshake.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let session = stream.get_ref().1;
            let certificate = session.peer_certificates().is_some();
            let is_http2 = session.alpn_protocol() == Some(H2);
            requests(stream, (certificate, is_http2), shared).await;
        }
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    (certificate, is_http2): (bool, bool),
    shared: &Arc<Shared>,
) {
    let service = service_fn(|request| {
        let shared = Arc::clone(shared);
        async move { Ok::<_, Infallible>(request_answer(request, certificate, &shared).await) }
    });
    // An error means that the client disconnected.
    let _ = if is_http2 {
        http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await
    } else {
        http1::Builder::new().serve_connection(TokioIo::new(stream), service).await
    };
}

async fn request_answer(request: Request<Incoming>, certificate: bool, shared: &Arc<Shared>) -> Response<Body> {
    let preferred = Format::preferred(header_of(&request, header::ACCEPT));
    let preferred = if shared.lock().json_only { Format::Json } else { preferred };
    reply(request, certificate, preferred, shared).await.response(preferred)
}

/// Returns false for a request for keys that does not accept a set of keys, as the real server does.
fn accepts(request: &Request<Incoming>, path: &str) -> bool {
    let accept = header_of(request, header::ACCEPT);
    path != "/openid/v1/jwks" || ["application/jwk-set+json", "*/*"].iter().any(|known| accept.contains(known))
}

async fn reply(request: Request<Incoming>, certificate: bool, preferred: Format, shared: &Arc<Shared>) -> Reply {
    let document = shared.lock().document(request.uri().path());
    match document {
        Some((_, Some(Fault::Stall))) => future::pending().await,
        Some(_) if !accepts(&request, request.uri().path()) => return status(406, None, "Not Acceptable"),
        Some((document, _)) => return whole(200, document),
        None => {}
    }
    let Some(query) = Query::parse(request.uri()) else { return status(404, None, "no such path") };
    let seen = ReceivedRequest {
        method: request.method().to_string(),
        name: query.name.clone(),
        resource: query.resource.clone(),
        namespace: query.namespace.clone(),
        query: query.parameters.clone(),
        authorization: header_of(&request, header::AUTHORIZATION).to_owned(),
        accept: header_of(&request, header::ACCEPT).to_owned(),
        accept_encoding: header_of(&request, header::ACCEPT_ENCODING).to_owned(),
        profile: header_of(&request, HeaderName::from_static("portolan-profile")).to_owned(),
        certificate,
        at: std::time::Instant::now(),
    };
    let (method, authorization) = (request.method().clone(), seen.authorization.clone());
    let accepts_gzip = seen.accept_encoding.contains("gzip");
    // If the client disconnects while it sends the object, the body is empty and the request is invalid.
    let object = if matches!(method, Method::POST | Method::PUT) {
        let bytes = request.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        match serde_json::from_slice(&bytes) {
            Ok(object) => object,
            Err(error) => return status(400, None, &error.to_string()),
        }
    } else {
        serde_json::Value::Null
    };
    let (fault, token, heartbeat) = {
        let mut state = shared.lock();
        state.seen.push(seen);
        (state.next_fault(&query.resource), state.token.clone(), state.heartbeat)
    };
    shared.activity.notify_all();
    if token.is_some_and(|token| authorization != format!("Bearer {token}")) {
        return status(401, None, "Unauthorized");
    }
    let relaying = heartbeat.map(|heartbeat| Relaying { heartbeat, accepts_gzip });
    answer(&method, query, object, (fault, relaying), preferred, shared).await
}

/// Returns a header; empty if absent.
fn header_of(request: &Request<Incoming>, name: HeaderName) -> &str {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
