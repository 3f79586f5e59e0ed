//! UDP client: message IDs, retransmission and the matching of replies to queries.
//!
//! Each socket belongs to one upstream and must be connected to it, so that the system drops datagrams from other
//! sources. The system chooses the source port at random, and `ports` says when a new socket is opened (RFC 5452 §9.2).
//! An attacker therefore has to guess both message ID and port.
//!
//! A socket that takes no more queries stays open until its last one has completed.

use core::hash::Hash;
use core::time::Duration;
use std::collections::{BTreeSet, HashMap, VecDeque};

use foldhash::fast::RandomState;
use host::Instant;
use host::invariant::{Expected as _, holds};
use wire::Reply;

use super::ports::{IDLE_MAX, Ports, PortsId, USES_MAX};
use super::slots::Slots;
use super::{InFlight, Mismatch, QueryError, QueryId, Random, SocketId, matching_reply};

/// Wait for a reply of an upstream that was unreachable a moment ago, for queries that are not retransmitted.
const UNREACHABLE_WAIT: Duration = Duration::from_millis(400);

/// Query to send.
#[derive(Clone, Copy, Debug)]
pub struct UdpQuery<'a, R> {
    /// Upstream, and all else that distinguishes the sockets to it.
    pub route: &'a R,
    /// Message. Its ID is replaced.
    pub message: &'a [u8],
    /// Time at which the query fails.
    pub deadline: Instant,
    /// Delay after which the query is sent once more, from the same port and with the same ID, in case a datagram was
    /// lost.
    pub retransmit_after: Option<Duration>,
}

/// Query in flight, and the socket that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Query.
    pub query: QueryId,
    /// Socket.
    pub socket: SocketId,
    /// True if the socket has carried queries before.
    pub is_reused: bool,
}

/// Datagram to send.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// Query that the datagram contains.
    pub query: QueryId,
    /// Socket to send it from.
    pub socket: SocketId,
    /// Datagram.
    pub datagram: &'a [u8],
}

/// Action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UdpEvent<R> {
    /// Open a socket from a port that the system chooses at random, and connect it to the upstream. If that fails, call
    /// [`UdpClient::handle_open_error`].
    Open(SocketId, R),
    /// Close a socket.
    Close(SocketId),
    /// A query has completed.
    Completed(QueryId, Result<Reply, QueryError>),
}

/// UDP client for any number of upstreams. `R` is the route to an upstream, such as its address.
pub struct UdpClient<R> {
    random: Random,
    pub(super) by_route: HashMap<R, PortsId, RandomState>,
    pub(super) ports: Slots<Ports<R>>,
    pub(super) sockets: Slots<Socket>,
    pub(super) queries: Slots<Query>,
    pub(super) timers: BTreeSet<(Instant, Timer)>,
    transmits: VecDeque<QueryId>,
    events: VecDeque<UdpEvent<R>>,
}

/// Timer of a query, or for the idle sockets of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    Query(QueryId),
    Idle(PortsId),
}

/// What the upstream may still send for a query that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    Replies,
}

pub(super) struct Socket {
    /// Ports of its upstream. They may be forgotten before a socket that is used up has its last reply.
    pub(super) ports: PortsId,
    pub(super) uses: u32,
    /// Time of the last use.
    used: Instant,
    pub(super) in_flight: InFlight,
    /// Message IDs of all its queries, in the order of their start.
    ids: [u16; USES_MAX as usize],
}

impl Socket {
    /// Returns true if the socket takes no more queries, and is not in the list of its upstream.
    pub(super) fn is_used_up(&self) -> bool {
        self.uses >= USES_MAX
    }

    /// Returns true if a query of this socket had this message ID.
    fn has_sent(&self, message_id: u16) -> bool {
        self.ids.iter().take(self.uses as usize).any(|known| *known == message_id)
    }
}

pub(super) struct Query {
    pub(super) socket: SocketId,
    pub(super) message: Vec<u8>,
    pub(super) deadline: Instant,
    /// Time of the next retransmission, or the deadline.
    pub(super) timer: Instant,
    /// True if the upstream was unreachable when the query started.
    is_unreachable: bool,
}

