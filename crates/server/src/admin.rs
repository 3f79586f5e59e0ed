//! HTTP servers for the pages of directives, such as `/metrics` and `/health`.
//!
//! There is one server per address. A reload keeps a server whose address is still needed and replaces its pages. Each
//! server bounds its connections with a [`Gate`], and each connection with the deadlines of [`http_server`].

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::setup::{Page, PageContent};
use host::boxed;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use metrics::Registry;
use net::{Connection, TableLimits};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::compress::gzip;
use crate::sockets::announce;
use process::deadlines::HEAD_TIMEOUT;
use process::http_listener::{Evictions, Gate};
use process::http_server;

/// Limits of open connections per server and per client address. Probes, scrapers and people need far fewer; beyond the
/// limits, the connection that has been idle longest is closed.
pub(crate) const TABLE: TableLimits = TableLimits { open_max: 512, per_address_max: 128, buffered_max: 0 };
/// Interval between attempts to bind an address that another process uses.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// Length of the accept queue: the usual maximum of Linux, so that a flood of connections does not keep a probe out.
const BACKLOG: i32 = 4096;

/// Connections to accept before the open ones run: fewer than [`TABLE`] allows per client.
const ACCEPTED_AT_ONCE: usize = 64;

type Pages = Rc<RefCell<HashMap<Cow<'static, str>, Page>>>;

/// HTTP servers, by the address that the directives name.
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
    /// Addresses with their sockets; `None` if the address is in use, so that the server must try again.
    listeners: Vec<(String, Option<TcpListener>)>,
}

/// Reaction to an address that another process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfTaken {
    /// Continue without the pages and try again: at startup, serving DNS is more important.
    TryAgain,
    /// Fail: a failed reload keeps the previous pages.
    Fail,
}

/// Address for HTTP pages that cannot be bound. The operator must free the address or name another one.
#[derive(Debug, thiserror::Error)]
#[error("listen tcp {address}: {}", host::errors::describe(.error))]
pub(crate) struct PageListenError {
    address: String,
    #[source]
    error: io::Error,
}

impl PageListenError {
    pub(crate) fn new(address: String, error: io::Error) -> PageListenError {
        PageListenError { address, error }
    }
}

impl Admin {
    /// Creates a value without servers, which counts evictions in `registry`.
    pub(crate) fn new(registry: &Arc<Registry>) -> Admin {
        Admin { servers: HashMap::new(), registry: Arc::clone(registry) }
    }

    /// Opens the sockets that `pages` need and that are not open yet, without any other effect.
    ///
    /// # Errors
    /// Fails if an address could not be bound, or its socket could not be registered with the runtime.
    pub(crate) fn prepare(&self, pages: &[Page], if_taken: IfTaken) -> Result<Prepared, PageListenError> {
        let mut listeners: Vec<(String, Option<TcpListener>)> = Vec::new();
        for page in pages {
            let known = self.servers.contains_key(&page.address);
            if !known && !listeners.iter().any(|(address, _)| *address == page.address) {
                let fail = |error| PageListenError { address: page.address.clone(), error };
                let listener = match listen(&page.address) {
                    Err(error) if if_taken == IfTaken::TryAgain && error.kind() == io::ErrorKind::AddrInUse => {
                        report_taken(&page.address);
                        None
                    }
                    listener => Some(listener.map_err(fail)?),
                };
                if let Some(listener) = &listener {
                    let paths = pages.iter().filter(|other| other.address == page.address).map(|other| &*other.path);
                    announce_pages(&page.address, paths, listener.local_addr().map_err(fail)?);
                }
                listeners.push((page.address.clone(), listener));
            }
        }
        Ok(Prepared { listeners })
    }

    /// Serves exactly these pages, and stops the servers that have none. It returns no error, because the generation of
    /// these pages serves already.
    pub(crate) fn serve(&mut self, prepared: Prepared, pages: Vec<Page>) {
        for (address, listener) in prepared.listeners {
            let server = Server::start(&address, listener, &self.registry);
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
                // If one page of an address has TLS, all of them have it.
                page.tls = page.tls.or_else(|| known.values().find_map(|page| page.tls.clone()));
                known.insert(page.path.clone(), page);
            }
        }
    }
}

