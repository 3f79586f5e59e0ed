//! Messages on their way to the upstreams and back, and what the upstreams do.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use host::Instant;
use upstream::{
    ConnectionId, FrameReader, Mismatch, PoolEvent, QueryError, Random, SocketId, StreamClient, UdpClient, UdpEvent,
    append_frame,
};
use wire::{Header, Reply};

use super::Flight;
use crate::outside::{self, Reply as Kind};
use crate::random::Generator;

/// Condition of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Condition {
    Fine,
    /// Receives nothing.
    Silent,
    /// Refuses connections, and answers datagrams with ICMP errors.
    Refusing,
    /// Answers SERVFAIL.
    Failing,
    /// Sends forged messages only.
    Lying,
    /// Resets connections.
    Resetting,
}

/// Behaviour of an upstream and of the network to it. Percentages are of all messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Upstream {
    pub(crate) condition: Condition,
    pub(crate) latency_max: u64,
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    /// Replies that are preceded or followed by a forged one.
    pub(crate) forgery: u64,
    pub(crate) truncation: u64,
}

impl Upstream {
    pub(crate) const GOOD: Upstream =
        Upstream { condition: Condition::Fine, latency_max: 20, loss: 0, duplication: 0, forgery: 0, truncation: 0 };

    /// Returns an upstream that depends on a seed: some are good, most are not.
    pub(crate) fn random(random: &mut Generator) -> Upstream {
        let conditions = [
            Condition::Fine,
            Condition::Fine,
            Condition::Fine,
            Condition::Silent,
            Condition::Refusing,
            Condition::Failing,
            Condition::Lying,
            Condition::Resetting,
        ];
        let condition = random.pick(&conditions);
        let mut percent = |most: u64| random.below(2) * random.below(most);
        let (loss, duplication, forgery, truncation) = (percent(60), percent(50), percent(60), percent(80));
        Upstream { condition, latency_max: 1 + random.below(900), loss, duplication, forgery, truncation }
    }
}

/// Arrival at the server.
enum Arrival {
    Datagram(SocketId, Vec<u8>),
    Unreachable(SocketId),
    Connected(ConnectionId),
    Bytes(ConnectionId, Vec<u8>),
    Closed(ConnectionId, &'static str),
}

struct Link {
    to: SocketAddr,
    frames: FrameReader,
    /// Time at which the last bytes arrive: a stream keeps the order.
    last_arrival: Instant,
}

/// Sockets, connections and what is on its way.
pub(super) struct Wires {
    upstreams: BTreeMap<SocketAddr, Upstream>,
    sockets: BTreeMap<SocketId, SocketAddr>,
    links: BTreeMap<ConnectionId, Link>,
    arrivals: BTreeMap<(Instant, u64), Arrival>,
    entered: u64,
    random: Generator,
}

type Complete<'a> = &'a mut dyn FnMut(Flight, Result<Reply, QueryError>);

impl Wires {
    pub(super) fn new(random: Generator) -> Wires {
        Wires {
            upstreams: BTreeMap::new(),
            sockets: BTreeMap::new(),
            links: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            entered: 0,
            random,
        }
    }

    pub(super) fn set(&mut self, address: SocketAddr, upstream: Upstream) {
        self.upstreams.insert(address, upstream);
    }

    pub(super) fn break_links(&mut self, now: Instant) {
        let links: Vec<ConnectionId> = self.links.keys().copied().collect();
        links.into_iter().for_each(|id| self.push(now, Arrival::Closed(id, "read")));
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.arrivals.keys().next().map(|(at, _)| *at)
    }

    fn push(&mut self, at: Instant, arrival: Arrival) {
        self.entered += 1;
        self.arrivals.insert((at, self.entered), arrival);
    }

    fn upstream(&self, to: SocketAddr) -> Upstream {
        self.upstreams.get(&to).copied().unwrap_or(Upstream::GOOD)
    }

