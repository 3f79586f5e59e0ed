//! Client of the control API, for commands: finds the socket, sends a request and reads the response.

use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr as Name;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use control::{Endpoint, ErrorBody, Method};
use engine::tls::{ClientTls, Identity};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use transport::tls::Client;
use transport::{error_text, root_cause};

use super::answer::RESPONSE_MAX;
use super::listen::{ABSTRACT, PATH};
use crate::explain::offline::OfflineError;

/// Time in addition to that which the server allows itself.
const MARGIN: Duration = Duration::from_secs(4);
/// Maximum length of a line of a stream in bytes.
const LINE_MAX: usize = 64 << 10;
/// Names of all Unix sockets of the network namespace.
const SOCKETS: &str = "/proc/net/unix";

/// Options of a command that say which server to ask.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServerOptions {
    /// Path, `@NAME` or URL.
    pub(crate) socket: Option<String>,
    /// File with the client certificate.
    pub(crate) certificate: Option<PathBuf>,
    /// File with the key of the client certificate.
    pub(crate) key: Option<PathBuf>,
    /// File with the CA certificates that the server's certificate is verified with.
    pub(crate) authorities: Option<PathBuf>,
}

/// Address of the control API of a running server.
#[derive(Clone)]
pub(crate) struct Socket {
    name: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    /// Unix socket.
    Unix,
    /// Host and port.
    Tcp(String),
    /// Host and port, with TLS.
    Tls(String, Arc<Client>),
}

/// Connection to a server.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

/// Reason why a server could not be asked, or did not do what it was asked.
#[derive(Debug)]
pub(crate) enum ControlError {
    /// No server with a socket in one of the usual places.
    NoServer,
    /// Several servers; with the names of their sockets.
    Several(Vec<String>),
    /// The socket with this name cannot be used.
    Connect(String, io::Error),
    /// The connection broke.
    Connection(hyper::Error),
    /// The server with this name and the client do not agree about TLS: one of them refuses the certificate of the other,
    /// or uses no TLS.
    Tls(String, String),
    /// The files for TLS cannot be used.
    TlsFiles(String),
    /// The server did not respond in this time.
    Late(Duration),
    /// The server refused the request, with this reason.
    Refused(String),
    /// The response is not what this version expects.
    Response(String),
    /// There is no server to ask, and the files to work from cannot be used.
    Offline(OfflineError),
    /// Standard output cannot be written to.
    Output(io::Error),
    /// This file cannot be written.
    File(PathBuf, io::Error),
    /// The operating system refuses something else.
    Io(io::Error),
}

impl fmt::Display for ControlError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlError::NoServer => write!(
                out,
                "no running server found: neither {PATH} nor an abstract socket @{ABSTRACT} answers. In a cluster, run this in \
                 the Pod: `kubectl -n kube-system exec deploy/coredns -- portolan status`. If the Corefile moves the socket, use \
                 `--socket`"
            ),
            ControlError::Several(names) => {
                write!(out, "several servers run here; choose one with `--socket`: {}", names.join(", "))
            }
            ControlError::Connect(name, error) => {
                write!(out, "{name}: {}", io_text::describe(error))?;
                if !name.contains('/') && name.contains(':') {
                    write!(out, "; an address over TCP is `http://{name}` or `https://{name}`")?;
                }
                Ok(())
            }
            ControlError::Connection(error) => {
                write!(out, "the connection to the server broke: {}", root_cause(error))
            }
            ControlError::Tls(name, problem) => write!(out, "{name}: {problem}"),
            ControlError::TlsFiles(problem) => out.write_str(problem),
            ControlError::Late(limit) => write!(out, "the server did not respond within {} s", limit.as_secs()),
            ControlError::Refused(reason) => out.write_str(reason),
            ControlError::Response(problem) => {
                write!(out, "the response of the server is not understood; is it another version? {problem}")
            }
            ControlError::Offline(error) => error.fmt(out),
            ControlError::Output(error) => write!(out, "cannot write to standard output: {}", io_text::describe(error)),
            ControlError::File(file, error) => {
                write!(out, "cannot write {}: {}", file.display(), io_text::describe(error))
            }
            ControlError::Io(error) => out.write_str(&io_text::describe(error)),
        }
    }
}

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ControlError::Connect(_, error) | ControlError::File(_, error) => Some(error),
            ControlError::Output(error) | ControlError::Io(error) => Some(error),
            ControlError::Connection(error) => Some(error),
            ControlError::Offline(error) => Some(error),
            _ => None,
        }
    }
}

impl Socket {
    /// Returns the server that the options name, or the only one that runs here.
    pub(crate) fn find(options: &ServerOptions) -> Result<Socket, ControlError> {
        if let Some(name) = &options.socket {
            return Socket::named(name, options);
        }
        let runtime = runtime()?;
        let inside = runtime.enter();
        let mut usable: Vec<String> = candidates().into_iter().filter(|name| is_usable(name)).collect();
        drop(inside);
        match (usable.pop(), usable.is_empty()) {
            (None, _) => Err(ControlError::NoServer),
            (Some(name), true) => Ok(Socket { name, kind: Kind::Unix }),
            (Some(name), false) => {
                usable.push(name);
                Err(ControlError::Several(usable))
            }
        }
    }

