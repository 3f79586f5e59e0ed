//! The pages that directives ask for, over HTTP: one server an address, which a reload keeps.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use engine::metrics::{Counter, Counters, Registry};
use engine::setup::{Page, PageContent};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use net::{Connection, ConnectionTable, Limits, TableLimits};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use crate::compress::gzip;
use crate::deadlines::{HEAD_TIMEOUT, Phases, Watched};
use crate::sockets::announce;

/// Connections to one address at a time, and of one client: probes, a scraper or two, a person. More than these are
/// clients that hold connections for nothing, so the idlest one goes.
const TABLE: TableLimits = TableLimits { open_max: 512, per_address_max: 128, buffered_max: 0 };
/// Bytes of the longest request.
const REQUEST_MAX: usize = 16 * 1024;
/// How soon a port that another process has is tried again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// Connections that may wait to be accepted: as many as the system allows, so that a probe is not turned away at its door
/// while others connect in large numbers.
const BACKLOG: i32 = 4096;
/// How long to wait before accepting again when the system refuses.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Connections accepted before those that are open get their turn: fewer than [`TABLE`] holds of one client.
const ACCEPTED_AT_ONCE: usize = 64;

type Pages = Rc<RefCell<HashMap<Cow<'static, str>, Page>>>;

/// The servers, by the address that directives name.
pub(crate) struct Admin {
    servers: HashMap<String, Server>,
    registry: Arc<Registry>,
}

struct Server {
    pages: Pages,
    handle: AbortHandle,
}

/// Sockets for addresses that have no server yet.
pub(crate) struct Prepared {
    /// Without a socket if the port is taken: it is tried again.
    listeners: Vec<(String, Option<TcpListener>)>,
}

/// What to do about an address that another process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfTaken {
    /// Go on without its pages, and try again: at the start names matter more than pages.
    TryAgain,
    /// Fail: a reload leaves the pages that are served as they are.
    Fail,
}

impl Admin {
    /// Creates an admin without servers, which counts in `registry`.
    pub(crate) fn new(registry: &Arc<Registry>) -> Admin {
        Admin { servers: HashMap::new(), registry: Arc::clone(registry) }
    }

    /// Opens the sockets that `pages` need and that are not open yet; nothing else changes.
    ///
    /// # Errors
    /// The address that cannot be listened on, and what the system said.
    pub(crate) fn prepare(&self, pages: &[Page], if_taken: IfTaken) -> Result<Prepared, String> {
        let mut listeners: Vec<(String, Option<TcpListener>)> = Vec::new();
        for page in pages {
            let known = self.servers.contains_key(&page.address);
            if !known && !listeners.iter().any(|(address, _)| *address == page.address) {
                let fail = |error| format!("listen tcp {}: {error}", page.address);
                let listener = match listen(&page.address) {
                    Err(error) if if_taken == IfTaken::TryAgain && error.kind() == io::ErrorKind::AddrInUse => {
                        report_taken(&page.address);
                        None
                    }
                    listener => Some(listener.map_err(fail)?),
                };
                if let Some(listener) = &listener {
                    announce(&page.address, listener.local_addr().map_err(fail)?);
                }
                listeners.push((page.address.clone(), listener));
            }
        }
        Ok(Prepared { listeners })
    }

    /// Serves these pages and no others.
    ///
    /// # Errors
    /// If a socket cannot be given to the runtime.
    pub(crate) fn serve(&mut self, prepared: Prepared, pages: Vec<Page>) -> io::Result<()> {
        for (address, listener) in prepared.listeners {
            let server = Server::start(&address, listener, &self.registry)?;
            self.servers.insert(address, server);
        }
        self.servers.retain(|address, server| {
            server.pages.borrow_mut().clear();
            let needed = pages.iter().any(|page| page.address == *address);
            if !needed {
                server.handle.abort();
            }
            needed
        });
        for mut page in pages {
            if let Some(server) = self.servers.get(&page.address) {
                let mut known = server.pages.borrow_mut();
                // Who asks for TLS is not served without because somebody else does not ask.
                page.tls = page.tls.or_else(|| known.values().find_map(|page| page.tls.clone()));
                known.insert(page.path.clone(), page);
            }
        }
        Ok(())
    }
}

impl Server {
    fn start(address: &str, listener: Option<TcpListener>, registry: &Registry) -> io::Result<Server> {
        let (pages, address) = (Pages::default(), address.to_owned());
        let listener = listener.map(tokio::net::TcpListener::from_std).transpose()?;
        let door =
            Door { pages: Rc::clone(&pages), table: ConnectionTable::new(TABLE), evictions: Evictions::new(registry) };
        let serving = async move {
            let listener = match listener {
                Some(listener) => listener,
                None => listen_until_free(&address).await,
            };
            door.accept(listener).await;
        };
        Ok(Server { pages, handle: tokio::task::spawn_local(serving).abort_handle() })
    }
}

/// Says that a page cannot be served for now. Names are answered all the same.
fn report_taken(address: &str) {
    let port = address.rsplit(':').next().unwrap_or_default();
    tracing::error!(
        target: "portolan",
        "listen tcp {address}: address already in use; its pages are missing until it is free. Find the process that has it \
         with `ss -ltnp 'sport = :{port}'`"
    );
}

