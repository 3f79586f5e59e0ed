//! QUIC listener: DNS over QUIC and over HTTP/3.
//!
//! Each worker owns one UDP socket and one [`quic::Endpoint`] per address. The loop waits for datagrams, for the timer
//! of the endpoint or for answers of parked queries. It passes datagrams to the endpoint, runs the queries in them
//! through the chain, and sends what is ready with `sendmmsg`.
//!
//! The kernel delivers a datagram to the worker that its connection ID names. Where it does not, because the address
//! has sockets of another process too, the receiving worker passes the datagram on ([`group`]).
//!
//! Shutdown: the endpoint refuses new connections and closes each one as soon as the client has its answers. When the
//! worker ends, it closes the others.

mod admission;
mod group;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::{Clock, PeerInfo, Progress, ProxyTlvs, Scheme, Transaction, Transport};
use host::invariant::holds;
use linux::datagrams::{BATCH, Batch, Outgoing};
use quic::{Config, Event, Limit, Protocol, QueryKey, Route, Settings, StdSystemTime};
use rand::Rng;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use transport::MonotonicClock;
use transport::tls;

use self::admission::{ListenerLimits, Tables};
pub(crate) use self::group::QuicSocket;
use self::group::{Group, Stray};
use crate::endpoint::{Endpoint, Stage};
use crate::limits::BATCHES_IN_A_ROW;
use crate::proxy_policy::unwrap_datagram;
use crate::shared::Shared;

/// Serves a socket until its address is closed.
pub(crate) async fn serve(shared: Rc<Shared>, endpoint: Rc<Endpoint>, opened: QuicSocket) -> io::Result<()> {
    let mut closing = endpoint.closing();
    let (mut stage, mut ends_at, mut hurries_at) = (Stage::Open, None, None);
    let (listener, mut strays) = Listener::open(shared, endpoint, opened)?;
    let listener = Rc::new(listener);
    let (mut batch, mut outgoing) = (Batch::new(), Outgoing::new());
    let never = tokio::time::Instant::now() + NEVER;
    let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
    while !listener.has_ended(stage, ends_at) {
        let timeout = listener.quic.borrow().poll_timeout();
        if let Some(timeout) = timeout.map(tokio::time::Instant::from_std)
            && timer.deadline() != timeout
        {
            timer.as_mut().reset(timeout);
        }
        tokio::select! {
            readable = listener.socket.readable() => {
                readable?;
                listener.receive(&mut batch, &mut outgoing);
            }
            Some(stray) = strays.recv() => listener.take(&stray),
            () = timer.as_mut(), if timeout.is_some() => listener.quic.borrow_mut().handle_timeout(Instant::now()),
            () = listener.ready.notified() => {}
            () = listener.evicted.notified() => listener.quic.borrow_mut().close_evicted(Instant::now()),
            reached = closing.passes(stage) => {
                stage = reached;
                if ends_at.is_none() {
                    listener.quic.borrow_mut().end(Instant::now());
                    let now = tokio::time::Instant::now();
                    (ends_at, hurries_at) = (Some(now + GRACE), Some(now + GRACE_FOR_ACKNOWLEDGEMENTS));
                }
            }
            () = tokio::time::sleep_until(hurries_at.unwrap_or(never)), if hurries_at.is_some() => {
                hurries_at = None;
                listener.quic.borrow_mut().end_soon(Instant::now());
            }
            () = tokio::time::sleep_until(ends_at.unwrap_or(never)), if stage == Stage::Closed => {}
        }
        listener.handle_events();
        listener.transmit(&mut outgoing);
        tokio::task::yield_now().await;
    }
    listener.quic.borrow_mut().close(Instant::now());
    listener.transmit(&mut outgoing);
    Ok(())
}

