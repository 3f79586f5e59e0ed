//! Handover of sockets between instances on the same node, so that an update loses no query.
//!
//! A new instance receives the sockets of the running one, and both read from them. An instance that ends while another
//! one serves stops reading and leaves the remaining queries to it.
//!
//! Instances meet at a Unix socket in the abstract namespace, which belongs to the network namespace. The instance that
//! has bound the name hands out sockets. The others stay connected to it, so that each side knows that the other one
//! exists.
//!
//! Every process on the node's network can connect to the name, or bind it first. So each side proves to the other one
//! that it has the capability `NET_ADMIN` before any socket passes, and before it counts as an instance: a process with
//! this capability can redirect the node's queries anyway.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as Name, UnixListener, UnixStream};
use std::rc::Rc;
use std::time::Duration;

use host::boxed;
use net::{
    AdminChallenge, Opened, SOCKETS_MAX, SocketKind, check_received, meet_challenge, receive_sockets, send_sockets,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::time::Instant;

use super::LOG;

/// Limit for each read from or write to another instance.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Limit for the whole transfer of sockets.
const TRANSFER_MAX: Duration = Duration::from_secs(5);
/// Maximum number of received sockets: those of 64 addresses with 32 workers, the maximum.
const RECEIVED_MAX: usize = 4096;
/// Interval between the first attempts to bind the name or to connect to it. It doubles with each failure up to
/// [`RETRY_MAX`]: another process may hold the name and refuse or close each connection.
const RETRY_MIN: Duration = Duration::from_millis(5);
/// Longest interval between attempts, and least duration of a contact with a real instance.
const RETRY_MAX: Duration = Duration::from_secs(1);
/// Failed contacts in a row before the log names the process that holds the name.
const FAILURES_TOLD: u32 = 4;
/// Maximum number of connections, also of those that have not proved anything yet. One is usual during an update; quick
/// restarts can overlap.
const PEERS_MAX: usize = 16;
/// Pause before the next accept after one has failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Log lines per [`REFUSALS_INTERVAL`] about processes that are refused. Everybody on the node's network can connect.
const REFUSALS_TOLD_MAX: u32 = 8;
const REFUSALS_INTERVAL: Duration = Duration::from_secs(60);
/// Message with the challenge of one side to the other one.
const CHALLENGE: &[u8] = b"C";
/// Message of a side that has met its challenge.
const CHALLENGE_MET: u8 = b'M';
/// Request for the sockets.
const REQUEST_SOCKETS: u8 = b'S';
/// Request of an instance that only announces itself.
const ANNOUNCE: u8 = b'H';
/// Message after the last socket.
const END: &[u8] = b".";

type Pair = (Option<UdpSocket>, TcpListener);
type Sockets = BTreeMap<String, (SocketAddr, Vec<Pair>)>;

/// Connections to other instances, and the sockets to share with them.
pub(super) struct Handover {
    /// Abstract name of the meeting point, as text.
    place: String,
    name: Name,
    /// Process that held the name at the last connection, for messages.
    holder: RefCell<String>,
    /// Sockets that this process serves.
    own: RefCell<Sockets>,
    /// Sockets from another instance that this process does not serve yet.
    received: RefCell<Sockets>,
    peer_count: Cell<usize>,
    /// Connections to this instance, including those that have not proved anything yet.
    connected_count: Cell<usize>,
    /// Begin of the current [`REFUSALS_INTERVAL`], and the lines logged in it.
    refusals: Cell<(Option<Instant>, u32)>,
}

/// Side of a connection between two instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Has bound the name.
    Server,
    /// Connected to it.
    Client,
}

impl Handover {
    /// Creates the meeting point of all instances with this interface name.
    pub(super) fn new(interface: &str) -> io::Result<Rc<Handover>> {
        let place = format!("portolan-node/{interface}");
        let name = Name::from_abstract_name(&place)?;
        let (holder, own, received) = Default::default();
        let (peer_count, connected_count, refusals) = Default::default();
        Ok(Rc::new(Handover { place, name, holder, own, received, peer_count, connected_count, refusals }))
    }