    /// Passes the first arrival to its client. Returns the reasons for which replies were ignored, or `None` if nothing
    /// has arrived until now.
    pub(super) fn arrive(
        &mut self,
        now: Instant,
        udp: &mut UdpClient<SocketAddr>,
        streams: &mut StreamClient<SocketAddr>,
    ) -> Option<Vec<Mismatch>> {
        let first = self.arrivals.first_entry().filter(|first| first.key().0 <= now)?;
        let mut ignored = Vec::new();
        match first.remove() {
            Arrival::Datagram(socket, datagram) if self.sockets.contains_key(&socket) => {
                ignored.extend(udp.handle_input(socket, &datagram));
            }
            Arrival::Unreachable(socket) if self.sockets.contains_key(&socket) => {
                udp.handle_error(now, socket, &refused("read"));
            }
            Arrival::Connected(id) if self.links.contains_key(&id) => streams.handle_connected(now, id),
            Arrival::Bytes(id, bytes) if self.links.contains_key(&id) => {
                streams.handle_input(now, id, &bytes, |reason| ignored.push(reason));
            }
            Arrival::Closed(id, during) if self.links.remove(&id).is_some() => {
                streams.handle_closed(now, id, &refused(during));
            }
            _ => {}
        }
        Some(ignored)
    }

    /// Performs the actions of the clients.
    pub(super) fn process(
        &mut self,
        now: Instant,
        udp: &mut UdpClient<SocketAddr>,
        streams: &mut StreamClient<SocketAddr>,
        complete: Complete<'_>,
    ) {
        self.process_udp(now, udp, complete);
        while let Some(event) = streams.poll_event() {
            match event {
                PoolEvent::Open(id, to) => self.open_link(now, id, to),
                PoolEvent::Transmit(id) => self.transmit(now, id, streams),
                PoolEvent::Close(id) => assert!(self.links.remove(&id).is_some(), "a connection is closed twice"),
                PoolEvent::Completed(query, outcome) => complete((false, query), outcome.map(|reply| reply.reply)),
            }
        }
    }

    fn process_udp(&mut self, now: Instant, udp: &mut UdpClient<SocketAddr>, complete: Complete<'_>) {
        loop {
            while let Some(event) = udp.poll_event() {
                match event {
                    UdpEvent::Open(socket, to) => {
                        assert!(self.sockets.insert(socket, to).is_none(), "a socket is opened twice");
                    }
                    UdpEvent::Close(socket) => {
                        assert!(self.sockets.remove(&socket).is_some(), "a socket is closed twice");
                    }
                    UdpEvent::Completed(query, outcome) => complete((true, query), outcome),
                }
            }
            let Some(transmit) = udp.poll_transmit() else { return };
            let (socket, datagram) = (transmit.socket, transmit.datagram.to_vec());
            self.answer_datagram(now, socket, &datagram);
        }
    }

    /// Plays the network and the upstream for a datagram.
    fn answer_datagram(&mut self, now: Instant, socket: SocketId, query: &[u8]) {
        let to = *self.sockets.get(&socket).expect("a datagram from an open socket");
        let Upstream { condition, latency_max, loss, duplication, forgery, truncation } = self.upstream(to);
        let mut replies = Vec::new();
        if condition == Condition::Refusing {
            let at = now + self.random.millis(latency_max);
            return self.push(at, Arrival::Unreachable(socket));
        }
        if condition == Condition::Silent || self.random.is(loss) {
            return;
        }
        if condition == Condition::Lying || self.random.is(forgery) {
            replies.push(forged(query, now, &mut self.random));
        }
        let kind = match condition {
            Condition::Failing => Kind::ServFail,
            _ if self.random.is(truncation) => Kind::Truncated,
            _ => Kind::True,
        };
        for _ in 0..=u64::from(self.random.is(duplication)) {
            if condition != Condition::Lying && !self.random.is(loss) {
                replies.push(outside::respond(query, now, kind));
            }
        }
        for reply in replies.into_iter().flatten() {
            let at = now + self.random.millis(latency_max);
            self.push(at, Arrival::Datagram(socket, reply));
        }
    }

