//! The pages that directives ask for, over HTTP: one server an address, which a reload keeps.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use engine::setup::{Page, PageContent};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use crate::compress::gzip;
use crate::sockets::announce;

/// Connections to one address at a time: probes, a scraper or two, a person.
const CONNECTIONS_MAX: usize = 64;
/// How long a client may take to send its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Octets of the longest request.
const REQUEST_MAX: usize = 16 * 1024;
/// How soon a port that another process has is tried again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);
/// Connections that may wait to be accepted.
const BACKLOG: i32 = 64;

type Pages = Rc<RefCell<HashMap<Cow<'static, str>, Page>>>;

/// The servers, by the address that directives name.
#[derive(Default)]
pub(crate) struct Admin {
    servers: HashMap<String, Server>,
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
            let server = Server::start(&address, listener)?;
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
    fn start(address: &str, listener: Option<TcpListener>) -> io::Result<Server> {
        let (pages, address) = (Pages::default(), address.to_owned());
        let listener = listener.map(tokio::net::TcpListener::from_std).transpose()?;
        let for_task = Rc::clone(&pages);
        let serving = async move {
            let listener = match listener {
                Some(listener) => listener,
                None => listen_until_free(&address).await,
            };
            accept(listener, for_task).await;
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

async fn accept(listener: tokio::net::TcpListener, pages: Pages) {
    let open = Rc::new(std::cell::Cell::new(0));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        if open.get() >= CONNECTIONS_MAX {
            continue;
        }
        open.set(open.get() + 1);
        let (pages, open) = (Rc::clone(&pages), Rc::clone(&open));
        tokio::task::spawn_local(async move {
            // A client that goes away is no error of ours.
            let _ = serve(stream, &pages).await;
            open.set(open.get() - 1);
        });
    }
}

/// Serves one client, within TLS if the pages want it so.
async fn serve(stream: TcpStream, pages: &Pages) -> io::Result<()> {
    let tls = pages.borrow().values().find_map(|page| page.tls.clone());
    match tls {
        None => serve_http(stream, pages).await,
        Some(tls) => {
            let greeted = tokio::time::timeout(HEADER_TIMEOUT, net::accept_tls(&*tls, stream)).await;
            serve_http(greeted.map_err(|_| io::ErrorKind::TimedOut)??, pages).await
        }
    }
}

async fn serve_http(stream: impl AsyncRead + AsyncWrite + Unpin, pages: &Pages) -> io::Result<()> {
    let service = service_fn(|request| answer(pages, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(REQUEST_MAX)
        .serve_connection(TokioIo::new(stream), service);
    connection.await.map_err(io::Error::other)
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