    /// Connects to the running instance. Returns `None` if no instance runs.
    ///
    /// # Errors
    /// Returns an error if the other end does not prove to be an instance, or for a failed system call.
    pub(super) async fn connect(&self) -> io::Result<Option<UnixStream>> {
        let Ok(stream) = UnixStream::connect_addr(&self.name) else { return Ok(None) };
        stream.set_nonblocking(true)?;
        let mut stream = tokio::net::UnixStream::from_std(stream)?;
        self.holder.replace(describe_peer(&stream));
        self.prove_each_other(&mut stream, Side::Client).await?;
        let stream = stream.into_std()?;
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Some(stream))
    }

    /// Returns the process that held the name at the last connection, in words.
    pub(super) fn holder(&self) -> String {
        self.holder.borrow().clone()
    }

    /// Receives the sockets of the running instance.
    ///
    /// # Errors
    /// Returns an error if the transfer fails or takes too long, or if a socket is not what it should be. Then none is
    /// kept.
    pub(super) fn receive(&self, stream: &UnixStream) -> io::Result<()> {
        (&mut &*stream).write_all(&[REQUEST_SOCKETS])?;
        let mut received = Sockets::new();
        let mut datagrams = None;
        let (end, mut count) = (Instant::now() + TRANSFER_MAX, 0);
        loop {
            let (note, sockets) = receive_sockets(stream)?;
            count += sockets.len();
            if count > RECEIVED_MAX || Instant::now() > end {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "it sends sockets without end"));
            }
            if sockets.is_empty() {
                if note != END {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                let addresses = received.len();
                tracing::info!(target: LOG, "Taking over the sockets of {addresses} addresses from the running \
                                             instance");
                *self.received.borrow_mut() = received;
                return Ok(());
            }
            let lines = String::from_utf8(note).map_err(io::Error::other)?;
            for (line, socket) in lines.lines().zip(sockets) {
                add_socket(line, socket, &mut datagrams, &mut received)?;
            }
        }
    }

    /// Takes the received sockets of a listener, by its label.
    pub(super) fn take_received(&self, label: &str) -> Option<Opened> {
        let (bound, sockets) = self.received.borrow_mut().remove(label)?;
        // Connections over QUIC cannot move, so their sockets stay where they are.
        Some(Opened { label: label.to_owned(), bound, sockets, quic: Vec::new() })
    }

    /// Closes the received sockets that this process does not serve: open, they would receive queries that nothing
    /// reads.
    pub(super) fn close_unused(&self) {
        self.received.borrow_mut().clear();
    }

    /// Adds sockets that this process serves, to share them with new instances.
    pub(super) fn share(&self, opened: &Opened) {
        let clone =
            |(udp, tcp): &Pair| Some((udp.as_ref().map(UdpSocket::try_clone).transpose().ok()?, tcp.try_clone().ok()?));
        let pairs: Vec<Pair> = opened.sockets.iter().filter_map(clone).collect();
        self.own.borrow_mut().insert(opened.label.clone(), (opened.bound, pairs));
    }

    /// Removes the sockets of a listener that is no longer served.
    pub(super) fn unshare(&self, label: &str) {
        self.own.borrow_mut().remove(label);
    }

    /// Returns true if another instance is connected.
    pub(super) fn has_peers(&self) -> bool {
        self.peer_count.get() > 0
    }

    /// Keeps in contact with other instances for as long as it is polled: as a client while another instance has the
    /// name, and as the server after that. `stream` is the connection from the start, if there is one.
    pub(super) async fn run(self: Rc<Self>, mut stream: Option<UnixStream>) {
        let (mut pause, mut failures) = (RETRY_MIN, 0);
        loop {
            if let Some(stream) = stream.take() {
                let since = Instant::now();
                self.count_until_closed(stream).await;
                if since.elapsed() >= RETRY_MAX {
                    (pause, failures) = (RETRY_MIN, 0);
                }
            }
            if let Ok(listener) = UnixListener::bind_addr(&self.name) {
                (pause, failures) = (RETRY_MIN, 0);
                let _ = Rc::clone(&self).serve_peers(listener).await;
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(RETRY_MAX);
            let announced = self.connect().await.and_then(|found| {
                let Some(stream) = found else { return Ok(None) };
                (&mut &stream).write_all(&[ANNOUNCE]).map(|()| Some(stream))
            });
            failures += 1;
            if let (FAILURES_TOLD, Err(reason)) = (failures, &announced) {
                self.warn_of_holder(reason);
            }
            stream = announced.ok().flatten();
        }
    }

    /// Logs which process holds the name and why no new instance can take over the sockets of this one.
    fn warn_of_holder(&self, reason: &io::Error) {
        tracing::warn!(
            target: LOG,
            "The socket @{} belongs to {}: {}. While that process runs, a new instance cannot take over the sockets of \
             this one. If it is no instance of this server, stop it",
            self.place,
            self.holder(),
            host::errors::describe(reason)
        );
    }

    async fn serve_peers(self: Rc<Self>, listener: UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // The process has most likely no file descriptor left. The name must not become free.
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            if self.connected_count.get() >= PEERS_MAX {
                continue;
            }
            let handover = Rc::clone(&self);
            tokio::task::spawn_local(boxed(async move {
                handover.connected_count.update(|count| count + 1);
                handover.serve_peer(stream).await;
                handover.connected_count.update(|count| count - 1);
            }));
        }
    }

    async fn serve_peer(&self, mut stream: tokio::net::UnixStream) {
        if let Err(error) = self.prove_each_other(&mut stream, Side::Server).await {
            return self.warn_of_refusal(&stream, &error);
        }
        let request = tokio::time::timeout(TIMEOUT, stream.read_u8()).await;
        let (Ok(Ok(request)), Ok(stream)) = (request, stream.into_std()) else { return };
        if request != REQUEST_SOCKETS || self.send(&stream).is_ok() {
            self.count_until_closed(stream).await;
        }
    }

    /// Logs which process gets no sockets.
    fn warn_of_refusal(&self, stream: &tokio::net::UnixStream, error: &io::Error) {
        let (now, (begin, told)) = (Instant::now(), self.refusals.get());
        let (begin, told) = match begin {
            Some(begin) if now < begin + REFUSALS_INTERVAL => (begin, told),
            _ => (now, 0),
        };
        if told >= REFUSALS_TOLD_MAX {
            return;
        }
        self.refusals.set((Some(begin), told + 1));
        tracing::warn!(
            target: LOG,
            "Sharing no sockets with {}, which connected to @{}: {}. If it is no instance of this server, stop it",
            describe_peer(stream), self.place, host::errors::describe(error)
        );
    }

    /// Proves to the other side that this process may hold the node's sockets, and requires the same proof of it.
    ///
    /// # Errors
    /// Returns an error if one of the two has no proof, or if the other side takes longer than [`TIMEOUT`].
    async fn prove_each_other(&self, stream: &mut tokio::net::UnixStream, own: Side) -> io::Result<()> {
        if !has_trusted_user(stream) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
        }
        let proof = tokio::time::timeout(TIMEOUT, self.exchange_proofs(stream, own)).await;
        proof.unwrap_or_else(|_| {
            Err(io::Error::new(io::ErrorKind::TimedOut, "it does not prove that it is an instance"))
        })
    }

    async fn exchange_proofs(&self, stream: &mut tokio::net::UnixStream, own: Side) -> io::Result<()> {
        let other = match own {
            Side::Server => Side::Client,
            Side::Client => Side::Server,
        };
        let challenge = AdminChallenge::new(&self.purpose(other))?;
        stream.async_io(Interest::WRITABLE, || send_sockets(&*stream, CHALLENGE, &[challenge.as_fd()])).await?;
        let (note, mut sockets) = stream.async_io(Interest::READABLE, || receive_sockets(&*stream)).await?;
        if note.is_empty() && sockets.is_empty() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"));
        }
        let (CHALLENGE, Some(theirs), true) = (note.as_slice(), sockets.pop(), sockets.is_empty()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no instance of this server"));
        };
        meet_challenge(theirs, &self.purpose(own)).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => io::Error::new(
                error.kind(),
                "this process lacks the capability NET_ADMIN, which proves that it is an instance",
            ),
            _ => error,
        })?;
        stream.write_u8(CHALLENGE_MET).await?;
        if stream.read_u8().await? == CHALLENGE_MET && challenge.is_met()? {
            return Ok(());
        }
        Err(io::Error::new(io::ErrorKind::PermissionDenied, "it lacks the capability NET_ADMIN"))
    }

    /// Returns the purpose of a challenge that a side has to meet. It differs by side and by meeting point, so that no
    /// instance meets a challenge that another one set for a third process.
    fn purpose(&self, side: Side) -> String {
        let side = match side {
            Side::Server => "server",
            Side::Client => "client",
        };
        format!("{}/{side}", self.place)
    }

    /// Sends the sockets that this process serves.
    fn send(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        let own = self.own.borrow();
        let mut all: Vec<(String, BorrowedFd<'_>)> = Vec::new();
        for (label, (bound, pairs)) in own.iter() {
            for (udp, tcp) in pairs {
                all.extend(udp.iter().map(|udp| (format!("udp {label} {bound}\n"), udp.as_fd())));
                all.push((format!("tcp {label} {bound}\n"), tcp.as_fd()));
            }
        }
        for part in all.chunks(SOCKETS_MAX) {
            let note: String = part.iter().map(|(line, _)| line.as_str()).collect();
            let sockets: Vec<BorrowedFd<'_>> = part.iter().map(|(_, socket)| *socket).collect();
            send_sockets(stream, note.as_bytes(), &sockets)?;
        }
        tracing::info!(target: LOG, "Sharing the sockets of {} addresses with a new instance", own.len());
        send_sockets(stream, END, &[])
    }

    /// Counts a connected instance until it disconnects.
    async fn count_until_closed(&self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let Ok(mut stream) = tokio::net::UnixStream::from_std(stream) else { return };
        self.peer_count.set(self.peer_count.get() + 1);
        let _ = stream.read_u8().await;
        self.peer_count.set(self.peer_count.get() - 1);
    }
}