/// Tries again and again to listen on an address that another process has.
async fn listen_until_free(address: &str) -> tokio::net::TcpListener {
    loop {
        tokio::time::sleep(LISTEN_AGAIN).await;
        let Ok(listener) = listen(address) else { continue };
        let bound = listener.local_addr();
        if let (Ok(listener), Ok(bound)) = (tokio::net::TcpListener::from_std(listener), bound) {
            announce(address, bound);
            return listener;
        }
    }
}

fn listen(address: &str) -> io::Result<TcpListener> {
    let wildcard = address.strip_prefix(':').map(|port| format!("[::]:{port}"));
    let mut candidates: Vec<SocketAddr> = match &wildcard {
        Some(any) => any.to_socket_addrs()?.chain(address.replacen(':', "0.0.0.0:", 1).to_socket_addrs()?).collect(),
        None => address.to_socket_addrs()?.collect(),
    };
    // `localhost` is both families; people and probes mean the older one.
    candidates.sort_by_key(|candidate| wildcard.is_none() && candidate.is_ipv6());
    let mut outcome = Err(io::ErrorKind::AddrNotAvailable.into());
    for candidate in candidates {
        outcome = bind(candidate);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    // Two processes may share the port while one takes over from the other.
    socket.set_reuse_port(true)?;
    if address.ip().is_unspecified() && address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Admits the clients of one address.
struct Door {
    pages: Pages,
    table: Arc<ConnectionTable>,
    evictions: Evictions,
}

impl Door {
    async fn accept(&self, listener: tokio::net::TcpListener) {
        loop {
            // Those who are in come before those at the door: else a probe could be evicted before it is read.
            tokio::task::yield_now().await;
            let Ok((stream, peer)) = listener.accept().await else {
                // No descriptor is left, most likely: the next client gets that of another.
                self.table.evict_one();
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            self.admit(stream, peer);
            for _ in 1..ACCEPTED_AT_ONCE {
                let waiting = poll_fn(|context| Poll::Ready(listener.poll_accept(context))).await;
                let Poll::Ready(Ok((stream, peer))) = waiting else { break };
                self.admit(stream, peer);
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        let (connection, evicted) = self.table.admit(peer.ip());
        if evicted {
            self.evictions.count();
        }
        let pages = Rc::clone(&self.pages);
        tokio::task::spawn_local(async move {
            tokio::select! {
                biased;
                () = connection.evicted() => {}
                // A client that goes away is no error of ours.
                _ = serve(stream, &pages, &connection) => {}
            }
        });
    }
}

/// Counts connections that were evicted for others.
struct Evictions(Counters, Counter);

impl Evictions {
    fn new(registry: &Registry) -> Evictions {
        Evictions(registry.counters(), Limits::new(registry).pages)
    }

    fn count(&self) {
        self.0.count(self.1);
    }
}

/// Serves one client, within TLS if the pages want it so.
async fn serve(stream: TcpStream, pages: &Pages, connection: &Connection) -> io::Result<()> {
    let tls = pages.borrow().values().find_map(|page| page.tls.clone());
    match tls {
        None => serve_http(stream, pages, connection).await,
        Some(tls) => {
            let greeted = tokio::time::timeout(HEAD_TIMEOUT, net::accept_tls(&*tls, stream)).await;
            serve_http(greeted.map_err(|_| io::ErrorKind::TimedOut)??, pages, connection).await
        }
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    pages: &Pages,
    connection: &Connection,
) -> io::Result<()> {
    let phases = Phases::new();
    let service = service_fn(|request| {
        connection.touch();
        phases.has_request();
        async {
            let response = answer(pages, request).await;
            phases.has_response();
            response
        }
    });
    let stream = TokioIo::new(Watched::new(stream, phases.clone()));
    // The deadlines are those of `phases`.
    let http =
        http1::Builder::new().header_read_timeout(None).max_buf_size(REQUEST_MAX).serve_connection(stream, service);
    tokio::select! {
        ended = http => ended.map_err(io::Error::other),
        () = phases.overdue() => Err(io::ErrorKind::TimedOut.into()),
    }
}

async fn answer(pages: &Pages, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let make = pages.borrow().get(request.uri().path()).map(|page| Arc::clone(&page.make));
    let content = match make {
        Some(make) if matches!(*request.method(), Method::GET | Method::HEAD) => {
            make(request.uri().query().unwrap_or_default()).await
        }
        Some(_) => PageContent::text(405, "Method Not Allowed\n"),
        None => PageContent::text(404, "404 page not found\n"),
    };
    let packed = gzip(request.headers(), content.content_type, &content.body);
    let encoding = packed.is_some().then_some(HeaderValue::from_static("gzip"));
    let body = packed.unwrap_or_else(|| content.body.into_owned());
    let mut response = Response::new(Full::new(Bytes::from(body)));
    response.headers_mut().extend(encoding.map(|encoding| (CONTENT_ENCODING, encoding)));
    *response.status_mut() = StatusCode::from_u16(content.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content.content_type));
    Ok(response)
}
