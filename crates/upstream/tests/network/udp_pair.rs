//! UDP client and upstream.

use core::time::Duration;
use std::collections::{HashMap, HashSet};

use host::Instant;
use upstream::{Mismatch, QueryError, QueryId, SocketId, UdpClient, UdpEvent, UdpQuery};
use wire::Reply;

use super::{Conditions, END, FORGED, Generator, Timeline, forged, id_of, in_order, number_of, query, reply};

/// Limits of the client that the pair checks.
const USES_MAX: usize = 8;
const SOCKETS_PER_ROUTE: usize = 64;

/// Datagram or ICMP error on its way to a socket.
enum Arrival {
    Datagram(SocketId, Vec<u8>),
    Unreachable(SocketId),
}

/// State of a query, from the point of view of its sender.
struct Sent {
    socket: SocketId,
    deadline: Instant,
    /// Message as sent first.
    message: Option<Vec<u8>>,
    transmits: usize,
}

pub(crate) struct UdpPair {
    pub(crate) client: UdpClient<u8>,
    pub(crate) now: Instant,
    pub(crate) conditions: Conditions,
    pub(crate) outcomes: HashMap<QueryId, (Instant, Result<Reply, QueryError>)>,
    pub(crate) open: HashSet<SocketId>,
    /// Number of queries per socket.
    pub(crate) uses: HashMap<SocketId, usize>,
    /// Reasons for which replies were ignored.
    pub(crate) ignored: Vec<Mismatch>,
    random: Generator,
    arrivals: Timeline<Arrival>,
    sent: HashMap<QueryId, Sent>,
    routes: HashSet<u8>,
    numbers: u64,
}

impl UdpPair {
    pub(crate) fn new(seed: u64, conditions: Conditions) -> UdpPair {
        let mut random = Generator(seed);
        UdpPair {
            client: UdpClient::new(random.message_ids()),
            now: Instant::START,
            conditions,
            outcomes: HashMap::new(),
            open: HashSet::new(),
            uses: HashMap::new(),
            ignored: Vec::new(),
            random,
            arrivals: Timeline::default(),
            sent: HashMap::new(),
            routes: HashSet::new(),
            numbers: 0,
        }
    }

    /// Starts a query with an own question. Returns its key, or `None` if it could not be started.
    pub(crate) fn start(&mut self, route: u8, within: Duration, retransmit_after: Option<Duration>) -> Option<QueryId> {
        self.numbers += 1;
        self.routes.insert(route);
        let deadline = self.now + within;
        let message = query(self.numbers);
        let query = UdpQuery { route: &route, message: &message, deadline, retransmit_after };
        let started = self.client.start(self.now, &query).ok()?;
        let sent = Sent { socket: started.socket, deadline, message: None, transmits: 0 };
        assert!(self.sent.insert(started.query, sent).is_none(), "a query key is used twice");
        let uses = self.uses.entry(started.socket).or_default();
        *uses += 1;
        assert!(*uses <= USES_MAX, "a port carries {uses} queries");
        assert_eq!(started.is_reused, *uses > 1);
        self.process();
        Some(started.query)
    }

    pub(crate) fn cancel(&mut self, query: QueryId) {
        self.client.cancel(query);
        self.sent.remove(&query);
        self.process();
    }

    pub(crate) fn pending(&self) -> Vec<QueryId> {
        in_order(&self.sent)
    }

    /// Moves time to the next event, but not beyond `until`. Returns false if no event is left.
    pub(crate) fn step(&mut self, until: Instant) -> bool {
        if !self.arrivals.advance(&mut self.now, self.client.poll_timeout(), until) {
            return false;
        }
        while let Some(arrival) = self.arrivals.pop_until(self.now) {
            match arrival {
                Arrival::Datagram(socket, datagram) if self.open.contains(&socket) => {
                    self.ignored.extend(self.client.handle_input(socket, &datagram));
                }
                Arrival::Unreachable(socket) if self.open.contains(&socket) => {
                    let error = QueryError::Network { during: "read", error: "connection refused".to_owned() };
                    self.client.handle_error(self.now, socket, &error);
                }
                _ => {}
            }
        }
        self.client.handle_timeout(self.now);
        self.process();
        true
    }