/// Adds a received socket to its listener, according to its line `udp|tcp LABEL ADDRESS`. A UDP socket precedes its TCP
/// socket.
fn add_socket(
    line: &str,
    socket: OwnedFd,
    datagrams: &mut Option<UdpSocket>,
    received: &mut Sockets,
) -> io::Result<()> {
    let mut words = line.split(' ');
    let (Some(kind), Some(label), Some(Ok(bound))) = (words.next(), words.next(), words.next().map(str::parse)) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it describes no socket"));
    };
    if kind == "udp" {
        check_received(&socket, SocketKind::Datagrams, bound)?;
        *datagrams = Some(socket.into());
        return Ok(());
    }
    check_received(&socket, SocketKind::Listener, bound)?;
    let (_, pairs) = received.entry(label.to_owned()).or_insert((bound, Vec::new()));
    pairs.push((datagrams.take(), socket.into()));
    Ok(())
}

/// Describes the process at the other end for messages.
fn describe_peer(stream: &tokio::net::UnixStream) -> String {
    let Ok(peer) = stream.peer_cred() else { return "an unknown process".to_owned() };
    // A process in another PID namespace, such as in another container, has no ID here.
    let Some(id) = peer.pid().filter(|id| *id != 0) else {
        return format!("a process of user {} in another container", peer.uid());
    };
    let program = std::fs::read_link(format!("/proc/{id}/exe"));
    let program = program.map_or_else(|_| String::new(), |path| format!(" ({})", path.display()));
    format!("process {id}{program} of user {}", peer.uid())
}

/// Returns true if the other end belongs to the same user or to root. Instances in other containers have no process ID
/// here, so tokio reads the credentials: rustix takes them for an error then.
fn has_trusted_user(stream: &tokio::net::UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|peer| peer.uid() == 0 || peer.uid() == net::own_user())
}
