//! Client of the control API, for commands: finds the socket, sends a request and reads the response.

use std::fmt;
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr as Name;
use std::time::Duration;

use control::{Endpoint, ErrorBody, Method};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::answer::RESPONSE_MAX;
use super::listen::{ABSTRACT, PATH};
use crate::explain::offline::OfflineError;

/// Time in addition to that which the server allows itself.
const MARGIN: Duration = Duration::from_secs(4);
/// Maximum length of a line of a stream in bytes.
const LINE_MAX: usize = 64 << 10;
/// Names of all Unix sockets of the network namespace.
const SOCKETS: &str = "/proc/net/unix";

/// Socket of a running server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Socket(String);

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
    /// The server did not respond in this time.
    Late(Duration),
    /// The server refused the request, with this reason.
    Refused(String),
    /// The response is not what this version expects.
    Response(String),
    /// There is no server to ask, and the files to work from cannot be used.
    Offline(OfflineError),
    /// The operating system refuses something else, such as a file to write.
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
            ControlError::Connect(name, error) => write!(out, "{name}: {}", io_text::describe(error)),
            ControlError::Connection(error) => write!(out, "the connection to the server broke: {error}"),
            ControlError::Late(limit) => write!(out, "the server did not respond within {} s", limit.as_secs()),
            ControlError::Refused(reason) => out.write_str(reason),
            ControlError::Response(problem) => {
                write!(out, "the response of the server is not understood; is it another version? {problem}")
            }
            ControlError::Offline(error) => error.fmt(out),
            ControlError::Io(error) => out.write_str(&io_text::describe(error)),
        }
    }
}

impl std::error::Error for ControlError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ControlError::Connect(_, error) | ControlError::Io(error) => Some(error),
            ControlError::Connection(error) => Some(error),
            ControlError::Offline(error) => Some(error),
            _ => None,
        }
    }
}

impl Socket {
    /// Returns the socket with this name, or the one of the only server that runs here.
    pub(crate) fn find(name: Option<&str>) -> Result<Socket, ControlError> {
        if let Some(name) = name {
            return Ok(Socket(name.to_owned()));
        }
        let runtime = runtime()?;
        let inside = runtime.enter();
        let mut usable: Vec<String> = candidates().into_iter().filter(|name| is_usable(name)).collect();
        drop(inside);
        match (usable.pop(), usable.is_empty()) {
            (None, _) => Err(ControlError::NoServer),
            (Some(name), true) => Ok(Socket(name)),
            (Some(name), false) => {
                usable.push(name);
                Err(ControlError::Several(usable))
            }
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
        let broken = |error| ControlError::Connect(self.0.clone(), error);
        let runtime = runtime()?;
        let limit = endpoint.route().time_limit + MARGIN;
        let exchange = async {
            let stream = connect(&self.0).map_err(broken)?;
            exchange(stream, endpoint, parameters, body).await
        };
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
        let broken = |error| ControlError::Connect(self.0.clone(), error);
        runtime()?.block_on(async {
            let stream = connect(&self.0).map_err(broken)?;
            let (mut sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.map_err(ControlError::Connection)?;
            // It ends with the response.
            let connection = tokio::spawn(connection);
            let limit = endpoint.route().time_limit + MARGIN;
            let sending = sender.send_request(request(endpoint, parameters, Vec::new())?);
            let response = timeout(limit, sending).await.map_err(|_| ControlError::Late(limit))?;
            let response = response.map_err(ControlError::Connection)?;
            let status = response.status();
            if status != StatusCode::OK {
                return Err(refused(status, &whole(response.into_body()).await?));
            }
            let outcome = lines(response.into_body(), |line| Ok(take(parse(line)?))).await;
            connection.abort();
            outcome
        })
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

pub(super) fn runtime() -> Result<Runtime, ControlError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ControlError::Io)
}

/// Connects to a socket. The runtime must run.
fn connect(name: &str) -> io::Result<UnixStream> {
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
    let peer = connect(name).and_then(|stream| stream.peer_cred());
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

async fn exchange(
    stream: UnixStream,
    endpoint: Endpoint,
    parameters: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<(StatusCode, Bytes), ControlError> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(ControlError::Connection)?;
    let request = request(endpoint, parameters, body)?;
    let responding = async {
        let response = sender.send_request(request).await.map_err(ControlError::Connection)?;
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
            Err(error) => Err(ControlError::Connection(error)),
        },
    }
}
