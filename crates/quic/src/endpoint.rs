//! Endpoint of one worker on one listening address: all its connections.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use host::invariant::{Expected as _, holds};
use quinn_proto::crypto::rustls::NoInitialCipherSuite;
use quinn_proto::{ConnectionHandle, DatagramEvent, Incoming, TimeSource, Transmit};

use crate::account::Admission;
use crate::connection::{Connection, Context, Phase};
use crate::event::{Event, Limit, QueryKey, Route};
use crate::keys::Keys;
use crate::limits::{
    DATAGRAM_MAX, HANDSHAKES_BEFORE_RETRY, HANDSHAKING_BEFORE_RETRY, HANDSHAKING_MAX, RECEIVED_MAX, REPLIES_MAX,
    Settings, TURNED_AWAY_MAX, endpoint_config, server_config,
};
use crate::steering::Place;

/// Everything that makes an endpoint.
pub struct Config {
    /// Settings of the listener.
    pub settings: Settings,
    /// Certificates, and the ALPN identifier of the protocol. TLS 1.3 must be enabled, early data not.
    pub tls: Arc<rustls::ServerConfig>,
    /// Keys that the endpoints of the address share.
    pub keys: Keys,
    /// Place of the endpoint among those of the address.
    pub place: Place,
    /// Seed of all random numbers outside TLS.
    pub seed: [u8; 32],
    /// Wall clock, for the age of tokens.
    pub clock: Arc<dyn TimeSource>,
    /// Limits of the process.
    pub admission: Box<dyn Admission>,
}

/// Endpoint of one worker on one listening address.
///
/// The owner passes in datagrams and timeouts, then handles all events, then sends all datagrams and sets its timer.
/// Time is a parameter and never goes backwards.
pub struct Endpoint {
    quic: quinn_proto::Endpoint,
    settings: Settings,
    keys: Keys,
    clock: Arc<dyn TimeSource>,
    admission: Box<dyn Admission>,
    /// Connections by the index of their handle.
    connections: Vec<Option<Box<Connection>>>,
    /// Number of connections by [`Phase`].
    phases: [usize; 3],
    /// Number of connections since the start.
    serial: u64,
    events: VecDeque<Event>,
    /// Connections that may have datagrams to send.
    queue: VecDeque<usize>,
    /// Times at which a connection may have to act, with its index.
    timers: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Datagrams of the endpoint itself.
    replies: VecDeque<(Route, Vec<u8>)>,
    attempts: Attempts,
    /// Condition under which a connection is closed, after the end has begun.
    ending: Option<fn(&Connection) -> bool>,
    /// Time of the latest call.
    latest: Option<Instant>,
}

impl Endpoint {
    /// Creates an endpoint without connections.
    ///
    /// # Errors
    /// The TLS configuration lacks the cipher suite that QUIC requires.
    pub fn new(config: Config) -> Result<Endpoint, NoInitialCipherSuite> {
        let Config { settings, tls, keys, place, seed, clock, admission } = config;
        let server = server_config(&settings, tls, &keys, &clock)?;
        let endpoint = Arc::new(endpoint_config(&keys, place, seed));
        Ok(Endpoint {
            quic: quinn_proto::Endpoint::new(endpoint, Some(Arc::new(server)), false, None),
            settings,
            keys,
            clock,
            admission,
            connections: Vec::new(),
            phases: [0; 3],
            serial: 0,
            events: VecDeque::new(),
            queue: VecDeque::new(),
            timers: BinaryHeap::new(),
            replies: VecDeque::new(),
            attempts: Attempts::default(),
            ending: None,
            latest: None,
        })
    }

    /// Replaces the settings and certificates for new connections.
    ///
    /// # Errors
    /// The TLS configuration lacks the cipher suite that QUIC requires. The former configuration stays in use.
    pub fn reconfigure(
        &mut self,
        settings: Settings,
        tls: Arc<rustls::ServerConfig>,
    ) -> Result<(), NoInitialCipherSuite> {
        let server = server_config(&settings, tls, &self.keys, &self.clock)?;
        self.quic.set_server_config(Some(Arc::new(server)));
        self.settings = settings;
        Ok(())
    }

