//! UDP client: message IDs, source ports, retransmission and the matching of replies to queries.
//!
//! Each socket belongs to one upstream and must be connected to it, so that the system drops datagrams from other
//! sources. The system chooses the source port at random, and a new socket replaces each one after [`USES_MAX`] queries
//! (RFC 5452 §9.2). An attacker therefore has to guess both message ID and port.
//!
//! A socket that was replaced stays open until its last query has completed.

use core::hash::Hash;
use core::time::Duration;
use std::collections::{BTreeSet, HashMap, VecDeque};

use foldhash::fast::RandomState;
use wire::Reply;

use super::slots::Slots;
use super::{InFlight, QueryError, QueryId, Random, SocketId, after, matching_reply};

/// Queries sent from one source port.
const USES_MAX: u32 = 8;
/// Sockets per upstream that take new queries.
const SOCKETS: usize = 64;
/// Idle time after which the sockets of an upstream are closed. The upstream may have left the Corefile.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// Query to send.
#[derive(Clone, Copy, Debug)]
pub struct UdpQuery<'a, R> {
    /// Upstream, and all else that distinguishes the sockets to it.
    pub route: &'a R,
    /// Message. Its ID is replaced.
    pub message: &'a [u8],
    /// Time at which the query fails.
    pub deadline: Duration,
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
    rings: HashMap<R, Ring, RandomState>,
    sockets: Slots<Socket>,
    queries: Slots<Query>,
    timers: BTreeSet<(Duration, QueryId)>,
    transmits: VecDeque<QueryId>,
    events: VecDeque<UdpEvent<R>>,
}

/// Sockets of one upstream, used in turn.
#[derive(Default)]
struct Ring {
    sockets: Vec<SocketId>,
    next: usize,
    used: Duration,
}

#[derive(Default)]
struct Socket {
    uses: u32,
    /// True if another socket has taken its place.
    is_replaced: bool,
    in_flight: InFlight,
}

struct Query {
    socket: SocketId,
    message: Vec<u8>,
    deadline: Duration,
    /// Time of the next retransmission, or the deadline.
    timer: Duration,
}

