//! Connection to the keeper: the parent process that holds the DNS sockets and starts this server again after a crash.
//!
//! The server receives the sockets of the one before it, and sends those that it serves. They are the same sockets, so
//! queries that wait in the kernel are answered. Sockets for QUIC stay here: the keys of a connection end with the
//! process, so its datagrams mean nothing to the next server.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use host::boxed;
use keeper::{Link, Received, Record, VARIABLE};
use metrics::{Kind, Metric, Registry};
use net::{Opened, SocketKind, check_received};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::lifecycle::{LifecycleHooks, ShutdownKind};
use inspect::EarlierExits;

static RESTARTS: Metric = Metric {
    name: "portolan_keeper_restarts_total",
    help: "Restarts of the server by the keeper, its parent process, since that started; omitted without a keeper.",
    kind: Kind::Counter,
    labels: &[],
};
static LAST_EXIT: Metric = Metric {
    name: "portolan_keeper_last_exit_info",
    help: "A metric with a constant '1' value that says how the server before this one ended; omitted before a \
           restart.",
    kind: Kind::Gauge,
    labels: &["reason"],
};

/// Metrics of the keeper, for the documentation.
pub static METRICS: [&Metric; 2] = [&RESTARTS, &LAST_EXIT];

/// Log target.
const LOG: &str = "portolan";
/// Longest wait for the keeper. It only moves records, so it answers within microseconds, unless it is stopped.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of records with sockets from the keeper, which keeps fewer.
const RECEIVED_MAX: usize = 4096;

/// Sockets of one worker, UDP and TCP, or TCP alone.
type Pair = (Option<UdpSocket>, TcpListener);

/// Connection to the keeper.
pub(crate) struct Keeper {
    link: Arc<Link>,
    /// Sockets of the earlier server that this one does not serve yet, by label.
    received: RefCell<BTreeMap<String, (SocketAddr, Vec<Pair>)>>,
    /// Exits of earlier servers, as counted by the keeper.
    pub(crate) exits: EarlierExits,
    /// True after a record could not be sent. The server serves on without a keeper.
    is_broken: Cell<bool>,
}

impl Keeper {
    /// Connects to the keeper, and receives the sockets of the earlier server. Returns `None` if the parent process is
    /// not a keeper. Only the first call in a process can return one.
    pub(crate) fn connect() -> Option<Keeper> {
        let number = std::env::var(VARIABLE).ok()?.parse().ok()?;
        // A program that the server starts inherits the variable, but not the descriptor.
        let end = linux::inherited::take_descriptor(number).ok()?;
        let parent = getppid();
        if parent.is_none() || socket_peercred(&end).ok().map(|peer| peer.pid) != parent {
            return None;
        }
        let _ = set_socket_timeout(&end, Timeout::Recv, Some(TIMEOUT));
        let _ = set_socket_timeout(&end, Timeout::Send, Some(TIMEOUT));
        // The kernel forgets this when it starts a program with capabilities, so the keeper cannot set it.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        let (link, received) = (Arc::new(Link::new(end)), RefCell::default());
        let mut keeper = Keeper { link, received, exits: EarlierExits::default(), is_broken: Cell::new(false) };
        if let Err(error) = keeper.receive() {
            keeper.received.get_mut().clear();
            let reason = host::errors::describe(&error);
            tracing::warn!(target: LOG, "Taking over no sockets from the keeper: {reason}. Opening new ones");
        }
        Some(keeper)
    }

    /// Receives what the keeper sends at the start.
    fn receive(&mut self) -> io::Result<()> {
        for _ in 0..RECEIVED_MAX {
            match self.link.receive()? {
                Received::Record(Record::Exits { total, in_last_hour, reason }, _) => {
                    self.exits = EarlierExits { total, in_last_hour, reason };
                }
                Received::Record(Record::Sockets(text), sockets) => add(self.received.get_mut(), &text, sockets)?,
                Received::Record(Record::End, _) => return Ok(()),
                Received::Record(..) | Received::Unknown => {}
                Received::Nothing => return Err(io::ErrorKind::TimedOut.into()),
                Received::Closed => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "it sends sockets without end"))
    }

