//! Client of the control API, for commands: finds the socket, sends a request and reads the response.

use std::error::Error;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::SocketAddr as Name;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use control::{Endpoint, ErrorBody, Method};
use engine::tls::{ClientTls, Identity};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use rustls::{AlertDescription, InvalidMessage};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use transport::byte_streams::Duplex;
use transport::files::{PEM_FILE_MAX, read_file};
use transport::http_client::{self, RequestBody};
use transport::tls::Client;
use transport::{TlsError, error_text, root_cause};

use super::all_error::AllError;
use control::socket::{ABSTRACT, PATH, RESPONSE_MAX, refusal_of_user};
use inspect::explain::offline::OfflineError;

/// Time in addition to that which the server allows itself.
const MARGIN: Duration = Duration::from_secs(4);
/// Maximum length of a line of a stream in bytes.
const LINE_MAX: usize = 64 << 10;
/// Names of all Unix sockets of the network namespace.
const SOCKETS: &str = "/proc/net/unix";
/// Flags of a listening socket in that file (`__SO_ACCEPTCON`).
const LISTENING: &str = "00010000";
/// Beginning of the names of sockets that are not for control.
const HANDOVER: &str = "@portolan-node/";
/// Maximum number of entries of `/proc` to look at. A node has some thousand processes.
const PROCESSES_MAX: usize = 32_768;

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