impl<R: Clone + Eq + Hash> UdpClient<R> {
    /// Creates a client without sockets.
    #[must_use]
    pub fn new(random: Random) -> UdpClient<R> {
        UdpClient {
            random,
            rings: HashMap::default(),
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
    pub fn start(&mut self, now: Duration, query: &UdpQuery<'_, R>) -> Result<Started, QueryError> {
        let socket = self.next_socket(now, query.route);
        let deadline = query.deadline;
        let timer = query.retransmit_after.map_or(deadline, |span| after(now, span).min(deadline));
        let id = QueryId(self.queries.insert(Query { socket, message: query.message.to_vec(), deadline, timer }));
        let is_reused = self.assign_message_id(id, socket).ok_or_else(|| {
            self.queries.remove(id.0);
            QueryError::Exhausted
        })?;
        self.timers.insert((timer, id));
        self.transmits.push_back(id);
        Ok(Started { query: id, socket, is_reused })
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit<'_>> {
        while let Some(id) = self.transmits.pop_front() {
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
    pub fn poll_timeout(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Processes a datagram that a socket has received. Ignores it unless it matches a query of this socket (RFC 5452
    /// §9.1). Its time does not matter, because a reply that is here before the timeout is processed is in time.
    pub fn handle_input(&mut self, socket: SocketId, datagram: &[u8]) {
        let carrier = self.sockets.get(socket.0);
        let Some(id) = carrier.and_then(|socket| socket.in_flight.for_message(datagram)) else { return };
        let Some(query) = self.queries.get(id.0) else { return };
        if let Some(reply) = matching_reply(datagram, &query.message) {
            self.complete(id, Ok(reply));
        }
    }

    /// Fails all queries on a socket, because the system reports that no reply will come (ICMP port unreachable).
    pub fn handle_error(&mut self, socket: SocketId, error: &QueryError) {
        while let Some((_, id)) = self.sockets.get(socket.0).and_then(|socket| socket.in_flight.first()) {
            self.complete(id, Err(error.clone()));
        }
    }

    /// Fails all queries on a socket that could not be opened, and removes it.
    pub fn handle_open_error(&mut self, socket: SocketId, error: &QueryError) {
        self.handle_error(socket, error);
        self.sockets.remove(socket.0);
    }

    /// Fails a query whose datagram the system refused to send.
    pub fn handle_transmit_error(&mut self, query: QueryId, error: QueryError) {
        self.complete(query, Err(error));
    }

    /// Retransmits or fails the queries whose time has come.
    pub fn handle_timeout(&mut self, now: Duration) {
        while let Some((_, id)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            let Some(query) = self.queries.get_mut(id.0).filter(|query| query.timer < query.deadline) else {
                self.complete(id, Err(QueryError::Timeout));
                continue;
            };
            self.timers.remove(&(query.timer, id));
            query.timer = query.deadline;
            self.timers.insert((query.timer, id));
            self.transmits.push_back(id);
        }
    }

    /// Ends a query that nobody waits for any more. There is no event for it.
    pub fn cancel(&mut self, query: QueryId) {
        self.remove(query);
    }

    /// Returns true if no query is in flight and no action is pending.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queries.len() == 0 && self.timers.is_empty() && self.events.is_empty()
    }

    /// Returns the number of open sockets.
    #[must_use]
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// Returns the socket for the next query, which is a new one if the next in the ring is used up.
    fn next_socket(&mut self, now: Duration, route: &R) -> SocketId {
        let mut is_new = false;
        let ring = self.rings.entry(route.clone()).or_insert_with(|| {
            is_new = true;
            Ring::default()
        });
        ring.used = now;
        ring.next = (ring.next + 1) % SOCKETS;
        let at = ring.sockets.get(ring.next).copied();
        if let Some(known) = at
            && self.sockets.get(known.0).is_some_and(|socket| socket.uses < USES_MAX)
        {
            return known;
        }
        let socket = SocketId(self.sockets.insert(Socket::default()));
        match at {
            Some(_) => ring.sockets[ring.next] = socket,
            None => ring.sockets.push(socket),
        }
        self.events.push_back(UdpEvent::Open(socket, route.clone()));
        at.into_iter().for_each(|replaced| self.replace(replaced));
        if is_new {
            self.forget_unused(now);
        }
        socket
    }

    /// Assigns a message ID to a query and writes it into the message. Returns true if the socket has carried queries
    /// before, and `None` if no ID is free.
    fn assign_message_id(&mut self, id: QueryId, socket: SocketId) -> Option<bool> {
        let carrier = self.sockets.get_mut(socket.0)?;
        carrier.uses += 1;
        let message_id = carrier.in_flight.insert(id, &mut *self.random)?;
        let message = &mut self.queries.get_mut(id.0)?.message;
        message.first_chunk_mut::<2>().into_iter().for_each(|bytes| *bytes = message_id.to_be_bytes());
        Some(carrier.uses > 1)
    }

    /// Closes the sockets of the upstreams that have not been used for a while.
    fn forget_unused(&mut self, now: Duration) {
        let is_unused = |ring: &mut Ring| now.saturating_sub(ring.used) >= FORGOTTEN_AFTER;
        let unused: Vec<Ring> = self.rings.extract_if(|_, ring| is_unused(ring)).map(|(_, ring)| ring).collect();
        unused.into_iter().flat_map(|ring| ring.sockets).for_each(|socket| self.replace(socket));
    }

    fn replace(&mut self, socket: SocketId) {
        if let Some(replaced) = self.sockets.get_mut(socket.0) {
            replaced.is_replaced = true;
            self.close_if_done(socket);
        }
    }

    fn close_if_done(&mut self, socket: SocketId) {
        if self.sockets.get(socket.0).is_some_and(|socket| socket.is_replaced && socket.in_flight.is_empty()) {
            self.sockets.remove(socket.0);
            self.events.push_back(UdpEvent::Close(socket));
        }
    }

    fn complete(&mut self, query: QueryId, outcome: Result<Reply, QueryError>) {
        if self.queries.get(query.0).is_some() {
            self.events.push_back(UdpEvent::Completed(query, outcome));
            self.remove(query);
        }
    }

    /// Removes a query from the table, its socket and the timers.
    fn remove(&mut self, id: QueryId) {
        let Some(query) = self.queries.remove(id.0) else { return };
        self.timers.remove(&(query.timer, id));
        if let Some(socket) = self.sockets.get_mut(query.socket.0) {
            socket.in_flight.remove(id);
        }
        self.close_if_done(query.socket);
    }
}