impl<R: Clone + Eq + Hash> UdpClient<R> {
    /// Creates a client without sockets.
    #[must_use]
    pub fn new(random: Random) -> UdpClient<R> {
        UdpClient {
            random,
            by_route: HashMap::default(),
            ports: Slots::default(),
            sockets: Slots::default(),
            queries: Slots::default(),
            timers: BTreeSet::new(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Starts a query. Process the events, then the transmits.
    ///
    /// # Errors
    /// All message IDs that were tried are in use.
    pub fn start(&mut self, now: Instant, query: &UdpQuery<'_, R>) -> Result<Started, QueryError> {
        let socket = self.next_socket(now, query.route);
        let ports = self.sockets.get(socket.0).expected("the socket of a query").map(|socket| socket.ports);
        let ports = ports.and_then(|ports| self.ports.get_mut(ports.0).expected("the ports of a socket"));
        let is_unreachable = ports.is_some_and(|ports| ports.is_unreachable(now));
        let deadline = query.deadline;
        let wait = query.retransmit_after.or(is_unreachable.then_some(UNREACHABLE_WAIT));
        let timer = wait.map_or(deadline, |span| (now + span).min(deadline));
        let message = query.message.to_vec();
        let id = QueryId(self.queries.insert(Query { socket, message, deadline, timer, is_unreachable }));
        let is_reused = self.assign_message_id(now, id, socket).ok_or_else(|| {
            self.queries.remove(id.0);
            QueryError::Exhausted
        })?;
        holds(self.timers.insert((timer, Timer::Query(id))), "a new query has no timer");
        self.transmits.push_back(id);
        self.check();
        Ok(Started { query: id, socket, is_reused })
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        while let Some(id) = self.transmits.pop_front() {
            // The query may have ended since it was to be sent.
            if let Some(query) = self.queries.get(id.0) {
                return Some(Transmit { query: id, socket: query.socket, datagram: &query.message });
            }
        }
        None
    }

    /// Returns the next action.
    pub fn poll_event(&mut self) -> Option<UdpEvent<R>> {
        self.events.pop_front()
    }

    /// Returns the time at which [`UdpClient::handle_timeout`] has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Processes a datagram that a socket has received. Ignores it unless it matches a query of this socket (RFC 5452
    /// §9.1), and returns the reason. Its time does not matter, because a reply that is here before the timeout is
    /// processed is in time.
    pub fn handle_input(&mut self, socket: SocketId, datagram: &[u8]) -> Option<Mismatch> {
        // The driver may have read the datagram before it has closed the socket.
        let carrier = self.sockets.get(socket.0)?;
        let Some(id) = carrier.in_flight.for_message(datagram) else { return Some(self.unexpected(carrier, datagram)) };
        match matching_reply(datagram, &self.queries.get(id.0).expected("a query in flight")?.message) {
            Some(reply) => {
                let ports = carrier.ports;
                self.ports.get_mut(ports.0).into_iter().for_each(Ports::note_reply);
                self.complete(id, Ok(reply));
                self.check();
            }
            None => return Some(Mismatch::Question),
        }
        None
    }

    /// Fails all queries on a socket, because the system reports that no reply will come (ICMP port or host
    /// unreachable). Later queries to this upstream do not wait long until it replies again.
    pub fn handle_error(&mut self, now: Instant, socket: SocketId, error: &QueryError) {
        let ports = self.sockets.get(socket.0).map(|socket| socket.ports);
        let ports = ports.and_then(|ports| self.ports.get_mut(ports.0));
        ports.into_iter().for_each(|ports| ports.note_unreachable(now, error));
        while let Some((_, id)) = self.sockets.get(socket.0).and_then(|socket| socket.in_flight.first()) {
            self.complete(id, Err(error.clone()));
        }
        self.check();
    }

    /// Fails all queries on a socket that could not be opened, and removes it.
    pub fn handle_open_error(&mut self, socket: SocketId, error: &QueryError) {
        let Some(mut failed) = self.sockets.remove(socket.0) else { return };
        let ports = self.ports.get_mut(failed.ports.0).expected("the ports of a socket");
        let is_listed = ports.is_some_and(|ports| ports.forget(socket));
        holds(is_listed != failed.is_used_up(), "a socket that takes queries is listed");
        for query in failed.in_flight.drain() {
            self.complete(query, Err(error.clone()));
        }
        self.check();
    }

    /// Fails a query whose datagram the system refused to send.
    pub fn handle_transmit_error(&mut self, query: QueryId, error: QueryError) {
        self.complete(query, Err(error));
        self.check();
    }

    /// Retransmits or fails the queries whose time has come, and closes sockets that are idle for too long.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((at, timer)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            match timer {
                Timer::Query(query) => self.retransmit_or_fail(query),
                Timer::Idle(ports) => {
                    self.timers.remove(&(at, timer));
                    self.close_idle(now, ports);
                }
            }
        }
        holds(self.poll_timeout().is_none_or(|at| at > now), "all timers up to now have fired");
        self.check();
    }