    /// Runs until nothing happens any more.
    pub(crate) fn run(&mut self) {
        while self.step(END) {}
    }

    fn process(&mut self) {
        loop {
            while let Some(event) = self.client.poll_event() {
                self.act(event);
            }
            let Some(transmit) = self.client.poll_transmit() else { break };
            let (query, socket, datagram) = (transmit.query, transmit.socket, transmit.datagram.to_vec());
            self.transmit(query, socket, &datagram);
        }
        assert_eq!(self.client.sockets(), self.open.len());
        assert!(self.open.len() <= self.routes.len() * SOCKETS_PER_ROUTE + self.sent.len(), "too many sockets");
    }

    fn act(&mut self, event: UdpEvent<u8>) {
        match event {
            UdpEvent::Open(socket, _) if self.random.is(self.conditions.unopened) => {
                let error = QueryError::Network { during: "dial", error: "too many open files".to_owned() };
                self.client.handle_open_error(socket, &error);
            }
            UdpEvent::Open(socket, _) => assert!(self.open.insert(socket), "a socket is opened twice"),
            UdpEvent::Close(socket) => {
                assert!(self.open.remove(&socket), "a socket is closed twice");
                assert!(self.sent.values().all(|sent| sent.socket != socket), "a socket in use is closed");
            }
            UdpEvent::Completed(query, outcome) => self.complete(query, outcome),
        }
    }

    fn complete(&mut self, query: QueryId, outcome: Result<Reply, QueryError>) {
        let sent = self.sent.remove(&query).expect("a query completes once, and not after it was cancelled");
        assert!(self.now <= sent.deadline, "a query completes {:?} late", self.now.since(sent.deadline));
        match &outcome {
            Ok(reply) => {
                let message = sent.message.expect("a query that was sent");
                assert_ne!(reply.rcode(), FORGED, "a forged reply is accepted");
                assert_eq!(number_of(reply.bytes()), number_of(&message), "a reply to another query is accepted");
                assert_eq!(reply.header().id, id_of(&message));
            }
            Err(QueryError::Timeout) => assert_eq!(self.now, sent.deadline),
            Err(_) => {}
        }
        self.outcomes.insert(query, (self.now, outcome));
    }

    fn transmit(&mut self, query: QueryId, socket: SocketId, datagram: &[u8]) {
        assert!(self.open.contains(&socket), "a datagram on a closed socket");
        let in_flight = self.sent.iter().filter(|(other, sent)| sent.socket == socket && **other != query);
        let ids: Vec<u16> = in_flight.filter_map(|(_, sent)| sent.message.as_deref().map(id_of)).collect();
        assert!(!ids.contains(&id_of(datagram)), "a message ID is in flight twice");
        let sent = self.sent.get_mut(&query).expect("a query in flight");
        sent.transmits += 1;
        assert!(sent.transmits <= 2 && sent.socket == socket, "a query is sent more than twice, or from two ports");
        assert_eq!(*sent.message.get_or_insert_with(|| datagram.to_vec()), datagram);
        self.answer(socket, datagram);
    }

    /// Plays the network and the upstream.
    fn answer(&mut self, socket: SocketId, datagram: &[u8]) {
        let Conditions { latency_max, loss, duplication, forgery, reset, .. } = self.conditions;
        let (random, now) = (&mut self.random, self.now);
        let mut arrive = |arrival, random: &mut Generator| self.arrivals.push(now + random.up_to(latency_max), arrival);
        if random.is(forgery) {
            arrive(Arrival::Datagram(socket, forged(datagram, random)), random);
        }
        if random.is(reset) {
            return arrive(Arrival::Unreachable(socket), random);
        }
        for _ in 0..=u64::from(random.is(duplication)) {
            if !random.is(loss) {
                arrive(Arrival::Datagram(socket, reply(datagram)), random);
            }
        }
    }
}