/// Reason why a server could not be asked, or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// No server with a socket in one of the usual places.
    #[error(
        "no running server found: neither {PATH} nor an abstract socket @{ABSTRACT} answers, and no process of this \
         program that this user may inspect listens elsewhere. In a cluster, run this in the Pod: `kubectl -n \
         kube-system exec deploy/coredns -- /coredns status`. If the Corefile moves the socket, name it with \
         `--socket`"
    )]
    NoServer,
    /// Several servers; with the names of their sockets, and their processes.
    #[error("several servers run here; choose one with `--socket`: {}", .0.join(", "))]
    Several(Vec<String>),
    /// The socket with this name cannot be used.
    #[error("{}: {}{}", .0, host::errors::describe(.1), connect_advice(.0, .1))]
    Connect(String, #[source] io::Error),
    /// `--socket` has no value.
    #[error("`--socket` is empty; expected a path, `@NAME`, `http://` or `https://`")]
    NoSocket,
    /// This option has no domain name.
    #[error("`{0}` needs a domain name")]
    NoName(&'static str),
    /// The pod with this name has no namespace.
    #[error("`--pod {0}` needs `--namespace`, or `NAMESPACE/{0}`")]
    NoNamespace(String),
    /// No process listens on the socket with this name.
    #[error("no server listens on `{0}`{FOUND_WITHOUT}")]
    NobodyListens(String),
    /// The file with this name is no socket.
    #[error("`{0}` is not a socket; expected the control socket of a server, such as {PATH}")]
    NotASocket(String),
    /// This user may not use the socket, with this reason.
    #[error("{0}")]
    NoPermission(String),
    /// Another program listens here. It responded with this status.
    #[error("{0} is not a control listener: it responds with HTTP status {1}")]
    NotControl(String, StatusCode),
    /// The server ended while it sent a response.
    #[error("the server shut down while responding; run the command again")]
    Ended,
    /// The connection broke.
    #[error("the connection to the server broke: {}", root_cause(.0))]
    Connection(#[source] hyper::Error),
    /// The server with this name and the client do not agree about TLS: one of them refuses the certificate of the
    /// other, or uses no TLS.
    #[error("{0}: {1}")]
    Tls(String, String),
    /// The files for TLS cannot be used.
    #[error("{0}")]
    TlsFiles(String),
    /// The server with this name did not respond in this time.
    #[error("{}: the server did not respond within {} s", .0, .1.as_secs())]
    Late(String, Duration),
    /// The server refused the request, with this reason.
    #[error("{0}")]
    Refused(String),
    /// The response is not what this version expects.
    #[error("cannot parse the server's response; client and server may be different versions: {0}")]
    Response(String),
    /// There is no server to ask, and the files to work from cannot be used.
    #[error("{0}")]
    Offline(#[source] OfflineError),
    /// Standard output cannot be written to.
    #[error("cannot write to standard output: {}", host::errors::describe(.0))]
    Output(#[source] io::Error),
    /// This file cannot be written.
    #[error("cannot write {}: {}", .0.display(), host::errors::describe(.1))]
    File(PathBuf, #[source] io::Error),
    /// The replicas of a Service could not be asked.
    #[error("{0}")]
    All(#[source] AllError),
    /// The operating system refuses something else.
    #[error("{}", host::errors::describe(.0))]
    Io(#[source] io::Error),
}

/// Advice for a socket that does not exist or has no server.
const FOUND_WITHOUT: &str = "; without `--socket`, the server that runs here is found";

/// Returns advice after an error of a connection to the socket or server with this name; nothing without any.
fn connect_advice(name: &str, error: &io::Error) -> String {
    if !name.contains('/') && name.contains(':') {
        return format!("; an address over TCP is `http://{name}` or `https://{name}`");
    }
    if error.kind() == io::ErrorKind::NotFound { FOUND_WITHOUT.to_owned() } else { String::new() }
}

impl Socket {
    /// Returns the server that the options name, or the only one that runs here.
    pub(crate) fn find(options: &ServerOptions) -> Result<Socket, ControlError> {
        if let Some(name) = &options.socket {
            return Socket::named(name, options);
        }
        let runtime = runtime()?;
        let inside = runtime.enter();
        let mut usable = usable(candidates());
        if usable.is_empty() {
            usable = self::usable(moved());
        }
        drop(inside);
        match usable.as_slice() {
            [] => Err(ControlError::NoServer),
            [(name, _)] => Ok(Socket { name: name.clone(), kind: Kind::Unix }),
            several => {
                let describe = |(name, process): &(String, i32)| format!("{name} ({})", describe_process(*process));
                Err(ControlError::Several(several.iter().map(describe).collect()))
            }
        }
    }

    fn named(name: &str, options: &ServerOptions) -> Result<Socket, ControlError> {
        if name.is_empty() {
            return Err(ControlError::NoSocket);
        }
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
    async fn connect(&self) -> Result<Box<dyn Duplex>, ControlError> {
        let broken = |error| ControlError::Connect(self.name.clone(), error);
        match &self.kind {
            Kind::Unix => Ok(Box::new(connect_unix(&self.name).map_err(|error| unix_error(&self.name, error))?)),
            Kind::Tcp(to) => Ok(Box::new(TcpStream::connect(to).await.map_err(broken)?)),
            Kind::Tls(to, client) => {
                let stream = TcpStream::connect(to).await.map_err(broken)?;
                let peer = stream.peer_addr().map_err(broken)?;
                let stream = client.connect(stream, peer.ip()).await;
                let failed = |error: io::Error| {
                    let problem = tls_problem(&error, to).unwrap_or_else(|| error_text(&error));
                    ControlError::Tls(self.name.clone(), problem)
                };
                Ok(Box::new(stream.map_err(failed)?))
            }
        }
    }

    /// Returns the error of a broken connection. In TLS 1.3, a server refuses a client certificate after the handshake.
    fn broken(&self, error: hyper::Error) -> ControlError {
        match &self.kind {
            Kind::Tls(to, _) if let Some(problem) = tls_problem(&error, to) => {
                ControlError::Tls(self.name.clone(), problem)
            }
            Kind::Tcp(to) if error.is_parse() => {
                let help = format!("a listener with `tls` needs `https://{to}`");
                ControlError::Tls(self.name.clone(), format!("what the server sent is not HTTP; {help}"))
            }
            _ => ControlError::Connection(error),
        }
    }

    fn late(&self, limit: Duration) -> ControlError {
        ControlError::Late(self.name.clone(), limit)
    }

    /// Returns the error of a response. Every error of the control API has a text.
    fn refused(&self, status: StatusCode, body: &[u8]) -> ControlError {
        match serde_json::from_slice(body) {
            Ok(ErrorBody { error }) => ControlError::Refused(error),
            Err(_) => ControlError::NotControl(self.name.clone(), status),
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
            runtime.block_on(async { timeout(limit, exchange).await }).map_err(|_| self.late(limit))??;
        if status == StatusCode::OK {
            return Ok(body);
        }
        Err(self.refused(status, &body))
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
            let stream = timeout(limit, self.connect()).await.map_err(|_| self.late(limit))??;
            let (mut sender, connection) =
                http_client::http1(&http1::Builder::new(), stream).await.map_err(|error| self.broken(error))?;
            // It ends with the response.
            let connection = tokio::spawn(connection);
            let sending = sender.send_request(request(endpoint, parameters, Vec::new())?);
            let response = timeout(limit, sending).await.map_err(|_| self.late(limit))?;
            let response = response.map_err(|error| self.broken(error))?;
            let status = response.status();
            if status != StatusCode::OK {
                return Err(self.refused(status, &whole(response.into_body()).await?));
            }
            let outcome = lines(response.into_body(), |line| Ok(take(parse(line)?))).await;
            connection.abort();
            outcome
        })
    }

    async fn exchange(
        &self,
        stream: Box<dyn Duplex>,
        endpoint: Endpoint,
        parameters: &[(&str, &str)],
        body: Vec<u8>,
    ) -> Result<(StatusCode, Bytes), ControlError> {
        let (mut sender, connection) =
            http_client::http1(&http1::Builder::new(), stream).await.map_err(|error| self.broken(error))?;
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
        let frame = frame
            .map_err(|error| if is_cut(&error) { ControlError::Ended } else { ControlError::Connection(error) })?;
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

/// Returns the first error of this type in a chain of causes. An [`io::Error`] hides the error that it wraps.
fn cause<'e, E: Error + 'static>(error: &'e (dyn Error + 'static)) -> Option<&'e E> {
    let mut next = Some(error);
    while let Some(error) = next {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref::<E>());
        if let Some(found) = error.downcast_ref::<E>().or(inner) {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// Returns true if the server closed the connection in the middle of a response.
fn is_cut(error: &hyper::Error) -> bool {
    let is_end = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
        )
    };
    error.is_incomplete_message() || cause::<io::Error>(error).is_some_and(is_end)
}

/// Returns the error of a Unix socket that cannot be used.
fn unix_error(name: &str, error: io::Error) -> ControlError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            let is_other_file = fs::metadata(name).is_ok_and(|file| !file.file_type().is_socket());
            let error = if is_other_file { ControlError::NotASocket } else { ControlError::NobodyListens };
            error(name.to_owned())
        }
        io::ErrorKind::PermissionDenied => {
            let owner = fs::metadata(name).map(|socket| socket.uid());
            match owner.map(|owner| refusal_of_user(net::own_user(), owner)) {
                Ok(Some(reason)) => ControlError::NoPermission(reason),
                _ => ControlError::Connect(name.to_owned(), error),
            }
        }
        _ => ControlError::Connect(name.to_owned(), error),
    }
}

/// Returns the text for an error of TLS that options can solve.
fn tls_problem(error: &(dyn Error + 'static), to: &str) -> Option<String> {
    let alert = match cause::<rustls::Error>(error)? {
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            return Some(format!("this listener has no TLS; use `http://{to}`"));
        }
        rustls::Error::AlertReceived(alert) => alert,
        _ => return None,
    };
    let reason = match alert {
        AlertDescription::CertificateRequired => "you sent no certificate",
        AlertDescription::CertificateExpired => {
            return Some("the certificate of `--cert` has expired; renew it".to_owned());
        }
        AlertDescription::UnknownCA => "it does not know the CA of the certificate of `--cert`",
        AlertDescription::BadCertificate => "the certificate of `--cert` is not valid",
        alert => &format!("alert {alert:?}"),
    };
    Some(format!(
        "the server refuses the connection ({reason}); it serves only clients with a certificate of its CA: `--cert \
         FILE --key FILE`"
    ))
}

pub(crate) fn runtime() -> Result<Runtime, ControlError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ControlError::Io)
}

impl ServerOptions {
    /// Returns the TLS configuration for a host with a port.
    fn tls(&self, to: &str) -> Result<Client, ControlError> {
        let read = |option: &str, file: &PathBuf| {
            let cannot_open = |error| format!("`{option}`: {}", host::errors::cannot_open(file, &error));
            read_file(file, PEM_FILE_MAX).map_err(|error| ControlError::TlsFiles(cannot_open(error)))
        };
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                Some(Identity { certificates: read("--cert", certificate)?, key: read("--key", key)? })
            }
            _ => None,
        };
        let authorities = self.authorities.as_ref().map(|file| read("--ca", file)).transpose()?;
        let host = to.rsplit_once(':').map_or(to, |(host, _)| host);
        let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
        let server_name = (!is_address).then(|| host.to_owned());
        let trusting = ClientTls { server_name, authorities, ..ClientTls::default() };
        // First without the client certificate, to know which file is wrong.
        Client::new(&trusting).map_err(|error| self.unusable(&error, false))?;
        Client::new(&ClientTls { identity, ..trusting }).map_err(|error| self.unusable(&error, true))
    }

    /// Returns the error of files that cannot be used, with the option that names the file.
    fn unusable(&self, error: &TlsError, is_identity: bool) -> ControlError {
        let (option, file) = match error {
            TlsError::ServerName(_) => ("--socket", None),
            TlsError::PrivateKey(_) | TlsError::KeyMismatch => ("--key", self.key.as_ref()),
            _ if is_identity => ("--cert", self.certificate.as_ref()),
            _ => ("--ca", self.authorities.as_ref()),
        };
        let named = |file: &PathBuf| format!("`{option}`: {}", file.display());
        let place = file.map_or(format!("`{option}`"), named);
        ControlError::TlsFiles(match (error, &self.certificate) {
            (TlsError::KeyMismatch, Some(certificate)) => {
                format!("{place} does not belong to the certificate {}", certificate.display())
            }
            _ => format!("{place}: {error}"),
        })
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

/// Names of sockets that processes of this program listen on elsewhere, because their Corefile moves them with
/// `control PATH`. Finds the processes that this user may inspect, in this network namespace.
fn moved() -> Vec<String> {
    let Ok(own) = fs::read_link("/proc/self/exe") else { return Vec::new() };
    let listed = fs::read_to_string(SOCKETS).unwrap_or_default();
    let listening: Vec<(String, &str)> = listed.lines().filter_map(listening_socket).collect();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().take(PROCESSES_MAX);
    let of_program = processes.filter(|process| is_program(&process.path(), &own));
    let descriptors = of_program.flat_map(|process| fs::read_dir(process.path().join("fd")).into_iter().flatten());
    let targets = descriptors.flatten().filter_map(|descriptor| fs::read_link(descriptor.path()).ok());
    let name_of = |target: PathBuf| listening.iter().find(|(inode, _)| target.as_os_str() == inode.as_str());
    let mut names: Vec<String> = targets.filter_map(name_of).map(|(_, name)| (*name).to_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns true if a process, named by its folder, runs the program `own`, or another file of the same name, such as a
/// newer version.
fn is_program(process: &Path, own: &Path) -> bool {
    let is_own = process.file_name().is_some_and(|number| number.to_string_lossy() == std::process::id().to_string());
    fs::read_link(process.join("exe")).is_ok_and(|exe| !is_own && exe.file_name() == own.file_name())
}

/// Returns the link target of the descriptor of a listening socket that can be one for control, and its name.
fn listening_socket(line: &str) -> Option<(String, &str)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [_, _, _, flags, _, _, inode, name] = fields[..] else { return None };
    // The abstract socket of a node cache hands its DNS sockets over.
    let is_control = flags == LISTENING && !name.starts_with(HANDOVER);
    is_control.then(|| (format!("socket:[{inode}]"), name))
}

/// Returns the sockets that can be used, with the processes that listen on them.
fn usable(names: Vec<String>) -> Vec<(String, i32)> {
    names.into_iter().filter_map(|name| process_behind(&name).map(|process| (name, process))).collect()
}

/// Names a process and its Corefile.
fn describe_process(process: i32) -> String {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let conf = words.find(|word| matches!(&**word, "-conf" | "--conf")).and_then(|_| words.next());
    let corefile = conf.map_or(String::new(), |conf| format!(", Corefile {conf}"));
    format!("process {process}{corefile}")
}

/// Returns the process that listens, if this user trusts it: one of the same user or of root, or any if this user is
/// root. A process in another PID namespace is another server, in another container of this network namespace. The
/// runtime must run.
fn process_behind(name: &str) -> Option<i32> {
    let peer = connect_unix(name).and_then(|stream| stream.peer_cred());
    let own = net::own_user();
    let peer = peer.ok().filter(|peer| peer.uid() == own || peer.uid() == 0 || own == 0)?;
    peer.pid().filter(|process| *process != 0)
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ControlError> {
    serde_json::from_slice(body).map_err(|error| ControlError::Response(error.to_string()))
}

fn request(
    endpoint: Endpoint,
    parameters: &[(&str, &str)],
    body: Vec<u8>,
) -> Result<Request<RequestBody>, ControlError> {
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
        .body(RequestBody::whole(body))
        .map_err(|error| ControlError::Response(error.to_string()))
}