    /// Ends a query that nobody waits for any more. There is no event for it.
    pub fn cancel(&mut self, query: QueryId) {
        self.remove(query, Pending::Replies);
        self.check();
    }

    /// Returns true if no query is in flight and no action is pending.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queries.len() == 0 && self.events.is_empty()
    }

    /// Returns the number of open sockets.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// Returns the reason to ignore a datagram whose message ID no query in flight on this socket has.
    fn unexpected(&self, socket: &Socket, datagram: &[u8]) -> Mismatch {
        let may_be_late =
            |id: u16| socket.has_sent(id) || self.ports.get(socket.ports.0).is_some_and(|ports| ports.may_be_late(id));
        let is_late = datagram.first_chunk().is_some_and(|id| may_be_late(u16::from_be_bytes(*id)));
        if is_late { Mismatch::Late } else { Mismatch::Id }
    }

    fn retransmit_or_fail(&mut self, id: QueryId) {
        let query = self.queries.get(id.0).expected("the query of a timer");
        let doubtful = query.filter(|query| query.is_unreachable).map(|query| query.socket);
        if let Some(error) = doubtful.and_then(|socket| self.ports_of(socket)?.report()) {
            return self.complete(id, Err(error));
        }
        let Some(query) = self.queries.get_mut(id.0).filter(|query| query.timer < query.deadline) else {
            return self.complete(id, Err(QueryError::Timeout));
        };
        holds(self.timers.remove(&(query.timer, Timer::Query(id))), "the timer of a query is set");
        query.timer = query.deadline;
        self.timers.insert((query.timer, Timer::Query(id)));
        self.transmits.push_back(id);
    }

    fn ports_of(&self, socket: SocketId) -> Option<&Ports<R>> {
        self.ports.get(self.sockets.get(socket.0)?.ports.0)
    }

    /// Returns the socket for the next query.
    fn next_socket(&mut self, now: Instant, route: &R) -> SocketId {
        let id = self.ports(now, route);
        let Some(ports) = self.ports.get_mut(id.0).expected("the ports of a route") else { return self.open(now, id) };
        while let Some(idle) = ports.take_idle() {
            let socket = self.sockets.get(idle.0).expected("an idle socket");
            if socket.is_some_and(|socket| now.since(socket.used) < IDLE_MAX) {
                ports.occupy(idle);
                return idle;
            }
            self.sockets.remove(idle.0);
            self.events.push_back(UdpEvent::Close(idle));
        }
        let shared = ports.share();
        shared.unwrap_or_else(|| self.open(now, id))
    }

    /// Returns the ports of an upstream. Sets the timer that closes idle ones if the upstream is new.
    fn ports(&mut self, now: Instant, route: &R) -> PortsId {
        if let Some(known) = self.by_route.get(route) {
            return *known;
        }
        let id = PortsId(self.ports.insert(Ports::new(route.clone())));
        self.by_route.insert(route.clone(), id);
        self.timers.insert((now + IDLE_MAX, Timer::Idle(id)));
        id
    }

    fn open(&mut self, now: Instant, id: PortsId) -> SocketId {
        let (in_flight, ids) = (InFlight::default(), [0; USES_MAX as usize]);
        let socket = SocketId(self.sockets.insert(Socket { ports: id, uses: 0, used: now, in_flight, ids }));
        if let Some(ports) = self.ports.get_mut(id.0).expected("the ports of a route") {
            ports.occupy(socket);
            self.events.push_back(UdpEvent::Open(socket, ports.route.clone()));
        }
        socket
    }

    /// Assigns a message ID to a query and writes it into the message. Returns true if the socket has carried queries
    /// before, and `None` if no ID is free.
    fn assign_message_id(&mut self, now: Instant, id: QueryId, socket: SocketId) -> Option<bool> {
        let carrier = self.sockets.get_mut(socket.0).expected("the socket of a query")?;
        holds(!carrier.is_used_up(), "a socket that takes a query is not used up");
        carrier.uses += 1;
        carrier.used = now;
        // A port that never changes can be guessed (RFC 5452 §9.2). After the last use, the socket only waits for
        // replies.
        if carrier.is_used_up()
            && let Some(ports) = self.ports.get_mut(carrier.ports.0).expected("the ports of a socket")
        {
            holds(ports.forget(socket), "a socket that carries a query is busy");
        }
        let message_id = carrier.in_flight.insert(id, &mut *self.random)?;
        let slot = carrier.ids.get_mut(carrier.uses as usize - 1).expected("the place of a message ID");
        slot.into_iter().for_each(|slot| *slot = message_id);
        let message = &mut self.queries.get_mut(id.0).expected("a query that is sent")?.message;
        message.first_chunk_mut::<2>().into_iter().for_each(|bytes| *bytes = message_id.to_be_bytes());
        Some(carrier.uses > 1)
    }

    /// Closes the sockets of an upstream that are idle for too long. Forgets an upstream without sockets and late
    /// replies, which may have left the Corefile.
    fn close_idle(&mut self, now: Instant, id: PortsId) {
        let Some(ports) = self.ports.get_mut(id.0).expected("the ports of a timer") else { return };
        ports.tick();
        let idle = |socket: SocketId| self.sockets.get(socket.0).expected("an idle socket");
        let used = |socket: SocketId| idle(socket).map_or(Instant::START, |socket| socket.used);
        for socket in ports.expire(|socket| now.since(used(socket)) >= IDLE_MAX) {
            let closed = self.sockets.remove(socket.0);
            holds(closed.is_some_and(|closed| closed.in_flight.is_empty()), "an idle socket has no query in flight");
            self.events.push_back(UdpEvent::Close(socket));
        }
        if !ports.is_empty() {
            self.timers.insert((now + IDLE_MAX, Timer::Idle(id)));
        } else if let Some(ports) = self.ports.remove(id.0) {
            holds(self.by_route.remove(&ports.route) == Some(id), "the route of an upstream leads to its ports");
        }
    }

    /// Makes a socket without a query in flight available to others. Closes one that is used up.
    fn release(&mut self, id: SocketId) {
        // A socket that could not be opened is removed before its queries.
        let Some(socket) = self.sockets.get(id.0).filter(|socket| socket.in_flight.is_empty()) else { return };
        match self.ports.get_mut(socket.ports.0).filter(|_| !socket.is_used_up()) {
            Some(ports) => ports.release(id),
            None => {
                self.sockets.remove(id.0);
                self.events.push_back(UdpEvent::Close(id));
            }
        }
    }

    fn complete(&mut self, query: QueryId, outcome: Result<Reply, QueryError>) {
        let Some(completed) = self.queries.get(query.0).expected("a query that completes") else { return };
        // A query that was sent twice may get two replies.
        let is_done = outcome.is_ok() && completed.timer < completed.deadline;
        self.events.push_back(UdpEvent::Completed(query, outcome));
        self.remove(query, if is_done { Pending::Nothing } else { Pending::Replies });
    }

    /// Removes a query from the table, its socket and the timers.
    fn remove(&mut self, id: QueryId, pending: Pending) {
        // A query may be cancelled after it has completed, before the driver has seen the event.
        let Some(query) = self.queries.remove(id.0) else { return };
        holds(self.timers.remove(&(query.timer, Timer::Query(id))), "the timer of a query is set");
        if let Some(socket) = self.sockets.get_mut(query.socket.0) {
            if pending == Pending::Replies
                && let (Some(ports), Some(message_id)) =
                    (self.ports.get_mut(socket.ports.0), socket.in_flight.id_of(id))
            {
                ports.note_ended(message_id);
            }
            socket.in_flight.remove(id);
        }
        self.release(query.socket);
    }
}