    /// Handles a datagram. `proxied` is the address of the client if a proxy has sent the datagram.
    pub fn handle_datagram(&mut self, now: Instant, route: Route, proxied: Option<SocketAddr>, bytes: &[u8]) {
        self.pass_time(now);
        let mut reply = Vec::new();
        match self.quic.handle(now, route.peer, route.local, None, BytesMut::from(bytes), &mut reply) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let connection = self.connections.get_mut(handle.0).and_then(Option::as_mut);
                if let Some(connection) = connection.expected("the connection of a handle") {
                    connection.proxied = proxied;
                    connection.quic.handle_event(event);
                    self.advance(now, handle.0);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.decide(now, incoming, proxied),
            Some(DatagramEvent::Response(transmit)) => self.reply(&transmit, reply),
            None => {}
        }
        self.check();
    }

    /// Checks that time does not go backwards.
    fn pass_time(&mut self, now: Instant) {
        holds(self.latest.is_none_or(|latest| latest <= now), "time does not go backwards");
        self.latest = Some(now);
    }

    /// Decides about a new connection.
    fn decide(&mut self, now: Instant, incoming: Incoming, proxied: Option<SocketAddr>) {
        let mut reply = Vec::new();
        if self.ending.is_some() {
            // The client repeats its packet, which may reach another process with the same address.
            return self.quic.ignore(incoming);
        }
        let [opening, turned_away, _] = self.phases;
        let client = proxied.unwrap_or(incoming.remote_address());
        let is_proven = incoming.remote_address_validated();
        // Asked exactly once for each attempt, because it counts.
        let is_permitted = self.admission.permit(client.ip(), is_proven);
        let is_loaded = self.attempts.note(now) || opening >= HANDSHAKING_BEFORE_RETRY || self.admission.is_busy();
        // A handshake costs half a millisecond of CPU, and a forged address costs its sender nothing. Under load,
        // clients prove their address first with a token (RFC 9000 §8.1.2), which costs no state here. The rate of a
        // network is no reason to refuse before that: somebody else may have used it up with forged packets.
        if (is_loaded || !is_permitted) && !is_proven && incoming.may_retry() {
            if let Ok(transmit) = self.quic.retry(incoming, &mut reply) {
                self.reply(&transmit, reply);
            }
            return;
        }
        if !is_permitted {
            self.events.push_back(Event::LimitReached(Limit::Rate));
            let transmit = self.quic.refuse(incoming, &mut reply);
            return self.reply(&transmit, reply);
        }
        // The account comes last. It may evict a connection of somebody else, which is right only for a client that is
        // let in.
        let account = if opening >= HANDSHAKING_MAX { None } else { self.admission.admit(client.ip()) };
        // Some clients above the limit get a handshake, only to read why they are closed. The others are refused at
        // once.
        if account.is_none() && (opening >= HANDSHAKING_MAX || turned_away >= TURNED_AWAY_MAX) {
            self.events.push_back(Event::LimitReached(Limit::Connections));
            let transmit = self.quic.refuse(incoming, &mut reply);
            return self.reply(&transmit, reply);
        }
        if account.is_none() {
            self.events.push_back(Event::LimitReached(Limit::Connections));
        }
        holds(account.is_none() || opening < HANDSHAKING_MAX, "the number of handshakes is bounded");
        holds(account.is_some() || turned_away < TURNED_AWAY_MAX, "connections above the limit are few");
        match self.quic.accept(incoming, now, &mut reply, None) {
            Ok(accepted) => {
                let index = accepted.0.0;
                self.serial += 1;
                let mut connection = Box::new(Connection::new(accepted, self.serial, account, now));
                connection.proxied = proxied;
                self.insert(index, connection);
                self.advance(now, index);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.reply(&transmit, reply);
                }
            }
        }
    }

    fn insert(&mut self, index: usize, connection: Box<Connection>) {
        holds(connection.phase == connection.current_phase(), "a connection is counted in its phase");
        holds(connection.phase != Phase::Open, "a new connection is in its handshake");
        holds(!connection.is_queued && connection.timer.is_none(), "a new connection is in no queue");
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.phases[connection.phase as usize] += 1;
        let former = self.connections[index].replace(connection);
        holds(former.is_none(), "a handle is used again after its connection was removed");
        holds(self.connections() <= self.connections.len(), "each connection has a place of its own");
    }

    /// Returns the time of the next call of [`Endpoint::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((time, _))| *time)
    }

    /// Handles the timeouts until `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.pass_time(now);
        while let Some(Reverse((time, index))) = self.timers.peek().copied()
            && time <= now
        {
            self.timers.pop();
            // The timer of a connection that was removed stays until its time.
            let Some((connection, mut cx)) = self.context(now, index) else { continue };
            // An entry for which an earlier one was added is out of date.
            if connection.timer == Some(time) {
                connection.timer = None;
                if connection.next_timeout().is_some_and(|next| next <= now) {
                    connection.on_timeout(&mut cx);
                }
                self.advance(now, index);
            }
        }
        holds(self.poll_timeout().is_none_or(|at| at > now), "all timers up to now have fired");
        self.check();
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Writes the next datagram to `buffer`, and returns its addresses.
    pub fn poll_transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Route> {
        buffer.clear();
        if let Some((route, bytes)) = self.replies.pop_front() {
            holds(!bytes.is_empty(), "a reply of the endpoint has bytes");
            *buffer = bytes;
            return Some(route);
        }
        while let Some(&index) = self.queue.front() {
            if let Some(connection) = self.connections.get_mut(index).and_then(Option::as_mut) {
                if let Some(transmit) = connection.quic.poll_transmit(now, 1, buffer) {
                    holds(!buffer.is_empty() && transmit.size == buffer.len(), "a datagram is as long as its buffer");
                    holds(buffer.len() <= DATAGRAM_MAX.into(), "a datagram passes every path");
                    return Some(Route { peer: transmit.destination, local: transmit.src_ip });
                }
                holds(connection.is_queued, "a connection in the queue knows it");
                connection.is_queued = false;
                self.settle(index);
            }
            self.queue.pop_front();
        }
        self.check();
        None
    }

    /// Answers a query with a message. `is_last` is false if more messages follow: then [`Event::Ready`] asks for the
    /// next one. A query whose client is gone is ignored.
    pub fn respond(&mut self, now: Instant, key: QueryKey, message: &[u8], is_last: bool) {
        if let Some((connection, mut cx)) = self.context(now, key.connection)
            && connection.is(key.serial)
        {
            connection.respond(key.stream, message, is_last, &mut cx);
            self.end_if_idle(now, key.connection);
            self.enqueue(key.connection);
        }
    }

    /// Ends an answer of several messages, after the last one.
    pub fn end_answer(&mut self, now: Instant, key: QueryKey) {
        if let Some((connection, mut cx)) = self.context(now, key.connection)
            && connection.is(key.serial)
        {
            connection.end_answer(key.stream, &mut cx);
            self.end_if_idle(now, key.connection);
            self.enqueue(key.connection);
        }
    }

    /// Gives up a query that gets no answer.
    pub fn abandon(&mut self, now: Instant, key: QueryKey) {
        if let Some((connection, mut cx)) = self.context(now, key.connection)
            && connection.is(key.serial)
        {
            connection.abandon(key.stream, &mut cx);
            self.end_if_idle(now, key.connection);
            self.enqueue(key.connection);
        }
    }

    /// Closes the connections that the process has evicted.
    pub fn close_evicted(&mut self, now: Instant) {
        let code = self.settings.protocol.codes().excessive_load;
        self.close_where(now, code, "other clients need the connection", Connection::is_evicted);
    }

    /// Begins to end: ignores new connections, and closes each connection once the client has acknowledged its answers.
    pub fn end(&mut self, now: Instant) {
        self.ending = Some(Connection::is_idle);
        for index in 0..self.connections.len() {
            if let Some(connection) = &mut self.connections[index] {
                connection.announce_end();
                self.enqueue(index);
            }
        }
        let code = self.settings.protocol.codes().no_error;
        self.close_where(now, code, ENDING, Connection::is_idle);
    }

    /// Closes each connection as soon as its answers have left: clients that are gone acknowledge nothing.
    pub fn end_soon(&mut self, now: Instant) {
        self.ending = Some(Connection::is_answered);
        let code = self.settings.protocol.codes().no_error;
        self.close_where(now, code, ENDING, Connection::is_answered);
    }

    /// Closes all connections.
    pub fn close(&mut self, now: Instant) {
        self.ending = Some(|_| true);
        let code = self.settings.protocol.codes().no_error;
        self.close_where(now, code, ENDING, |_| true);
        debug_assert!(self.is_idle(), "no connection is open after all were closed");
    }

    /// Returns true if no connection is open.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.connections.iter().flatten().all(|connection| connection.quic.is_closed())
    }

    /// Number of connections, with those that are being closed.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.phases.iter().sum()
    }

    fn close_where(&mut self, now: Instant, code: u32, reason: &'static str, is_meant: fn(&Connection) -> bool) {
        for index in 0..self.connections.len() {
            if let Some((connection, mut cx)) = self.context(now, index)
                && is_meant(connection)
                && !connection.quic.is_closed()
            {
                connection.close(code, reason, &mut cx);
                self.enqueue(index);
            }
        }
    }

    /// Handles everything that has happened to a connection.
    fn advance(&mut self, now: Instant, index: usize) {
        if let Some((connection, mut cx)) = self.context(now, index) {
            connection.on_events(&mut cx);
            self.end_if_idle(now, index);
            self.enqueue(index);
            self.settle(index);
        }
    }

    fn end_if_idle(&mut self, now: Instant, index: usize) {
        let code = self.settings.protocol.codes().no_error;
        if let Some(is_over) = self.ending
            && let Some((connection, mut cx)) = self.context(now, index)
            && is_over(connection)
            && !connection.quic.is_closed()
        {
            connection.close(code, ENDING, &mut cx);
        }
    }

    /// Exchanges messages between a connection and the endpoint of quinn-proto, sets the timer, and removes the
    /// connection after its end.
    fn settle(&mut self, index: usize) {
        let connection = self.connections.get_mut(index).and_then(Option::as_mut);
        let Some(connection) = connection.expected("a connection that something happened to") else { return };
        let mut is_drained = false;
        while let Some(event) = connection.quic.poll_endpoint_events() {
            is_drained |= event.is_drained();
            if let Some(event) = self.quic.handle_event(ConnectionHandle(index), event) {
                connection.quic.handle_event(event);
            }
        }
        holds(self.phases[connection.phase as usize] > 0, "a connection is counted in its phase");
        self.phases[connection.phase as usize] -= 1;
        // Counted out and in again in one place, after everything that may change the phase.
        connection.phase = connection.current_phase();
        if is_drained {
            if connection.is_queued {
                // The next connection with this index would otherwise be in the queue twice.
                self.queue.retain(|queued| *queued != index);
            }
            self.connections[index] = None;
            return;
        }
        self.phases[connection.phase as usize] += 1;
        if let Some(next) = connection.next_timeout()
            && connection.timer.is_none_or(|timer| next < timer)
        {
            connection.timer = Some(next);
            self.add_timer(next, index);
        }
    }

    /// Adds a timer. Each time that a client acknowledges a packet, the timer for its idle time is out of date, but
    /// stays until its time. If most timers are out of date, removes these.
    fn add_timer(&mut self, time: Instant, index: usize) {
        if self.timers.len() >= TIMERS_PER_CONNECTION * self.connections.len() + TIMERS_FREE {
            let connections = &self.connections;
            let timer_of = |index: usize| connections[index].as_ref().and_then(|connection| connection.timer);
            self.timers.retain(|Reverse((time, index))| timer_of(*index) == Some(*time));
        }
        self.timers.push(Reverse((time, index)));
    }

    fn enqueue(&mut self, index: usize) {
        let connection = self.connections.get_mut(index).and_then(Option::as_mut);
        if let Some(connection) = connection.expected("a connection that has datagrams to send")
            && !connection.is_queued
        {
            connection.is_queued = true;
            self.queue.push_back(index);
            holds(self.queue.len() <= self.connections.len(), "each connection is in the queue once");
        }
    }

    /// Checks the state after a step, with debug assertions.
    fn check(&self) {
        if !cfg!(debug_assertions) || self.connections.len() > CHECKED_MAX {
            return;
        }
        let open = || self.connections.iter().flatten();
        if open().map(|connection| connection.streams()).sum::<usize>() > CHECKED_MAX {
            return;
        }
        for phase in [Phase::Opening, Phase::TurnedAway, Phase::Open] {
            let counted = open().filter(|connection| connection.phase == phase).count();
            holds(self.phases[phase as usize] == counted, "each connection is counted in its phase");
        }
        holds(self.phases[Phase::Opening as usize] <= HANDSHAKING_MAX, "the number of handshakes is bounded");
        holds(self.phases[Phase::TurnedAway as usize] <= TURNED_AWAY_MAX, "connections above the limit are few");
        holds(self.replies.len() <= REPLIES_MAX, "the number of the endpoint's own replies is bounded");
        let timers_max = TIMERS_PER_CONNECTION * self.connections.len() + TIMERS_FREE;
        holds(self.timers.len() <= timers_max, "the number of timers is bounded");
        for (index, connection) in self.connections.iter().enumerate() {
            let Some(connection) = connection else { continue };
            let queued = self.queue.iter().filter(|queued| **queued == index).count();
            holds(!connection.is_queued || queued == 1, "a connection that is queued is in the queue once");
            let is_set = |timer| self.timers.iter().any(|Reverse(entry)| *entry == (timer, index));
            holds(connection.timer.is_none_or(is_set), "the timer of a connection is set");
            connection.check();
        }
    }

    fn context(&mut self, now: Instant, index: usize) -> Option<(&mut Connection, Context<'_>)> {
        let connection = self.connections.get_mut(index)?.as_mut()?;
        Some((connection, Context { settings: &self.settings, events: &mut self.events, now }))
    }

    /// Keeps a datagram of the endpoint itself. Clients repeat what gets no reply.
    fn reply(&mut self, transmit: &Transmit, bytes: Vec<u8>) {
        holds(transmit.size == bytes.len(), "a datagram is as long as its buffer");
        holds(bytes.len() <= RECEIVED_MAX.into(), "a reply passes every path");
        if self.replies.len() < REPLIES_MAX {
            self.replies.push_back((Route { peer: transmit.destination, local: transmit.src_ip }, bytes));
        }
    }
}