impl Server {
    fn start(address: &str, listener: Option<TcpListener>, registry: &Registry) -> Server {
        let (pages, address) = (Pages::default(), address.to_owned());
        let gate = Gate::new(TABLE, Rc::new(Evictions::new(registry, |limits| limits.pages)));
        let served = Rc::clone(&pages);
        let serving = async move {
            let listener = match listener {
                Some(listener) => listener,
                None => listen_until_free(&address, &served).await,
            };
            let accepted = |stream, from| {
                let pages = Rc::clone(&served);
                gate.admit(from, async move |connection| serve(stream, &pages, connection).await);
            };
            gate.run(&listener, ACCEPTED_AT_ONCE, accepted).await;
        };
        Server { pages, handle: tokio::task::spawn_local(boxed(serving)).abort_handle() }
    }
}

/// Logs that the pages of an address are not available yet.
fn report_taken(address: &str) {
    let port = address.rsplit(':').next().unwrap_or_default();
    tracing::error!(
        target: "portolan",
        "listen tcp {address}: address already in use; its pages are missing until the address is free. Find the \
         process that uses it with `ss -ltnp 'sport = :{port}'`"
    );
}

/// Logs the address of an HTTP server and the paths of its pages, such as `/metrics`.
fn announce_pages<'a>(address: &str, paths: impl Iterator<Item = &'a str>, bound: SocketAddr) {
    let mut paths: Vec<&str> = paths.collect();
    paths.sort_unstable();
    // Several server blocks may have the same page.
    paths.dedup();
    announce(&format!("{address} ({})", paths.join(", ")), bound);
}

/// Retries until it can listen on an address that another process uses.
async fn listen_until_free(address: &str, pages: &Pages) -> TcpListener {
    loop {
        tokio::time::sleep(LISTEN_AGAIN).await;
        let Ok(listener) = listen(address) else { continue };
        if let Ok(bound) = listener.local_addr() {
            announce_pages(address, pages.borrow().keys().map(|path| &**path), bound);
            return listener;
        }
    }
}

/// Binds to an address and registers the socket with the runtime of this thread.
pub(crate) fn listen(address: &str) -> io::Result<TcpListener> {
    let mut candidates = match address.strip_prefix(':') {
        Some(port) => {
            [stub_resolver::resolve(&format!("[::]:{port}"))?, stub_resolver::resolve(&format!("0.0.0.0:{port}"))?]
                .concat()
        }
        None => stub_resolver::resolve(address)?,
    };
    // `localhost` has addresses of both families; IPv4 comes first, because probes and people expect it.
    host::sorting::sort_by_key(&mut candidates, |candidate| !address.starts_with(':') && candidate.is_ipv6());
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
    // During an upgrade, the old and the new process share the port.
    socket.set_reuse_port(true)?;
    if address.ip().is_unspecified() && address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&SockAddr::from(address))?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// Serves one client, over TLS if the pages require it.
async fn serve(stream: TcpStream, pages: &Pages, connection: &Connection) -> io::Result<()> {
    let tls = pages.borrow().values().find_map(|page| page.tls.clone());
    match tls {
        None => http_server::serve(Box::new(stream), connection, |request| answer(pages, request)).await,
        Some(tls) => {
            let greeted = tokio::time::timeout(HEAD_TIMEOUT, transport::tls::accept_tls(&*tls, stream)).await;
            let stream = greeted.map_err(|_| io::ErrorKind::TimedOut)??;
            http_server::serve(Box::new(stream), connection, |request| answer(pages, request)).await
        }
    }
}

async fn answer(pages: &Pages, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let head = http_server::without_body(request).await;
    let make = pages.borrow().get(head.uri.path()).map(|page| Arc::clone(&page.make));
    let content = match make {
        Some(make) if matches!(head.method, Method::GET | Method::HEAD) => {
            make(head.uri.query().unwrap_or_default()).await
        }
        Some(_) => PageContent::text(405, "Method Not Allowed\n"),
        None => PageContent::text(404, "404 page not found\n"),
    };
    let compressed = gzip(&head.headers, content.content_type, &content.body);
    let encoding = compressed.is_some().then_some(HeaderValue::from_static("gzip"));
    let body = compressed.unwrap_or_else(|| content.body.into_owned());
    let mut response = Response::new(Full::new(Bytes::from(body)));
    response.headers_mut().extend(encoding.map(|encoding| (CONTENT_ENCODING, encoding)));
    *response.status_mut() = StatusCode::from_u16(content.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content.content_type));
    response
}