    fn named(name: &str, options: &ServerOptions) -> Result<Socket, ControlError> {
        let to = |rest: &str| rest.trim_end_matches('/').to_owned();
        let kind = match (name.strip_prefix("http://"), name.strip_prefix("https://")) {
            (Some(rest), _) => Kind::Tcp(to(rest)),
            (None, Some(rest)) => Kind::Tls(to(rest), Arc::new(options.tls(&to(rest))?)),
            (None, None) => Kind::Unix,
        };
        Ok(Socket { name: name.to_owned(), kind })
    }

    /// Returns the URL of a server that is reached over TCP; `None` for a Unix socket.
    pub(crate) fn url(&self) -> Option<&str> {
        if matches!(self.kind, Kind::Unix) { None } else { Some(&self.name) }
    }

    /// Connects to the server. The runtime must run.
    async fn connect(&self) -> Result<Box<dyn Stream>, ControlError> {
        let broken = |error| ControlError::Connect(self.name.clone(), error);
        match &self.kind {
            Kind::Unix => Ok(Box::new(connect_unix(&self.name).map_err(broken)?)),
            Kind::Tcp(to) => Ok(Box::new(TcpStream::connect(to).await.map_err(broken)?)),
            Kind::Tls(to, client) => {
                let stream = TcpStream::connect(to).await.map_err(broken)?;
                let peer = stream.peer_addr().map_err(broken)?;
                let stream = client.connect(stream, peer.ip()).await;
                let failed = |error: io::Error| ControlError::Tls(self.name.clone(), error_text(&error));
                Ok(Box::new(stream.map_err(failed)?))
            }
        }
    }

    /// Returns the error of a broken connection. In TLS 1.3, a server refuses a client certificate after the handshake.
    fn broken(&self, error: hyper::Error) -> ControlError {
        let is_alert = |cause: &str| cause.contains("received fatal alert");
        let cause = root_cause(&error);
        match &self.kind {
            Kind::Tls(..) if is_alert(&cause) => {
                let help = "it serves only clients with a certificate of its CA: `--cert FILE --key FILE`";
                ControlError::Tls(self.name.clone(), format!("the server refuses the connection ({cause}); {help}"))
            }
            Kind::Tcp(to) if error.is_parse() => {
                let help = format!("a listener with `tls` needs `https://{to}`");
                ControlError::Tls(self.name.clone(), format!("what the server sent is not HTTP; {help}"))
            }
            _ => ControlError::Connection(error),
        }
    }

    /// Requests an endpoint with these parameters, and parses the response.
    pub(crate) fn get<T: DeserializeOwned>(
        &self,
        endpoint: Endpoint,
        parameters: &[(&str, &str)],
    ) -> Result<T, ControlError> {
        parse(&self.request(endpoint, parameters, Vec::new())?)
    }

    /// Sends a value to an endpoint, and parses the response.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        endpoint: Endpoint,
        value: &impl Serialize,
    ) -> Result<T, ControlError> {
        let body = serde_json::to_vec(value).map_err(|error| ControlError::Response(error.to_string()))?;
        parse(&self.request(endpoint, &[], body)?)
    }

    /// Requests an endpoint and returns the body of the response.
    pub(crate) fn request(
        &self,
        endpoint: Endpoint,
        parameters: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<Bytes, ControlError> {
        let runtime = runtime()?;
        let limit = endpoint.route().time_limit + MARGIN;
        let exchange = async { self.exchange(self.connect().await?, endpoint, parameters, body).await };
        let (status, body) =
            runtime.block_on(async { timeout(limit, exchange).await }).map_err(|_| ControlError::Late(limit))??;
        if status == StatusCode::OK {
            return Ok(body);
        }
        Err(refused(status, &body))
    }

    /// Requests an endpoint whose response is a stream of lines, and passes each line to `take` until that returns
    /// false or the stream ends.
    pub(crate) fn stream<T: DeserializeOwned>(
        &self,
        endpoint: Endpoint,
        parameters: &[(&str, &str)],
        mut take: impl FnMut(T) -> bool,
    ) -> Result<(), ControlError> {
        runtime()?.block_on(async {
            let limit = endpoint.route().time_limit + MARGIN;
            let stream = timeout(limit, self.connect()).await.map_err(|_| ControlError::Late(limit))??;
            let (mut sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.broken(error))?;
            // It ends with the response.
            let connection = tokio::spawn(connection);
            let sending = sender.send_request(request(endpoint, parameters, Vec::new())?);
            let response = timeout(limit, sending).await.map_err(|_| ControlError::Late(limit))?;
            let response = response.map_err(|error| self.broken(error))?;
            let status = response.status();
            if status != StatusCode::OK {
                return Err(refused(status, &whole(response.into_body()).await?));
            }
            let outcome = lines(response.into_body(), |line| Ok(take(parse(line)?))).await;
            connection.abort();
            outcome
        })
    }

    async fn exchange(
        &self,
        stream: Box<dyn Stream>,
        endpoint: Endpoint,
        parameters: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<(StatusCode, Bytes), ControlError> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.broken(error))?;
        let request = request(endpoint, parameters, body)?;
        let responding = async {
            let response = sender.send_request(request).await.map_err(|error| self.broken(error))?;
            let status = response.status();
            Ok((status, whole(response.into_body()).await?))
        };
        tokio::pin!(connection);
        tokio::pin!(responding);
        tokio::select! {
            biased;
            outcome = &mut responding => outcome,
            ended = &mut connection => match ended {
                // The server may close right after a complete response.
                Ok(()) => responding.await,
                Err(error) => Err(self.broken(error)),
            },
        }
    }
}