    /// Adds the metrics of the keeper to a registry.
    pub(crate) fn publish(&self, registry: &Registry) {
        let restarts = f64::from(self.exits.total);
        registry.gauge(&RESTARTS, &[], move || Some(restarts));
        if self.exits.total > 0 {
            registry.gauge(&LAST_EXIT, &[&self.exits.reason], || Some(1.0));
        }
    }

    /// Sends a record. A keeper that does not take it is ignored from then on.
    pub(crate) fn tell(&self, record: &Record, sockets: &[std::os::fd::BorrowedFd<'_>]) {
        if self.is_broken.get() {
            return;
        }
        if let Err(error) = self.link.send(record, sockets) {
            self.is_broken.set(true);
            let reason = host::errors::describe(&error);
            tracing::warn!(target: LOG, "The keeper does not respond: {reason}. After a crash, queries may be lost");
        }
    }

    /// Takes the sockets of an earlier server by their label.
    fn take_received(&self, label: &str) -> Option<Opened> {
        let (bound, sockets) = self.received.borrow_mut().remove(label)?;
        Some(Opened { label: label.to_owned(), bound, sockets, quic: Vec::new() })
    }

    /// Gives the keeper a copy of each socket of a listener, except for QUIC.
    fn hold(&self, opened: &Opened) {
        let record = Record::Sockets(format!("{} {}", opened.label, opened.bound));
        for (udp, tcp) in &opened.sockets {
            match udp {
                Some(udp) => self.tell(&record, &[udp.as_fd(), tcp.as_fd()]),
                None => self.tell(&record, &[tcp.as_fd()]),
            }
        }
    }

    /// Makes the keeper close its sockets, and waits until it has: queries in its copies would get no answer once this
    /// server has closed its own.
    pub(crate) fn end(&self) {
        self.tell(&Record::Ending, &[]);
        while !self.is_broken.get() {
            match self.link.receive() {
                Ok(Received::Record(record, _)) if record != Record::Released => {}
                Ok(Received::Unknown) => {}
                _ => break,
            }
        }
    }
}

/// Interval of the heartbeats of the main thread.
const MAIN_BEAT: Duration = Duration::from_secs(1);
/// Time without a heartbeat after which the main thread hangs. It builds configurations and runs programs (*on*), while
/// the workers answer queries, so it has more time than they.
const MAIN_MAX: Duration = Duration::from_secs(120);

impl Keeper {
    /// Sends beats from a thread of its own, for as long as the process lives: the keeper ends a server that sends
    /// none. Must be called within a local set of the main thread.
    pub(crate) fn start_beats(&self, probes: &net::Probes) {
        let (begin, main) = (Instant::now(), net::own_thread());
        let last = Arc::new(AtomicU64::new(0));
        let (seen, link, mut workers) = (Arc::clone(&last), Arc::clone(&self.link), probes.heartbeats());
        let run = move || {
            let own = net::own_thread();
            loop {
                let now = Instant::now();
                let main_at = Duration::from_millis(seen.load(Ordering::Relaxed));
                let main_late = now.duration_since(begin).saturating_sub(main_at).saturating_sub(MAIN_MAX);
                let late = workers.check(now).into_iter().chain([(main, main_late), (own, Duration::ZERO)]);
                let (thread, stalled) = late.max_by_key(|(_, late)| *late).unwrap_or_default();
                // A keeper that is stopped takes no beats, and does not miss them.
                let _ = link.send(&Record::Beat { sender: own, thread, stalled }, &[]);
                std::thread::sleep(keeper::BEAT);
            }
        };
        // Without the thread, the keeper waits for the first beat for as long as the server runs.
        let _ = std::thread::Builder::new().name("heartbeat".to_owned()).spawn(run);
        drop(tokio::task::spawn_local(boxed(async move {
            loop {
                let millis = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
                last.store(millis, Ordering::Relaxed);
                tokio::time::sleep(MAIN_BEAT).await;
            }
        })));
    }
}

/// Adds received sockets to their listener, according to the text `LABEL ADDRESS`.
fn add(received: &mut BTreeMap<String, (SocketAddr, Vec<Pair>)>, text: &str, sockets: Vec<OwnedFd>) -> io::Result<()> {
    let invalid = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    let described = text.split_once(' ').and_then(|(label, bound)| Some((label, bound.parse().ok()?)));
    let (label, bound) = described.ok_or_else(|| invalid("it describes no socket"))?;
    let mut sockets = sockets.into_iter();
    let (first, second) = (sockets.next().ok_or_else(|| invalid("it sends no socket"))?, sockets.next());
    let (udp, tcp) = match second {
        Some(tcp) => (Some(first), tcp),
        None => (None, first),
    };
    if let Some(udp) = &udp {
        check_received(udp, SocketKind::Datagrams, bound)?;
    }
    check_received(&tcp, SocketKind::Listener, bound)?;
    let (_, pairs) = received.entry(label.to_owned()).or_insert((bound, Vec::new()));
    pairs.push((udp.map(UdpSocket::from), tcp.into()));
    Ok(())
}

/// Hooks that keep the sockets with the keeper, in addition to those of a mode.
pub(crate) struct KeptHooks {
    /// Hooks of the mode.
    pub(crate) inner: Rc<dyn LifecycleHooks>,
    /// Connection to the keeper.
    pub(crate) keeper: Rc<Keeper>,
}

impl LifecycleHooks for KeptHooks {
    fn adopted(&self, label: &str) -> Option<Opened> {
        // If another instance has sent its sockets too, those from the keeper are the same ones.
        self.keeper.take_received(label).or_else(|| self.inner.adopted(label))
    }

