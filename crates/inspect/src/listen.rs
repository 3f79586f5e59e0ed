//! Listeners of the control API: Unix sockets with a path or an abstract name, and TCP on loopback or with TLS.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr as Name, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::setup::ControlAddress;
use engine::tls::TlsServer;
use host::boxed;
use net::{ConnectionTable, TableLimits};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use transport::byte_streams::Duplex;
use transport::tls::accept_tls;

use super::answer::respond;
use super::connection::answer;
use super::context::{Access, Context};
use super::peer::check_user;
use super::refusal::Refusal;
use control::socket::{ABSTRACT, PATH};
use process::deadlines::HEAD_TIMEOUT;
use process::http_listener::{Evictions, Gate};
use process::http_server;

/// Directory of the default socket. A chart mounts a volume here; the root file system may be read-only.
const DIRECTORY: &str = "/run/portolan";

/// Maximum number of connections per listener: a few people and tools. Beyond it, the one that has been idle longest is
/// closed.
const OPEN_MAX: usize = 8;
/// Connections to accept before the open ones run: few come, and each may evict another.
const ACCEPTED_AT_ONCE: usize = 1;
/// Pause after a failed accept, and between attempts to bind an address.
const PAUSE: Duration = Duration::from_secs(1);
/// Mode of a socket with a path. The check of the peer's user does not depend on it.
const MODE: u32 = 0o600;

/// Running listeners, by their address.
pub(super) struct Listeners {
    context: Rc<Context>,
    evictions: Rc<Evictions>,
    running: Vec<Running>,
}

/// Running listener.
struct Running {
    address: ControlAddress,
    tls: Tls,
    task: AbortHandle,
}

/// TLS of a listener, if it has TLS. A reload replaces it.
type Tls = Rc<RefCell<Option<Arc<dyn TlsServer>>>>;

impl Listeners {
    pub(super) fn new(context: &Rc<Context>) -> Listeners {
        let registry = &context.view.registry;
        let evictions = Evictions::new(registry, |limits| limits.control);
        Listeners { context: Rc::clone(context), evictions: Rc::new(evictions), running: Vec::new() }
    }

    /// Listens on exactly these addresses.
    pub(super) fn serve(&mut self, addresses: &[ControlAddress]) {
        self.running.retain(|running| {
            let is_kept = addresses.contains(&running.address);
            if !is_kept {
                running.task.abort();
            }
            is_kept
        });
        for address in addresses {
            let tls = match address {
                ControlAddress::Tcp(listener) => listener.tls.clone(),
                _ => None,
            };
            match self.running.iter().find(|running| running.address == *address) {
                Some(running) => drop(running.tls.replace(tls)),
                None => self.start(address, tls),
            }
        }
    }

    fn start(&mut self, address: &ControlAddress, tls: Option<Arc<dyn TlsServer>>) {
        let tls: Tls = Rc::new(RefCell::new(tls));
        let (context, evictions) = (Rc::clone(&self.context), Rc::clone(&self.evictions));
        let task = tokio::task::spawn_local(boxed(run(context, evictions, address.clone(), Rc::clone(&tls))));
        self.running.push(Running { address: address.clone(), tls, task: task.abort_handle() });
    }
}

/// Listens on an address until aborted. Retries until it can be bound, and says so once.
async fn run(context: Rc<Context>, evictions: Rc<Evictions>, address: ControlAddress, tls: Tls) {
    let mut is_first = true;
    loop {
        match bind(&address) {
            Ok((name, bound)) => {
                tracing::info!(target: "portolan", "listening on {name} for control");
                return accept(Server::new(context, evictions, tls), bound).await;
            }
            Err(error) if is_first => report_failure(&address, &error),
            Err(_) => {}
        }
        is_first = false;
        tokio::time::sleep(PAUSE).await;
    }
}

fn report_failure(address: &ControlAddress, error: &BindError) {
    let place = match address {
        ControlAddress::Default => address.to_string(),
        _ => format!("`{address}`"),
    };
    tracing::error!(
        target: "portolan",
        "control: cannot listen on {place}: {error}; the server tries again every second"
    );
}

/// Reason why an address cannot be bound.
#[derive(Debug)]
enum BindError {
    /// A file, directory or link is in the place of the socket. Only its owner knows if it may be removed.
    NotASocket(PathBuf),
    /// The operating system refuses the address.
    Io(io::Error),
}

impl From<io::Error> for BindError {
    fn from(error: io::Error) -> BindError {
        BindError::Io(error)
    }
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self {
            BindError::NotASocket(path) => {
                let path = path.display();
                return write!(f, "`{path}` exists and is not a socket; remove it, or name another path");
            }
            BindError::Io(error) => error,
        };
        let help = match error.kind() {
            io::ErrorKind::AddrInUse => "End the process that uses it, or name another address",
            io::ErrorKind::PermissionDenied => "Give the user of the server this permission, or name another address",
            _ => "Correct the address in the Corefile",
        };
        write!(f, "{}. {help}", host::errors::describe(error))
    }
}

impl Error for BindError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BindError::NotASocket(_) => None,
            BindError::Io(error) => Some(error),
        }
    }
}

enum Bound {
    Unix(tokio::net::UnixListener),
    Tcp(tokio::net::TcpListener),
}

