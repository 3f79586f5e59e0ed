//! TCP listener: accepts connections, reads PROXY headers and performs TLS handshakes. Module `tcp`,
//! `grpc` or `https` then serves the queries.

use std::io::{self, Cursor};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::{Clock, ProxyHeader, ProxyTlvs, Scheme};
use host::invariant::Expected as _;
use hyper::Version;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};
use transport::MonotonicClock;
use transport::byte_streams::Duplex;
use transport::proxy::{HeaderScan, scan};
use transport::spare::{Freed, Spare};
use transport::tls::{self, StreamProtocol};

use crate::connected::Client;
use crate::endpoint::{Closing, Endpoint, Stage};
use crate::proxy_policy::apply_policy;
use crate::shared::Shared;
use crate::{grpc, https, tcp};

/// Timeout of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Future that serves an open connection. It is boxed, so that a connection of one scheme needs no memory for another.
type Serving = Pin<Box<dyn Future<Output = io::Result<()>>>>;

/// Serves a listening socket until the worker closes it.
pub(crate) async fn serve(shared: Rc<Shared>, endpoint: Rc<Endpoint>, listener: TcpListener) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let spare = shared.spare();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            make_room(&shared, &spare, &listener).await;
            continue;
        };
        let Ok(local) = stream.local_addr() else { continue };
        let Some(client) = Client::new(&shared, &endpoint, peer, local) else {
            shared.count(shared.limits.callers);
            continue;
        };
        let (serving, spare) = (client.serve_unless_evicted(stream), Rc::clone(&spare));
        tokio::task::spawn_local(async move {
            serving.await;
            spare.refill();
        });
    }
}

/// Makes room for the next connection after an accept has failed, most likely for lack of a file descriptor. The spare
/// one serves the next client. If it is in use, closing an idle connection frees another.
async fn make_room(shared: &Shared, spare: &Spare, listener: &impl AsFd) {
    let freed = spare.free_one_now(listener);
    if freed != Freed::NotNeeded {
        shared.count(shared.limits.descriptors);
    }
    if freed == Freed::Nothing {
        shared.connections.evict_one();
    }
    if freed != Freed::One {
        spare.pause().await;
    }
}

impl Client {
    /// Opens the connection and serves the client.
    ///
    /// Each of the two has its own memory, and that for opening is free while the client is served. In one future, an
    /// idle connection would take what a TLS handshake needs.
    fn serve_unless_evicted(self, stream: TcpStream) -> impl Future<Output = ()> {
        let (connection, caller) = (Arc::clone(&self.connection), self.caller.clone());
        let opening: Pin<Box<dyn Future<Output = io::Result<Serving>>>> = Box::pin(self.open(stream));
        async move {
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
                // The client closing its connection is not a server error.
                _ = served(opening) => {}
            }
        }
    }

    /// Reads the PROXY header and performs the TLS handshake, where configured. Returns the future that serves the
    /// client.
    ///
    /// # Errors
    /// The connection must be closed.
    async fn open(mut self, mut stream: TcpStream) -> io::Result<Serving> {
        stream.set_nodelay(true)?;
        let closing = self.endpoint.closing();
        let mut early = Vec::new();
        if !unless_closed(closing.clone(), self.read_proxy_header(&mut stream, &mut early)).await? {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let Some(tls) = self.endpoint.tls(&self.shared) else {
            return Ok(match self.scheme {
                Scheme::Grpc | Scheme::Https => self.serve_http(Box::new(rejoined(early, stream)), Version::HTTP_11),
                _ => Box::pin(tcp::serve(self, stream, early)),
            });
        };
        if !self.may_connect() {
            self.shared.count(self.shared.limits.rates);
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let acceptor = tls::acceptor(&*tls, self.inside_tls());
        let acceptor = acceptor.ok_or_else(|| io::Error::other("unknown TLS implementation"))?;
        let stream = rejoined(early, stream);
        let greeted = async { timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await? };
        let stream = unless_closed(closing, greeted).await?;
        if matches!(self.scheme, Scheme::Grpc | Scheme::Https) {
            let is_http2 = stream.alpn_protocol() == Some(tls::HTTP2);
            return Ok(self.serve_http(Box::new(stream), if is_http2 { Version::HTTP_2 } else { Version::HTTP_11 }));
        }
        Ok(Box::pin(self.serve_inside_tls(stream)))
    }

    /// Serves DNS over TLS, and ends the stream in order.
    async fn serve_inside_tls(self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let patience = self.limits.write;
        tcp::serve(self, &mut stream, Vec::new()).await?;
        timeout(patience, stream.shutdown()).await?
    }

    /// Returns true if the client has not opened too many connections within a second.
    fn may_connect(&self) -> bool {
        let rate = self.listening.encryption.connection_rate;
        self.shared.rates.permit(self.peer.address.ip(), true, rate, MonotonicClock.now())
    }

    /// Serves gRPC, or DNS over HTTPS with this version.
    fn serve_http(self, stream: Box<dyn Duplex>, version: Version) -> Serving {
        match self.scheme {
            Scheme::Grpc => Box::pin(grpc::serve(self, stream)),
            _ => Box::pin(https::serve(self, stream, version)),
        }
    }

    /// Returns the protocol that clients use inside TLS.
    const fn inside_tls(&self) -> StreamProtocol {
        match self.scheme {
            Scheme::Grpc => StreamProtocol::Http2,
            Scheme::Https => StreamProtocol::Https,
            _ => StreamProtocol::Plain,
        }
    }

    /// Reads the PROXY header, if the address is configured for one. Returns false if the connection must be closed.
    async fn read_proxy_header(&mut self, stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<bool> {
        let Some(policy) = &self.listening.proxy else { return Ok(true) };
        let deadline = Instant::now() + self.limits.read;
        let verdict = (policy.of)(self.peer.address.ip().to_canonical());
        if verdict == ProxyHeader::Skip {
            return Ok(true);
        }
        loop {
            match scan(buffer, true) {
                HeaderScan::NoHeader => return Ok(true),
                HeaderScan::Malformed => return Ok(false),
                HeaderScan::Header(length, ends) => {
                    let header = buffer.get(..length).expected("a header that was found").unwrap_or_default();
                    let applied = apply_policy(policy, verdict, ends, header, self.peer.clone());
                    buffer.drain(..length);
                    let Some(peer) = applied else { return Ok(false) };
                    if peer.tlvs == ProxyTlvs::TooLong {
                        self.shared.count(self.shared.limits.proxy_tlvs);
                    }
                    self.comes_from(peer);
                    return Ok(true);
                }
                HeaderScan::Incomplete if timeout_at(deadline, stream.read_buf(buffer)).await?? == 0 => {
                    return Ok(false);
                }
                HeaderScan::Incomplete => {}
            }
        }
    }
}

/// Serves a connection after it has been opened.
async fn served(opening: Pin<Box<dyn Future<Output = io::Result<Serving>>>>) -> io::Result<()> {
    let serving = opening.await?;
    serving.await
}

/// Joins bytes that were read early with the rest of their stream.
fn rejoined(early: Vec<u8>, stream: TcpStream) -> impl AsyncRead + AsyncWrite + Unpin + 'static {
    let (reader, writer) = stream.into_split();
    tokio::io::join(Cursor::new(early).chain(reader), writer)
}

/// Runs the opening of a connection unless the address begins to shut down.
async fn unless_closed<T>(mut closing: Closing, opening: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::select! {
        biased;
        outcome = opening => outcome,
        _ = closing.reaches(Stage::Ending) => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}
