//! Connections of clients, up to their first query: accepted, told apart by what a proxy says, greeted with TLS.
//! How queries come after that is the matter of the room that is called then.

use std::io::{self, Cursor};
use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::Scheme;
use engine::setup::ProxyHeader;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::connected::Client;
use crate::endpoint::{Closing, Endpoint, Stage};
use crate::proxy::{Start, accept, look};
use crate::shared::Shared;
use crate::{grpc, tcp, tls};

/// How long a client may take to greet.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait before accepting again when the system has no more descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Serves a listening socket until the worker closes it.
pub(crate) async fn serve(shared: Rc<Shared>, endpoint: Rc<Endpoint>, listener: TcpListener) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            // No descriptor is left, most likely: the next client gets that of another.
            shared.connections.evict_one();
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(local) = stream.local_addr() else { continue };
        let Some(client) = Client::new(&shared, &endpoint, peer, local) else {
            shared.count(shared.limits.callers);
            continue;
        };
        tokio::task::spawn_local(client.serve_unless_evicted(stream));
    }
}

impl Client {
    async fn serve_unless_evicted(self, stream: TcpStream) {
        let (connection, caller) = (Arc::clone(&self.connection), self.caller.clone());
        let evicted = async {
            match &caller {
                Some(caller) => caller.evicted().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = connection.evicted() => {}
            () = evicted => {}
            // A client that went away is no error of ours.
            _ = self.serve(stream) => {}
        }
    }

    /// Hears what a proxy says and greets the client, where there are proxies and TLS, and serves it.
    async fn serve(mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let closing = self.endpoint.closing();
        let mut early = Vec::new();
        if !unless_closed(closing.clone(), self.read_proxy_header(&mut stream, &mut early)).await? {
            return Ok(());
        }
        let Some(tls) = self.endpoint.tls(&self.shared) else {
            return match self.scheme {
                Scheme::Grpc => grpc::serve(self, rejoined(early, stream)).await,
                _ => tcp::serve(self, stream, early).await,
            };
        };
        let acceptor = tls::acceptor(&*tls, self.scheme == Scheme::Grpc);
        let acceptor = acceptor.ok_or_else(|| io::Error::other("TLS is not of this process"))?;
        let stream = rejoined(early, stream);
        let greeted = async { timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await? };
        let mut stream = unless_closed(closing, greeted).await?;
        if self.scheme == Scheme::Grpc {
            return grpc::serve(self, stream).await;
        }
        let patience = self.limits.write;
        tcp::serve(self, &mut stream, Vec::new()).await?;
        timeout(patience, stream.shutdown()).await?
    }

    /// Takes what a proxy says before the first query, if somebody looks for it; says whether the client is served.
    async fn read_proxy_header(&mut self, stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let Some(policy) = &self.listening.proxy else { return Ok(true) };
        let deadline = Instant::now() + self.limits.read;
        let said = (policy.0)(self.path.peer.ip().to_canonical());
        if said == ProxyHeader::Skip {
            return Ok(true);
        }
        loop {
            match look(buffer, true) {
                Start::Bare => return Ok(true),
                Start::Broken => return Ok(false),
                Start::Header(length, ends) => {
                    buffer.drain(..length);
                    let Some(path) = accept(said, ends, self.path) else { return Ok(false) };
                    self.comes_from(path);
                    return Ok(true);
                }
                Start::Partial if timeout_at(deadline, stream.read_buf(buffer)).await?? == 0 => return Ok(false),
                Start::Partial => {}
            }
        }
    }
}

/// A stream of which some octets were read early.
fn rejoined(early: Vec<u8>, stream: TcpStream) -> impl AsyncRead + AsyncWrite + Unpin + 'static {
    let (reader, writer) = stream.into_split();
    tokio::io::join(Cursor::new(early).chain(reader), writer)
}

/// Does what comes before the first query, which nobody waits for once the address is served no more.
async fn unless_closed<T>(mut closing: Closing, opening: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::select! {
        biased;
        outcome = opening => outcome,
        _ = closing.wait_for(|stage| *stage >= Stage::Ending) => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}