/// Time for answers in flight after the address begins to shut down, like CoreDNS.
const GRACE: Duration = Duration::from_secs(5);
/// Time for clients to acknowledge answers after the address begins to shut down: a few repetitions. Clients that are
/// gone acknowledge nothing.
const GRACE_FOR_ACKNOWLEDGEMENTS: Duration = Duration::from_millis(500);
/// Timer that does not expire.
const NEVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Endpoint of one worker with everything around it.
struct Listener {
    shared: Rc<Shared>,
    endpoint: Rc<Endpoint>,
    socket: UdpSocket,
    local: SocketAddr,
    group: Arc<Group>,
    place: quic::Place,
    scheme: Scheme,
    quic: RefCell<quic::Endpoint>,
    /// Configuration of new connections.
    current: RefCell<(Settings, Arc<rustls::ServerConfig>)>,
    limits: Rc<Cell<ListenerLimits>>,
    /// Queries that wait for an upstream.
    parked: RefCell<HashMap<QueryKey, AbortHandle>>,
    /// Answers of several messages, of which one is being sent.
    unfinished: RefCell<HashMap<QueryKey, Box<Transaction>>>,
    /// Notified when a parked query has its answer.
    ready: Notify,
    /// Notified when a connection is evicted.
    evicted: Arc<Notify>,
}

impl Listener {
    fn open(
        shared: Rc<Shared>,
        endpoint: Rc<Endpoint>,
        opened: QuicSocket,
    ) -> io::Result<(Listener, tokio::sync::mpsc::Receiver<Stray>)> {
        let QuicSocket { socket, place, group, strays } = opened;
        let socket = UdpSocket::from_std(socket)?;
        let scheme = endpoint.scheme(&shared);
        let server = endpoint.tls(&shared).ok_or_else(|| io::Error::other("no certificates"))?;
        let protocol = if scheme == Scheme::Https3 { Protocol::Http3 } else { Protocol::Doq };
        let (settings, limits) = settings(protocol, &shared, &endpoint);
        let unknown = || io::Error::other("unknown TLS implementation");
        let tls = tls::quic_config(&*server, protocol.alpn()).ok_or_else(unknown)?;
        let keys = group.keys(&tls::private_key(&*server).ok_or_else(unknown)?);
        let (limits, evicted) = (Rc::new(Cell::new(limits)), Arc::new(Notify::new()));
        let admission = Box::new(Tables::new(&shared, &endpoint.connections, &limits, &evicted));
        let mut seed = [0; 32];
        rand::rng().fill_bytes(&mut seed);
        let (config, clock) = (Arc::clone(&tls), Arc::new(StdSystemTime));
        let quic = quic::Endpoint::new(Config { settings, tls: config, keys, place, seed, clock, admission });
        let quic = RefCell::new(quic.map_err(|_| io::Error::other("no cipher suite for QUIC"))?);
        let (parked, unfinished) = Default::default();
        let (local, ready, current) = (socket.local_addr()?, Notify::new(), RefCell::new((settings, tls)));
        let listener = Listener {
            shared,
            endpoint,
            socket,
            local,
            group,
            place,
            scheme,
            quic,
            current,
            limits,
            parked,
            unfinished,
            ready,
            evicted,
        };
        Ok((listener, strays))
    }