    fn opened(&self, opened: &Opened) {
        self.keeper.hold(opened);
        self.inner.opened(opened);
    }

    fn closed(&self, label: &str) {
        self.keeper.tell(&Record::Closed(label.to_owned()), &[]);
        self.inner.closed(label);
    }

    fn crashes_wanted(&self, are_wanted: bool) {
        self.keeper.tell(&Record::CrashesWanted(are_wanted), &[]);
        self.inner.crashes_wanted(are_wanted);
    }

    fn serves_next(&self) {
        // Open, the sockets that nothing serves would receive queries.
        self.keeper.received.borrow_mut().clear();
        // Until the keeper reads this, it closes the sockets if this process is killed. Said after the first answer,
        // it would come too late for a client that has its answer and connects again.
        self.keeper.tell(&Record::Serving, &[]);
        self.inner.serves_next();
    }

    fn started(&self) {
        self.inner.started();
    }

    fn shutdown_kind(&self) -> ShutdownKind {
        self.inner.shutdown_kind()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (SocketAddr, Vec<OwnedFd>) {
        let address = net::Address {
            label: "dns://:0".to_owned(),
            ip: Some(std::net::Ipv4Addr::LOCALHOST.into()),
            port: 0,
            kind: net::AddressKind::Dns,
        };
        let mut opened = net::open(&address, 1).unwrap();
        let (udp, tcp) = opened.sockets.remove(0);
        (opened.bound, vec![udp.unwrap().into(), tcp.into()])
    }

    #[test]
    fn takes_only_sockets_that_are_what_their_text_says() {
        let mut received = BTreeMap::new();
        let (bound, sockets) = pair();
        add(&mut received, &format!("dns://:0 {bound}"), sockets).unwrap();
        assert_eq!(received["dns://:0"].1.len(), 1);
        for text in ["dns://:0", "dns://:0 nowhere", "dns://:0 127.0.0.1:1", ""] {
            assert!(add(&mut received, text, pair().1).is_err(), "{text}");
        }
        let (bound, mut sockets) = pair();
        sockets.reverse();
        assert!(add(&mut received, &format!("dns://:0 {bound}"), sockets).is_err(), "the wrong order");
        assert!(add(&mut received, &format!("dns://:0 {bound}"), Vec::new()).is_err());
        assert_eq!(received["dns://:0"].1.len(), 1);
    }
}