/// Binds an address. Returns its name for people too.
fn bind(address: &ControlAddress) -> Result<(String, Bound), BindError> {
    let unix = |(name, listener): (String, UnixListener)| -> Result<(String, Bound), BindError> {
        listener.set_nonblocking(true)?;
        Ok((name, Bound::Unix(tokio::net::UnixListener::from_std(listener)?)))
    };
    match address {
        ControlAddress::Default => unix(bind_default()?),
        ControlAddress::Abstract(name) => unix(bind_abstract(name)?),
        ControlAddress::Path(path) => unix(bind_path(path)?),
        ControlAddress::Tcp(listener) => {
            let listener = std::net::TcpListener::bind(listener.address)?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?.to_string(), Bound::Tcp(tokio::net::TcpListener::from_std(listener)?)))
        }
    }
}

/// Binds the default path if its directory exists, else the default abstract name. The name of a second server in the
/// same network namespace ends with its PID namespace and its process ID, which is 1 in most containers.
fn bind_default() -> io::Result<(String, UnixListener)> {
    if Path::new(DIRECTORY).is_dir()
        && let Ok(bound) = bind_path(Path::new(PATH))
    {
        return Ok(bound);
    }
    let namespace = fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino());
    bind_abstract(ABSTRACT).or_else(|_| bind_abstract(&format!("{ABSTRACT}.{namespace}.{}", std::process::id())))
}

fn bind_abstract(name: &str) -> io::Result<(String, UnixListener)> {
    Ok((format!("@{name}"), UnixListener::bind_addr(&Name::from_abstract_name(name)?)?))
}

/// Binds a path. Replaces a socket that no process listens on any more.
fn bind_path(path: &Path) -> Result<(String, UnixListener), BindError> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if !fs::symlink_metadata(path)?.file_type().is_socket() {
                return Err(BindError::NotASocket(path.to_owned()));
            }
            if !is_abandoned(path) {
                return Err(error.into());
            }
            fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        listener => listener?,
    };
    fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
    Ok((path.display().to_string(), listener))
}

/// Returns true for a socket that no process listens on. Other files refuse connections too.
fn is_abandoned(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

async fn accept(server: Server, bound: Bound) {
    let gate = &server.gate;
    match &bound {
        Bound::Unix(listener) => {
            gate.run(listener, ACCEPTED_AT_ONCE, |stream, from| server.admit_unix(stream, from)).await;
        }
        Bound::Tcp(listener) => {
            gate.run(listener, ACCEPTED_AT_ONCE, |stream, from| server.admit_tcp(stream, from)).await;
        }
    }
}

/// What the connections of a listener share.
#[derive(Clone)]
struct Server {
    context: Rc<Context>,
    tls: Tls,
    gate: Gate,
    /// Connections of users that are refused, and of TLS clients that have not shown their certificate yet. They have a
    /// table of their own, so that they keep nobody out.
    strangers: Arc<ConnectionTable>,
}

impl Server {
    fn new(context: Rc<Context>, evictions: Rc<Evictions>, tls: Tls) -> Server {
        let limits = TableLimits { open_max: OPEN_MAX, per_address_max: OPEN_MAX, buffered_max: 0 };
        Server { context, tls, gate: Gate::new(limits, evictions), strangers: ConnectionTable::new(limits) }
    }

    /// Admits a TCP connection; with TLS, after a handshake in which the client shows a valid certificate.
    fn admit_tcp(&self, stream: TcpStream, from: IpAddr) {
        let Some(tls) = self.tls.borrow().clone() else { return self.admit(Box::new(stream), Access::ReadOnly, from) };
        let (server, (waiting, _)) = (self.clone(), self.strangers.admit(from));
        tokio::task::spawn_local(boxed(async move {
            let greeted = tokio::select! {
                biased;
                () = waiting.evicted() => return,
                greeted = timeout(HEAD_TIMEOUT, accept_tls(&*tls, stream)) => greeted,
            };
            // The client knows why a handshake failed. The server needs no report of every scan of its port.
            if let Ok(Ok(stream)) = greeted {
                server.admit(Box::new(stream), Access::ReadOnlyTls, from);
            }
        }));
    }

    fn admit_unix(&self, stream: tokio::net::UnixStream, from: IpAddr) {
        let Ok(peer) = stream.peer_cred() else { return };
        match check_user(peer.uid(), net::own_user()) {
            Ok(()) => self.admit(Box::new(stream), Access::Full { user: peer.uid() }, from),
            Err(refusal) => self.refuse(stream, from, refusal),
        }
    }

    /// Tells a peer of a Unix socket why it is refused, in response to its first request.
    fn refuse(&self, stream: tokio::net::UnixStream, from: IpAddr, refusal: Refusal) {
        let (connection, _) = self.strangers.admit(from);
        tokio::task::spawn_local(boxed(async move {
            let serving = http_server::serve(Box::new(stream), &connection, async |request| {
                http_server::without_body(request).await;
                respond(Err(refusal.clone()))
            });
            tokio::select! {
                biased;
                () = connection.evicted() => {}
                _ = serving => {}
            }
        }));
    }

    fn admit(&self, stream: Box<dyn Duplex>, access: Access, from: IpAddr) {
        let context = Rc::clone(&self.context);
        self.gate.admit(from, async move |connection| {
            http_server::serve(stream, connection, |request| answer(&context, access, request)).await
        });
    }
}
