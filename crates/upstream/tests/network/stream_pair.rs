//! Stream client and upstream.

use core::time::Duration;
use std::collections::{BTreeMap, HashMap, HashSet};

use host::Instant;
use upstream::{
    ConnectionId, FrameReader, Mismatch, PoolEvent, PoolLimits, PoolQuery, PoolReply, QueryError, QueryId,
    StreamClient, append_frame,
};

use super::{Conditions, END, FORGED, Generator, Timeline, forged, id_of, in_order, number_of, query, reply};

/// Connections per route that take new queries, while fewer than 64 queries are in flight on each.
const CONNECTIONS_PER_ROUTE: usize = 8;

/// Event at the client's end of a connection.
enum Arrival {
    Connected,
    Refused,
    Bytes(Vec<u8>),
    Reset,
    /// The transport accepts bytes again.
    Writable,
}

/// State of a query, from the point of view of its sender.
struct Sent {
    started: Instant,
    deadline: Instant,
    /// Connection on which the upstream has seen the query last, and its message ID.
    carrier: Option<(ConnectionId, u16)>,
}

/// Both ends of a connection.
struct Link {
    is_connected: bool,
    is_writable: bool,
    upstream: FrameReader,
    /// Time at which the last bytes on the way to the client arrive. A stream keeps the order.
    last_arrival: Instant,
    /// Time at which a query on it has timed out.
    retired: Option<Instant>,
}

pub(crate) struct StreamPair {
    pub(crate) client: StreamClient<u8>,
    pub(crate) now: Instant,
    pub(crate) conditions: Conditions,
    pub(crate) limits: PoolLimits,
    pub(crate) outcomes: HashMap<QueryId, Result<PoolReply, QueryError>>,
    /// Connections that the client has requested so far, and those that failed.
    pub(crate) opened: usize,
    pub(crate) failed: usize,
    /// Number of connections after which the upstream answers no handshake.
    pub(crate) handshakes_max: usize,
    /// Reasons for which replies were ignored.
    pub(crate) ignored: Vec<Mismatch>,
    random: Generator,
    arrivals: Timeline<(ConnectionId, Arrival)>,
    links: BTreeMap<ConnectionId, Link>,
    sent: HashMap<QueryId, Sent>,
    by_number: HashMap<u64, QueryId>,
    routes: HashSet<u8>,
    numbers: u64,
}

impl StreamPair {
    pub(crate) fn new(seed: u64, conditions: Conditions) -> StreamPair {
        let mut random = Generator(seed);
        StreamPair {
            client: StreamClient::new(random.message_ids()),
            now: Instant::START,
            conditions,
            limits: PoolLimits { idle_max: Duration::from_secs(10), age_max: Duration::ZERO, kept_max: 0 },
            outcomes: HashMap::new(),
            opened: 0,
            failed: 0,
            handshakes_max: usize::MAX,
            ignored: Vec::new(),
            random,
            arrivals: Timeline::default(),
            links: BTreeMap::new(),
            sent: HashMap::new(),
            by_number: HashMap::new(),
            routes: HashSet::new(),
            numbers: 0,
        }
    }

    /// Starts a query with an own question.
    pub(crate) fn start(&mut self, route: u8, within: Duration) -> QueryId {
        self.numbers += 1;
        let (message, deadline) = (query(self.numbers), self.now + within);
        let query = PoolQuery { route: &route, message: &message, deadline, limits: self.limits };
        let id = self.client.start(self.now, &query).expect("a short query");
        let sent = Sent { started: self.now, deadline, carrier: None };
        assert!(self.sent.insert(id, sent).is_none(), "a query key is used twice");
        self.by_number.insert(self.numbers, id);
        self.process();
        id
    }

