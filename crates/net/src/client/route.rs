//! Routes to upstreams over streams, and the opening of a stream.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Weak};

use engine::tls::TlsClient;
use engine::{Exchange, HttpMethod, PoolOwner, UnwantedReplies};
use quic::{Asking, Protocol};
use tokio::net::{TcpSocket, TcpStream, UnixStream};
use transport::byte_streams::Duplex;
use transport::tls::Client;

/// Weak reference to the owner of pooled connections: a TLS configuration or a [`PoolOwner`].
pub(crate) type WeakOwner = Weak<dyn Any + Send + Sync>;

/// Address of an upstream, and how to connect to it. Routes with different owners are different, so that they share no
/// connections.
#[derive(Clone)]
pub(crate) struct Route {
    pub(super) to: SocketAddr,
    /// Path of a Unix socket to connect to instead of `to`.
    unix_path: Option<Box<str>>,
    pub(super) source: Option<IpAddr>,
    /// Method of requests over HTTPS. It is the same for all queries with the same TLS configuration.
    method: HttpMethod,
    tls: Option<TlsClient>,
    owner: Option<PoolOwner>,
    /// Counters of the upstream. They are those of the first exchange that has this route.
    pub(super) unwanted: Option<Arc<UnwantedReplies>>,
}

/// Identity of a [`Route`]. It does not keep the owner alive.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct RouteKey {
    to: SocketAddr,
    unix_path: Option<Box<str>>,
    source: Option<IpAddr>,
    /// Address of the owner in memory, or 0. It is unique while somebody keeps a reference to the owner, even a weak
    /// one.
    owner: usize,
}

impl Route {
    pub(crate) fn new(exchange: &Exchange<'_>) -> Route {
        Route {
            to: exchange.to,
            unix_path: exchange.unix_path.map(Box::from),
            source: exchange.connections.source,
            method: exchange.method,
            tls: exchange.tls.cloned(),
            owner: exchange.owner.cloned(),
            unwanted: exchange.unwanted.cloned(),
        }
    }

    pub(crate) fn key(&self) -> RouteKey {
        let Route { to, ref unix_path, source, .. } = *self;
        RouteKey { to, unix_path: unix_path.clone(), source, owner: self.owner_address() }
    }

    /// Returns a weak reference to the owner. It keeps the address in [`RouteKey`] allocated, and tells if the owner
    /// still exists.
    pub(crate) fn weak_owner(&self) -> Option<WeakOwner> {
        self.shared().map(Arc::downgrade)
    }

    /// Returns the TLS configuration for a protocol over QUIC, and the name that the certificate must have.
    pub(super) fn quic(&self, protocol: Protocol) -> io::Result<(Arc<rustls::ClientConfig>, String)> {
        let found = Client::of(self.tls()?)?.quic(self.to.ip(), protocol.alpn());
        found.ok_or_else(|| io::Error::other("unknown protocol over QUIC"))
    }

    /// Returns the protocol on the streams of a connection over QUIC.
    pub(super) fn asking(&self, protocol: Protocol) -> io::Result<Asking> {
        Ok(match protocol {
            Protocol::Doq => Asking::Doq,
            Protocol::Http3 => Asking::Http3 {
                authority: Client::of(self.tls()?)?.authority(self.to),
                is_get: self.method == HttpMethod::Get,
            },
        })
    }

    /// Returns the TLS configuration. Protocols that need one never fall back to clear text.
    fn tls(&self) -> io::Result<&TlsClient> {
        self.tls.as_ref().ok_or_else(|| io::Error::other("no TLS configuration"))
    }

    fn shared(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        let tls = self.tls.as_ref().map(|tls| &tls.0);
        tls.or(self.owner.as_ref().map(|owner| &owner.0))
    }

    fn owner_address(&self) -> usize {
        self.shared().map_or(0, |shared| Arc::as_ptr(shared).cast::<()>().addr())
    }

    fn identity(&self) -> (SocketAddr, Option<&str>, Option<IpAddr>, usize) {
        (self.to, self.unix_path.as_deref(), self.source, self.owner_address())
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Route) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for Route {}

impl Hash for Route {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity().hash(state);
    }
}

/// Connects. Returns the local address, if the system knows it, and the stream.
pub(super) async fn connect(route: &Route) -> io::Result<(Option<SocketAddr>, Box<dyn Duplex>)> {
    let stream = connect_tcp(route).await?;
    let local = stream.local_addr().ok();
    let Some(tls) = &route.tls else { return Ok((local, Box::new(stream))) };
    Ok((local, Box::new(Client::of(tls)?.connect(stream, route.to.ip()).await?)))
}

/// Connection to an upstream over HTTPS.
pub(super) struct ConnectedHttps {
    pub(super) stream: Box<dyn Duplex>,
    /// True if the upstream has chosen HTTP/2, false for HTTP/1.1.
    pub(super) is_http2: bool,
    /// Host and port of the URLs.
    pub(super) authority: String,
    /// Local address, if the system knows it.
    pub(super) local: Option<SocketAddr>,
}

/// Connects to an upstream over HTTPS.
pub(super) async fn connect_https(route: &Route) -> io::Result<ConnectedHttps> {
    let tls = Client::of(route.tls()?)?;
    let stream = connect_tcp(route).await?;
    let local = stream.local_addr().ok();
    let (stream, is_http2) = tls.connect_https(stream, route.to.ip()).await?;
    Ok(ConnectedHttps { stream: Box::new(stream), is_http2, authority: tls.authority(route.to), local })
}

/// Connects to an upstream over HTTP/2.
pub(crate) async fn connect_http2(route: &Route) -> io::Result<Box<dyn Duplex>> {
    match &route.unix_path {
        Some(path) => http2_over(UnixStream::connect(&**path).await?, route).await,
        None => http2_over(connect_tcp(route).await?, route).await,
    }
}

async fn http2_over<S: Duplex + 'static>(stream: S, route: &Route) -> io::Result<Box<dyn Duplex>> {
    let Some(tls) = &route.tls else { return Ok(Box::new(stream)) };
    Ok(Box::new(Client::of(tls)?.connect_http2(stream, route.to.ip()).await?))
}

async fn connect_tcp(route: &Route) -> io::Result<TcpStream> {
    let socket = if route.to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = route.source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    let stream = socket.connect(route.to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
