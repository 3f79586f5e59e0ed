//! Other instances on this node. One that starts gets the sockets of the one that serves, and both read from them; one that
//! ends while another serves just stops reading. So no question is lost, whichever comes and goes.
//!
//! They meet at a Unix socket without a file, which is of the network namespace: the one who has its name gives sockets, the
//! others stay connected, and with that each knows that it is not alone.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as Name, UnixListener, UnixStream};
use std::rc::Rc;
use std::time::Duration;

use net::{Opened, SOCKETS_MAX, receive_sockets, send_sockets};
use tokio::io::AsyncReadExt;

use super::LOG;

/// How long another instance may take to say what it has to say.
const PATIENCE: Duration = Duration::from_secs(2);
/// How soon the name is tried again.
const AGAIN: Duration = Duration::from_millis(5);
/// Instances that may be connected at a time: one takes over from another, and some that were in a hurry.
const PEERS_MAX: usize = 16;
/// What is said by one who wants the sockets.
const WANTS: u8 = b'S';
/// What is said by one who only wants to be known.
const GREETS: u8 = b'H';
/// What is said when there are no more sockets.
const END: &[u8] = b".";

type Pair = (Option<UdpSocket>, TcpListener);
type Sockets = BTreeMap<String, (SocketAddr, Vec<Pair>)>;

/// The other instances.
pub(super) struct Peers {
    name: Name,
    /// What this process serves.
    own: RefCell<Sockets>,
    /// What another has given, and is not served yet.
    given: RefCell<Sockets>,
    others: Cell<usize>,
}

impl Peers {
    /// Those who serve with this interface.
    pub(super) fn new(interface: &str) -> io::Result<Rc<Peers>> {
        let name = Name::from_abstract_name(format!("portolan-node/{interface}"))?;
        let (own, given) = Default::default();
        Ok(Rc::new(Peers { name, own, given, others: Cell::new(0) }))
    }

    /// The instance that serves, if there is one.
    pub(super) fn find(&self) -> Option<UnixStream> {
        let stream = UnixStream::connect_addr(&self.name).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        Some(stream)
    }

    /// Gets the sockets of the instance that serves.
    pub(super) fn take_over(&self, stream: &UnixStream) -> io::Result<()> {
        if !is_trusted(stream)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        (&mut &*stream).write_all(&[WANTS])?;
        let mut given = Sockets::new();
        let mut datagrams = None;
        loop {
            let (note, sockets) = receive_sockets(stream)?;
            if sockets.is_empty() {
                if note != END {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                tracing::info!(target: LOG, "Takes over {} addresses from the instance that serves", given.len());
                *self.given.borrow_mut() = given;
                return Ok(());
            }
            let lines = String::from_utf8(note).map_err(io::Error::other)?;
            for (line, socket) in lines.lines().zip(sockets) {
                sort_in(line, socket, &mut datagrams, &mut given);
            }
        }
    }

    /// The sockets of this label, if another instance has given them.
    pub(super) fn given(&self, label: &str) -> Option<Opened> {
        let (bound, sockets) = self.given.borrow_mut().remove(label)?;
        Some(Opened { label: label.to_owned(), bound, sockets })
    }

    /// Closes what another instance has given and this one does not serve: held open, it would take what nobody answers.
    pub(super) fn close_others(&self) {
        self.given.borrow_mut().clear();
    }

    /// These are served from now on.
    pub(super) fn keep(&self, opened: &Opened) {
        let clone =
            |(udp, tcp): &Pair| Some((udp.as_ref().map(UdpSocket::try_clone).transpose().ok()?, tcp.try_clone().ok()?));
        let pairs: Vec<Pair> = opened.sockets.iter().filter_map(clone).collect();
        self.own.borrow_mut().insert(opened.label.clone(), (opened.bound, pairs));
    }

    /// Those of this label are served no more.
    pub(super) fn forget(&self, label: &str) {
        self.own.borrow_mut().remove(label);
    }

    /// Whether another instance serves too.
    pub(super) fn are_there(&self) -> bool {
        self.others.get() > 0
    }

    /// Meets others for as long as it is polled; `stream` leads to the one that was found at the start.
    pub(super) async fn meet(self: Rc<Self>, mut stream: Option<UnixStream>) {
        loop {
            if let Some(stream) = stream.take() {
                self.stay(stream).await;
            }
            if let Ok(listener) = UnixListener::bind_addr(&self.name) {
                let _ = Rc::clone(&self).welcome(listener).await;
            }
            stream = self.find().filter(|stream| is_trusted(stream).unwrap_or(false));
            stream = stream.filter(|stream| (&mut &*stream).write_all(&[GREETS]).is_ok());
            if stream.is_none() {
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    async fn welcome(self: Rc<Self>, listener: UnixListener) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let listener = tokio::net::UnixListener::from_std(listener)?;
        loop {
            let (mut stream, _) = listener.accept().await?;
            if self.others.get() >= PEERS_MAX {
                continue;
            }
            let peers = Rc::clone(&self);
            tokio::task::spawn_local(async move {
                let asked = tokio::time::timeout(PATIENCE, stream.read_u8()).await;
                let (Ok(Ok(asked)), Ok(stream)) = (asked, stream.into_std()) else { return };
                if is_trusted(&stream).unwrap_or(false) && (asked != WANTS || peers.give(&stream).is_ok()) {
                    peers.stay(stream).await;
                }
            });
        }
    }

    /// Gives the sockets that this process serves.
    fn give(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(PATIENCE))?;
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
        tracing::info!(target: LOG, "Another instance starts and shares {} addresses", own.len());
        send_sockets(stream, END, &[])
    }

    /// Counts another instance for as long as it is connected.
    async fn stay(&self, stream: UnixStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let Ok(mut stream) = tokio::net::UnixStream::from_std(stream) else { return };
        self.others.set(self.others.get() + 1);
        let _ = stream.read_u8().await;
        self.others.set(self.others.get() - 1);
    }
}

/// Puts a socket where its line says.
fn sort_in(line: &str, socket: OwnedFd, datagrams: &mut Option<UdpSocket>, given: &mut Sockets) {
    let mut words = line.split(' ');
    let (Some(kind), Some(label), Some(Ok(bound))) = (words.next(), words.next(), words.next().map(str::parse)) else {
        return;
    };
    if kind == "udp" {
        *datagrams = Some(socket.into());
        return;
    }
    let (_, pairs) = given.entry(label.to_owned()).or_insert((bound, Vec::new()));
    pairs.push((datagrams.take(), socket.into()));
}

/// Whether the other end is of the same user, or of root: anybody in this network namespace can connect.
fn is_trusted(stream: &UnixStream) -> io::Result<bool> {
    let other = net::user_of_peer(stream)?;
    Ok(other == 0 || other == net::own_user())
}