    pub(crate) fn cancel(&mut self, query: QueryId) {
        self.client.cancel(self.now, query);
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
        while let Some((id, arrival)) = self.arrivals.pop_until(self.now) {
            if self.links.contains_key(&id) {
                self.arrive(id, arrival);
                self.process();
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

    /// Closes all connections from the upstream's side.
    pub(crate) fn reset_all(&mut self) {
        let links: Vec<ConnectionId> = self.links.keys().copied().collect();
        links.into_iter().for_each(|id| self.arrivals.push(self.now, (id, Arrival::Reset)));
    }

    /// Returns the number of connections that both ends know.
    pub(crate) fn connections(&self) -> usize {
        self.links.len()
    }

    fn arrive(&mut self, id: ConnectionId, arrival: Arrival) {
        match arrival {
            Arrival::Connected => {
                self.links.get_mut(&id).expect("a link").is_connected = true;
                self.client.handle_connected(self.now, id);
            }
            Arrival::Refused => self.fail(id, "dial"),
            Arrival::Bytes(bytes) => {
                self.client.handle_input(self.now, id, &bytes, |reason| self.ignored.push(reason));
            }
            Arrival::Reset => self.fail(id, "read"),
            Arrival::Writable => {
                self.links.get_mut(&id).expect("a link").is_writable = true;
                self.transmit(id);
            }
        }
    }

    fn fail(&mut self, id: ConnectionId, during: &'static str) {
        self.failed += 1;
        self.links.remove(&id);
        let error = QueryError::Network { during, error: "connection reset".to_owned() };
        self.client.handle_closed(self.now, id, &error);
    }

    fn process(&mut self) {
        while let Some(event) = self.client.poll_event() {
            match event {
                PoolEvent::Open(id, route) => self.open(id, route),
                PoolEvent::Transmit(id) => self.transmit(id),
                PoolEvent::Close(id) => assert!(self.links.remove(&id).is_some(), "a connection is closed twice"),
                PoolEvent::Completed(query, outcome) => self.complete(query, outcome),
            }
        }
        assert_eq!(self.client.connections(), self.links.len());
        // Each retired connection has a query in flight.
        let retired_max = self.sent.len();
        assert!(self.links.len() <= self.routes.len() * CONNECTIONS_PER_ROUTE + retired_max, "too many connections");
    }

    fn open(&mut self, id: ConnectionId, route: u8) {
        self.opened += 1;
        self.routes.insert(route);
        let Conditions { latency_max, unopened, loss, .. } = self.conditions;
        let at = self.now + self.random.up_to(latency_max);
        let link = Link {
            is_connected: false,
            is_writable: true,
            upstream: FrameReader::default(),
            last_arrival: at,
            retired: None,
        };
        assert!(self.links.insert(id, link).is_none(), "a connection is opened twice");
        match self.random.is(unopened) {
            _ if self.opened > self.handshakes_max => {}
            true if self.random.is(loss) => {}
            true => self.arrivals.push(at, (id, Arrival::Refused)),
            false => self.arrivals.push(at, (id, Arrival::Connected)),
        }
    }

    /// Moves bytes from the client to the upstream, until the transport accepts no more.
    fn transmit(&mut self, id: ConnectionId) {
        while let Some(link) = self.links.get_mut(&id).filter(|link| link.is_writable) {
            assert!(link.is_connected, "bytes on a connection that is not open");
            let Some(bytes) = self.client.poll_transmit(id) else { return };
            let length = 1 + usize::try_from(self.random.below(bytes.len() as u64)).expect("a length");
            let accepted = bytes[..length].to_vec();
            self.client.handle_transmitted(id, length);
            if self.random.is(10) {
                link.is_writable = false;
                let at = self.now + self.random.up_to(self.conditions.latency_max);
                self.arrivals.push(at, (id, Arrival::Writable));
            }
            self.receive(id, &accepted);
        }
    }

    /// Plays the upstream: reads queries and answers each.
    fn receive(&mut self, id: ConnectionId, mut bytes: &[u8]) {
        let mut queries = Vec::new();
        let link = self.links.get_mut(&id).expect("a link");
        while let Some(frame) = link.upstream.next_frame(&mut bytes) {
            queries.push(frame.to_vec());
        }
        for query in queries {
            self.check(id, &query);
            self.answer(id, &query);
        }
    }

    fn check(&mut self, id: ConnectionId, query: &[u8]) {
        let key = self.by_number[&number_of(query)];
        let carrier = (id, id_of(query));
        let is_taken = self.sent.iter().any(|(other, sent)| *other != key && sent.carrier == Some(carrier));
        assert!(!is_taken, "a message ID is in flight twice");
        let Some(sent) = self.sent.get_mut(&key) else { return };
        sent.carrier = Some(carrier);
        let retired = self.links[&id].retired;
        assert!(retired.is_none_or(|at| sent.started <= at), "a retired connection takes a query");
    }

    fn answer(&mut self, id: ConnectionId, query: &[u8]) {
        let Conditions { latency_max, loss, duplication, forgery, reset, .. } = self.conditions;
        if self.random.is(forgery) {
            let forged = forged(query, &mut self.random);
            self.send(id, &forged);
        }
        if self.random.is(reset) {
            let at = self.now + self.random.up_to(latency_max);
            return self.arrivals.push(at, (id, Arrival::Reset));
        }
        if !self.random.is(loss) {
            for _ in 0..=u64::from(self.random.is(duplication)) {
                self.send(id, &reply(query));
            }
        }
    }

    /// Sends a message to the client, in pieces that arrive in order.
    fn send(&mut self, id: ConnectionId, message: &[u8]) {
        let mut bytes = Vec::new();
        append_frame(&mut bytes, id_of(message), message).expect("a short message");
        let mut rest = bytes.as_slice();
        let link = self.links.get_mut(&id).expect("a link");
        while !rest.is_empty() {
            let length = 1 + usize::try_from(self.random.below(rest.len() as u64)).expect("a length");
            let (piece, after) = rest.split_at(length);
            link.last_arrival = link.last_arrival.max(self.now + self.random.up_to(self.conditions.latency_max));
            self.arrivals.push(link.last_arrival, (id, Arrival::Bytes(piece.to_vec())));
            rest = after;
        }
    }

    fn complete(&mut self, query: QueryId, outcome: Result<PoolReply, QueryError>) {
        let sent = self.sent.remove(&query).expect("a query completes once, and not after it was cancelled");
        assert!(self.now <= sent.deadline, "a query completes {:?} late", self.now.since(sent.deadline));
        match &outcome {
            Ok(answered) => {
                assert_ne!(answered.reply.rcode(), FORGED, "a forged reply is accepted");
                assert_eq!(self.by_number[&number_of(answered.reply.bytes())], query, "a reply to another query");
                assert_eq!(sent.carrier, Some((answered.connection, answered.reply.header().id)));
            }
            Err(QueryError::Timeout) => {
                assert_eq!(self.now, sent.deadline);
                if let Some(link) = sent.carrier.and_then(|(id, _)| self.links.get_mut(&id)) {
                    link.retired.get_or_insert(self.now);
                }
            }
            Err(_) => {}
        }
        self.outcomes.insert(query, outcome);
    }
}