/// Reads a body to its end.
async fn whole(body: Incoming) -> Result<Bytes, ControlError> {
    let body = Limited::new(body, RESPONSE_MAX).collect().await;
    Ok(body.map_err(|error| ControlError::Response(error.to_string()))?.to_bytes())
}

/// Passes the lines of a body to `take` until that returns false or the body ends.
async fn lines(
    mut body: Incoming,
    mut take: impl FnMut(&[u8]) -> Result<bool, ControlError>,
) -> Result<(), ControlError> {
    let mut rest: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(ControlError::Connection)?;
        rest.extend_from_slice(frame.data_ref().map_or(&[], |data| data));
        let complete = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        for line in rest[..complete].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if !take(line)? {
                return Ok(());
            }
        }
        rest.drain(..complete);
        if rest.len() > LINE_MAX {
            return Err(ControlError::Response(format!("a line has more than {LINE_MAX} bytes")));
        }
    }
    Ok(())
}

fn refused(status: StatusCode, body: &[u8]) -> ControlError {
    let reason = serde_json::from_slice(body).map_or_else(|_| status.to_string(), |ErrorBody { error }| error);
    ControlError::Refused(reason)
}

pub(crate) fn runtime() -> Result<Runtime, ControlError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ControlError::Io)
}

impl ServerOptions {
    /// Returns the TLS configuration for a host with a port.
    fn tls(&self, to: &str) -> Result<Client, ControlError> {
        let read = |file: &PathBuf| {
            fs::read(file).map_err(|error| {
                ControlError::TlsFiles(io_text::cannot_open(file.display().to_string(), &error).to_string())
            })
        };
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some(Identity { certificates: read(certificate)?, key: read(key)? }),
            _ => None,
        };
        let host = to.rsplit_once(':').map_or(to, |(host, _)| host);
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        let wanted = ClientTls {
            server_name: (!is_address).then(|| host.to_owned()),
            authorities: self.authorities.as_ref().map(read).transpose()?,
            identity,
            unverified: false,
        };
        Client::new(&wanted).map_err(|error| ControlError::TlsFiles(format!("TLS: {error}")))
    }
}

/// Connects to a Unix socket. The runtime must run.
fn connect_unix(name: &str) -> io::Result<UnixStream> {
    let stream = match name.strip_prefix('@') {
        Some(name) => std::os::unix::net::UnixStream::connect_addr(&Name::from_abstract_name(name)?),
        None => std::os::unix::net::UnixStream::connect(name),
    }?;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// Names of sockets that a server listens on by default.
fn candidates() -> Vec<String> {
    let listed = fs::read_to_string(SOCKETS).unwrap_or_default();
    let is_ours = |name: &&str| {
        let rest = name.strip_prefix('@').and_then(|name| name.strip_prefix(ABSTRACT));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let mut names: Vec<String> =
        listed.lines().filter_map(|line| line.split_whitespace().nth(7)).filter(is_ours).map(str::to_owned).collect();
    names.push(PATH.to_owned());
    names.sort_unstable();
    // Connections have the name of their socket too.
    names.dedup();
    names
}

/// Returns true if a process that this user trusts listens: one of the same user or of root, or any if this user is
/// root. A process in another PID namespace is another server, in another container of this network namespace. The
/// runtime must run.
fn is_usable(name: &str) -> bool {
    let peer = connect_unix(name).and_then(|stream| stream.peer_cred());
    let own = net::own_user();
    peer.is_ok_and(|peer| {
        let is_trusted = peer.uid() == own || peer.uid() == 0 || own == 0;
        is_trusted && peer.pid().is_some_and(|process| process != 0)
    })
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ControlError> {
    serde_json::from_slice(body).map_err(|error| ControlError::Response(error.to_string()))
}

fn request(
    endpoint: Endpoint,
    parameters: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, ControlError> {
    let route = endpoint.route();
    let method = match route.method {
        Method::Get => hyper::Method::GET,
        Method::Post => hyper::Method::POST,
    };
    Request::builder()
        .method(method)
        .uri(control::query::url(route.path, parameters))
        .header(HOST, "localhost")
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .map_err(|error| ControlError::Response(error.to_string()))
}
