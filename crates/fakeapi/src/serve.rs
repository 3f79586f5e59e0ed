//! The thread: accepts connections and hands requests over.

use std::convert::Infallible;
use std::net::TcpListener;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;

use crate::answer::{self, Body};
use crate::query::Query;
use crate::{Seen, Shared};

/// Serves until `stopped`.
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
        if shared.lock().down {
            continue;
        }
        stream.set_nodelay(true).unwrap();
        let (acceptor, shared) = (acceptor.cloned(), Arc::clone(shared));
        tokio::spawn(async move {
            let mut broken = shared.broken.subscribe();
            tokio::select! {
                () = connection(stream, acceptor, &shared) => {}
                _ = broken.changed() => {}
            }
        });
    }
}

async fn connection(stream: TcpStream, acceptor: Option<TlsAcceptor>, shared: &Arc<Shared>) {
    match acceptor {
        None => requests(stream, false, shared).await,
        Some(acceptor) => {
            // A client that does not trust this server ends the handshake.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let certificate = stream.get_ref().1.peer_certificates().is_some();
            requests(stream, certificate, shared).await;
        }
    }
}

async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin, certificate: bool, shared: &Arc<Shared>) {
    let service = service_fn(|request| {
        let shared = Arc::clone(shared);
        async move { Ok::<_, Infallible>(request_answer(&request, certificate, &shared).await) }
    });
    // An error here is a client that went away.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn request_answer(request: &Request<Incoming>, certificate: bool, shared: &Arc<Shared>) -> Response<Body> {
    let Some(query) = Query::parse(request.uri()) else { return answer::status(404, None, "no such path") };
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let seen = Seen {
        resource: query.resource.clone(),
        namespace: query.namespace.clone(),
        query: query.parameters.clone(),
        authorization: authorization.to_owned(),
        certificate,
    };
    let (fault, token) = {
        let mut state = shared.lock();
        state.seen.push(seen);
        (state.fault_of(&query.resource), state.token.clone())
    };
    shared.asked.notify_all();
    if token.is_some_and(|token| authorization != format!("Bearer {token}")) {
        return answer::status(401, None, "Unauthorized");
    }
    answer::answer(query, fault, shared).await
}