impl core::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Endpoint").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Maximum number of connections, and of their streams, that are checked after each step. With more, tests with many
/// clients would spend their time on it.
const CHECKED_MAX: usize = 64;
/// Timers that a connection may have, nearly all of them out of date, and further ones of the endpoint.
const TIMERS_PER_CONNECTION: usize = 8;
const TIMERS_FREE: usize = 64;
/// Reason given to clients when the server ends.
const ENDING: &str = "the server is shutting down";

/// Rate of connection attempts.
#[derive(Debug, Default)]
struct Attempts {
    second: Option<Instant>,
    count: u32,
    before: u32,
}

impl Attempts {
    /// Counts an attempt. Returns true if there are too many in this second, or were in the one before.
    fn note(&mut self, now: Instant) -> bool {
        const SECOND: Duration = Duration::from_secs(1);
        let age = self.second.map(|second| now.saturating_duration_since(second));
        holds(self.second.is_none_or(|second| second <= now), "time does not go backwards");
        if age.is_none_or(|age| age >= SECOND) {
            self.before = if age.is_some_and(|age| age < 2 * SECOND) { self.count } else { 0 };
            self.count = 0;
            self.second = Some(now);
        }
        self.count = self.count.saturating_add(1);
        self.count.max(self.before) > HANDSHAKES_BEFORE_RETRY
    }
}