    fn open_link(&mut self, now: Instant, id: ConnectionId, to: SocketAddr) {
        let upstream = self.upstream(to);
        let at = now + self.random.millis(upstream.latency_max);
        let link = Link { to, frames: FrameReader::default(), last_arrival: at };
        assert!(self.links.insert(id, link).is_none(), "a connection is opened twice");
        match upstream.condition {
            Condition::Refusing => self.push(at, Arrival::Closed(id, "dial")),
            Condition::Silent => {}
            _ => self.push(at, Arrival::Connected(id)),
        }
    }

    /// Moves bytes from a connection to its upstream, which answers each query in them.
    fn transmit(&mut self, now: Instant, id: ConnectionId, streams: &mut StreamClient<SocketAddr>) {
        let mut queries = Vec::new();
        while let Some(link) = self.links.get_mut(&id) {
            let Some(bytes) = streams.poll_transmit(id) else { break };
            let length = 1 + self.random.index(bytes.len());
            let mut accepted = &bytes[..length];
            while let Some(frame) = link.frames.next_frame(&mut accepted) {
                queries.push(frame.to_vec());
            }
            streams.handle_transmitted(id, length);
        }
        queries.into_iter().for_each(|query| self.answer_stream(now, id, &query));
    }

    fn answer_stream(&mut self, now: Instant, id: ConnectionId, query: &[u8]) {
        let Some(to) = self.links.get(&id).map(|link| link.to) else { return };
        let Upstream { condition, latency_max, forgery, .. } = self.upstream(to);
        match condition {
            Condition::Silent => return,
            Condition::Refusing | Condition::Resetting => {
                let at = now + self.random.millis(latency_max);
                return self.push(at, Arrival::Closed(id, "read"));
            }
            _ => {}
        }
        if condition == Condition::Lying || self.random.is(forgery) {
            let lie = forged(query, now, &mut self.random);
            self.send(now, id, lie, latency_max);
        }
        if condition != Condition::Lying {
            let kind = if condition == Condition::Failing { Kind::ServFail } else { Kind::True };
            self.send(now, id, outside::respond(query, now, kind), latency_max);
        }
    }

    /// Sends a message in pieces, which arrive in order.
    fn send(&mut self, now: Instant, id: ConnectionId, message: Option<Vec<u8>>, latency_max: u64) {
        let Some(message) = message else { return };
        let message_id = Header::read(&message).map_or(0, |header| header.id);
        let mut bytes = Vec::new();
        if append_frame(&mut bytes, message_id, &message).is_none() {
            return;
        }
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(1 + self.random.index(rest.len()));
            let arrives = now + self.random.millis(latency_max);
            let Some(link) = self.links.get_mut(&id) else { return };
            link.last_arrival = link.last_arrival.max(arrives);
            let at = link.last_arrival;
            self.push(at, Arrival::Bytes(id, piece.to_vec()));
            rest = after;
        }
    }
}

fn refused(during: &'static str) -> QueryError {
    QueryError::Network { during, error: "connection refused".to_owned() }
}

/// Returns a response that must not be accepted: another message ID, another question, another opcode, or no response.
fn forged(query: &[u8], now: Instant, random: &mut Generator) -> Option<Vec<u8>> {
    let mut forged = outside::respond(query, now, Kind::Forged)?;
    match random.below(5) {
        0 => forged[0] ^= 1 + u8::try_from(random.below(255)).unwrap_or_default(),
        1 => forged[13] ^= 1,
        2 => forged[2] ^= 4 << 3,
        3 => forged[2] &= 0x7f,
        _ => forged.truncate(14),
    }
    Some(forged)
}

/// Returns message IDs of a small range, so that the same are in flight again.
pub(super) fn random_ids(mut random: Generator) -> Random {
    Box::new(move || u16::try_from(random.below(1 << 12)).unwrap_or_default())
}