    /// Reads the datagrams that have arrived, and answers the queries in them.
    fn receive(self: &Rc<Self>, batch: &mut Batch, outgoing: &mut Outgoing) {
        self.reconfigure();
        for _ in 0..BATCHES_IN_A_ROW {
            let mut received = 0;
            // A short batch means that the queue is empty, so it clears the readiness.
            let _ = self.socket.try_io(Interest::READABLE, || {
                received = batch.receive(self.socket.as_raw_fd())?;
                if received < BATCH { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            let now = Instant::now();
            (0..received).for_each(|at| self.handle_datagram(now, batch, at));
            if received < BATCH {
                break;
            }
            self.handle_events();
            self.transmit(outgoing);
        }
    }

    fn handle_datagram(&self, now: Instant, batch: &Batch, at: usize) {
        // A datagram without the address of its sender cannot be answered.
        let Some(peer) = batch.peer(at) else { return };
        let route = Route { peer, local: batch.local(at) };
        let seen = self.endpoint.seen(&self.shared);
        let (bytes, proxied) = match &seen.generation.listener(seen.listener).listening.proxy {
            None => (batch.datagram(at), None),
            Some(policy) => {
                let from =
                    PeerInfo { address: peer, local: self.local, transport: self.transport(), tlvs: ProxyTlvs::None };
                match unwrap_datagram(policy, batch.datagram(at), from) {
                    Some((bytes, from)) => (bytes, Some(from.address)),
                    None => return,
                }
            }
        };
        match quic::owner(bytes, self.place.count) {
            None => {}
            Some(owner) if owner == self.place.index => {
                self.quic.borrow_mut().handle_datagram(now, route, proxied, bytes);
            }
            // The endpoint here does not know the connection. It would tell the client that it is lost.
            Some(owner) => drop(self.group.pass_on(owner, Stray { route, proxied, bytes: bytes.into() })),
        }
    }

    /// Handles a datagram that another worker has received.
    fn take(&self, stray: &Stray) {
        self.quic.borrow_mut().handle_datagram(Instant::now(), stray.route, stray.proxied, &stray.bytes);
    }

    /// Applies changed settings and certificates to new connections.
    fn reconfigure(&self) {
        let protocol = self.current.borrow().0.protocol;
        let (settings, limits) = settings(protocol, &self.shared, &self.endpoint);
        self.limits.set(limits);
        let tls = self.endpoint.tls(&self.shared).and_then(|server| tls::quic_config(&*server, protocol.alpn()));
        // Without TLS, the address is no longer one for QUIC and about to be closed.
        let Some(tls) = tls else { return };
        let is_same =
            matches!(&*self.current.borrow(), (known, config) if *known == settings && Arc::ptr_eq(config, &tls));
        if !is_same && self.quic.borrow_mut().reconfigure(settings, Arc::clone(&tls)).is_ok() {
            *self.current.borrow_mut() = (settings, tls);
        }
    }

    const fn transport(&self) -> Transport {
        match self.scheme {
            Scheme::Https3 => Transport::Https3,
            _ => Transport::Quic,
        }
    }

    /// Handles the events of the endpoint until there are none.
    fn handle_events(self: &Rc<Self>) {
        let mut has_asked = false;
        loop {
            let Some(event) = self.quic.borrow_mut().poll_event() else { break };
            match event {
                Event::Query { key, route, client, message } => {
                    has_asked = true;
                    self.answer(key, route.local, client, &message);
                }
                Event::Cancelled(key) => self.cancel(key),
                Event::Ready(key) => self.send_next(key),
                Event::Responded(status) => {
                    self.endpoint.responses.count(status, &self.shared.worker.borrow().counters);
                }
                Event::LimitReached(Limit::Connections) => self.shared.count(self.shared.limits.callers),
                Event::LimitReached(Limit::Rate) => self.shared.count(self.shared.limits.rates),
                Event::LimitReached(Limit::Load) => self.shared.count(self.shared.limits.buffers),
            }
        }
        if has_asked {
            let seen = self.endpoint.seen(&self.shared);
            self.shared.end_batch(&seen.generation, 0);
        }
    }

    /// Runs a query through the chain. Answers it at once, or parks it.
    fn answer(self: &Rc<Self>, key: QueryKey, local: Option<IpAddr>, client: SocketAddr, message: &[u8]) {
        let seen = self.endpoint.seen(&self.shared);
        let mut worker = self.shared.worker.borrow_mut();
        let mut transaction = worker.take_transaction();
        transaction.query.packet.clear();
        transaction.query.packet.extend_from_slice(message);
        let local = local.map_or(self.local, |ip| SocketAddr::new(ip, self.local.port()));
        transaction.query.peer =
            PeerInfo { address: client, local, transport: self.transport(), tlvs: ProxyTlvs::None };
        transaction.query.received = MonotonicClock.now();
        let progress = seen.generation.receive(seen.listener, &mut transaction, &mut worker);
        drop(worker);
        if progress != Progress::Waiting {
            self.deliver(key, &mut transaction, progress);
            return self.shared.worker.borrow_mut().give_transaction(transaction);
        }
        let listener = Rc::clone(self);
        let parked = self.shared.park(&seen.generation, transaction, move |transaction, progress| {
            listener.parked.borrow_mut().remove(&key);
            listener.deliver(key, transaction, progress);
            listener.ready.notify_one();
        });
        if let Some(parked) = parked {
            let former = self.parked.borrow_mut().insert(key, parked);
            holds(former.is_none(), "a query is parked once");
        }
    }

    /// Passes an answer to the endpoint.
    fn deliver(&self, key: QueryKey, transaction: &mut Transaction, progress: Progress) {
        holds(progress != Progress::Waiting, "a query that was driven does not wait");
        let (mut quic, now) = (self.quic.borrow_mut(), Instant::now());
        if progress != Progress::Answered {
            return quic.abandon(now, key);
        }
        let Transaction { query, response, .. } = transaction;
        let is_last = !response.has_more();
        quic.respond(now, key, response.finish(query), is_last);
        if !is_last {
            let mut kept = self.shared.worker.borrow_mut().take_transaction();
            core::mem::swap(&mut *kept, transaction);
            let former = self.unfinished.borrow_mut().insert(key, kept);
            holds(former.is_none(), "a query has one answer");
        }
    }

    /// Passes the next message of an answer to the endpoint. The client sets the pace.
    fn send_next(&self, key: QueryKey) {
        // The client may have reset the stream since.
        let Some(mut transaction) = self.unfinished.borrow_mut().remove(&key) else { return };
        let (mut quic, now) = (self.quic.borrow_mut(), Instant::now());
        let Transaction { query, response, .. } = &mut *transaction;
        match response.finish_next(query) {
            Some(message) => {
                quic.respond(now, key, message, false);
                let former = self.unfinished.borrow_mut().insert(key, transaction);
                holds(former.is_none(), "a query has one answer");
            }
            None => {
                quic.end_answer(now, key);
                self.shared.worker.borrow_mut().give_transaction(transaction);
            }
        }
    }

    /// Ends the work for a query whose client no longer wants the answer.
    fn cancel(&self, key: QueryKey) {
        let unfinished = self.unfinished.borrow_mut().remove(&key);
        if let Some(parked) = self.parked.borrow_mut().remove(&key) {
            holds(unfinished.is_none(), "a query that is parked has no answer yet");
            parked.abort();
        }
    }

    /// Sends everything that is ready.
    fn transmit(&self, outgoing: &mut Outgoing) {
        let mut quic = self.quic.borrow_mut();
        let (now, mut buffer) = (Instant::now(), Vec::new());
        let anywhere = if self.local.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
        while let Some(Route { peer, local }) = quic.poll_transmit(now, &mut buffer) {
            outgoing.push(&buffer, peer, local.unwrap_or(anywhere));
            if outgoing.is_full() {
                self.send(outgoing);
            }
        }
        self.send(outgoing);
    }

    fn send(&self, outgoing: &mut Outgoing) {
        if !outgoing.is_empty() {
            let refused = outgoing.send(self.socket.as_raw_fd());
            holds(outgoing.is_empty(), "all datagrams have left, or were refused");
            // Both sides repeat what is lost.
            self.shared.worker.borrow().counters.add(self.shared.limits.sends, refused as u64);
        }
    }

    /// Returns true if the address is closed and the clients have their answers, or the time for that is over.
    fn has_ended(&self, stage: Stage, ends_at: Option<tokio::time::Instant>) -> bool {
        let is_over = ends_at.is_some_and(|at| at <= tokio::time::Instant::now());
        stage == Stage::Closed && (is_over || self.quic.borrow().is_idle())
    }
}

/// Returns the settings of new connections, and the limits of the listener.
fn settings(protocol: Protocol, shared: &Shared, endpoint: &Endpoint) -> (Settings, ListenerLimits) {
    let (listening, usual) = (endpoint.listening(shared), shared.stream_limits);
    let limits = if protocol == Protocol::Http3 { listening.https3 } else { listening.quic };
    let settings = Settings {
        protocol,
        streams_max: limits.streams_max,
        idle: listening.timeouts.idle.unwrap_or(usual.idle),
        read: listening.timeouts.read.unwrap_or(usual.read),
        policy: doh::Policy::default(),
    };
    (settings, ListenerLimits { connections_max: limits.connections_max, encryption: listening.encryption })
}
