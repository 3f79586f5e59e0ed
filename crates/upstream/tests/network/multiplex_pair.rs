//! Multiplexed client and upstream.

use core::time::Duration;
use std::collections::{BTreeMap, HashMap, HashSet};

use host::Instant;
use upstream::{ConnectionId, MultiplexClient, PoolEvent, PoolLimits, PoolQuery, PoolReply, QueryError, QueryId};

use super::{Conditions, END, Generator, Timeline, forged, id_of, in_order, number_of, query, reply};

/// Connections per route that take new queries.
const CONNECTIONS_PER_ROUTE: usize = 16;
/// Number of queries on a connection that the client never exceeds.
const STREAMS_MAX: usize = 100;

/// Event at the client's end of a connection.
enum Arrival {
    Connected,
    Refused,
    Response(QueryId, Vec<u8>),
    Reset,
    /// The upstream announces that it will close the connection.
    GoingAway,
    /// The upstream allows streams again.
    Capacity,
}

/// State of a query, from the point of view of its sender.
struct Sent {
    started: Instant,
    deadline: Instant,
    /// Connections that have carried the query.
    carriers: Vec<ConnectionId>,
}

/// Both ends of a connection.
struct Link {
    is_connected: bool,
    /// True while the upstream allows no further stream.
    is_blocked: bool,
    /// Queries without a response.
    open: HashSet<QueryId>,
    /// Time at which it was retired.
    retired: Option<Instant>,
}

pub(crate) struct MultiplexPair {
    pub(crate) client: MultiplexClient<u8>,
    pub(crate) now: Instant,
    pub(crate) conditions: Conditions,
    pub(crate) limits: PoolLimits,
    /// Number of streams that the upstream announces, and that it really allows.
    pub(crate) streams: (usize, usize),
    pub(crate) outcomes: HashMap<QueryId, Result<PoolReply, QueryError>>,
    /// Connections that the client has requested so far.
    pub(crate) opened: usize,
    random: Generator,
    arrivals: Timeline<(ConnectionId, Arrival)>,
    links: BTreeMap<ConnectionId, Link>,
    sent: HashMap<QueryId, Sent>,
    by_number: HashMap<u64, QueryId>,
    routes: HashSet<u8>,
    numbers: u64,
}

impl MultiplexPair {
    pub(crate) fn new(seed: u64, conditions: Conditions) -> MultiplexPair {
        let mut random = Generator(seed);
        MultiplexPair {
            client: MultiplexClient::new(random.message_ids()),
            now: Instant::START,
            conditions,
            limits: PoolLimits { idle_max: Duration::from_secs(10), age_max: Duration::ZERO, kept_max: 0 },
            streams: (STREAMS_MAX, STREAMS_MAX),
            outcomes: HashMap::new(),
            opened: 0,
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
        let sent = Sent { started: self.now, deadline, carriers: Vec::new() };
        assert!(self.sent.insert(id, sent).is_none(), "a query key is used twice");
        self.by_number.insert(self.numbers, id);
        self.process();
        id
    }

    pub(crate) fn cancel(&mut self, query: QueryId) {
        self.client.cancel(self.now, query);
        self.sent.remove(&query);
        self.forget(query);
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

    /// Announces the end of all connections.
    pub(crate) fn go_away(&mut self) {
        let links: Vec<ConnectionId> = self.links.keys().copied().collect();
        links.into_iter().for_each(|id| self.arrivals.push(self.now, (id, Arrival::GoingAway)));
    }

    /// Returns the number of connections that both ends know.
    pub(crate) fn connections(&self) -> usize {
        self.links.len()
    }

    fn arrive(&mut self, id: ConnectionId, arrival: Arrival) {
        match arrival {
            Arrival::Connected => {
                self.link(id).is_connected = true;
                self.client.handle_connected(self.now, id);
                self.client.handle_capacity(self.now, id, self.streams.0);
            }
            Arrival::Refused => self.end(id, "dial"),
            Arrival::Response(query, message) => {
                self.link(id).open.remove(&query);
                self.client.handle_response(self.now, query, id, Ok(message));
            }
            Arrival::Reset => self.end(id, "read"),
            Arrival::GoingAway => {
                self.client.handle_going_away(id);
                let now = self.now;
                self.link(id).retired.get_or_insert(now);
            }
            Arrival::Capacity => {
                self.link(id).is_blocked = false;
                self.client.handle_capacity(self.now, id, self.streams.0);
            }
        }
    }

    fn link(&mut self, id: ConnectionId) -> &mut Link {
        self.links.get_mut(&id).expect("a link")
    }

    fn end(&mut self, id: ConnectionId, during: &'static str) {
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
        let link = Link { is_connected: false, is_blocked: false, open: HashSet::new(), retired: None };
        assert!(self.links.insert(id, link).is_none(), "a connection is opened twice");
        match self.random.is(unopened) {
            true if self.random.is(loss) => {}
            true => self.arrivals.push(at, (id, Arrival::Refused)),
            false => self.arrivals.push(at, (id, Arrival::Connected)),
        }
    }

    /// Moves queries from the client to the upstream, which answers each.
    fn transmit(&mut self, id: ConnectionId) {
        while let Some((query, message)) = self.client.poll_query(id) {
            let message = message.to_vec();
            assert!(self.links[&id].is_connected, "a query on a connection that is not open");
            if self.links[&id].open.len() >= self.streams.1 {
                if !core::mem::replace(&mut self.link(id).is_blocked, true) {
                    let at = self.now + Duration::from_millis(1) + self.random.up_to(self.conditions.latency_max);
                    self.arrivals.push(at, (id, Arrival::Capacity));
                }
                self.client.handle_unsent(self.now, query);
                continue;
            }
            self.check(id, query, &message);
            self.answer(id, query, &message);
        }
    }

    fn check(&mut self, id: ConnectionId, query: QueryId, message: &[u8]) {
        assert_eq!((self.by_number[&number_of(message)], id_of(message)), (query, 0));
        let sent = self.sent.get_mut(&query).expect("a query that is waited for");
        sent.carriers.push(id);
        assert!(sent.carriers.len() <= 2, "a query is retried once");
        let started = sent.started;
        let link = self.link(id);
        assert!(link.retired.is_none_or(|at| started <= at), "a retired connection takes a query");
        assert!(link.open.insert(query) && link.open.len() <= STREAMS_MAX);
    }

    fn answer(&mut self, id: ConnectionId, query: QueryId, message: &[u8]) {
        let Conditions { latency_max, loss, forgery, reset, .. } = self.conditions;
        let at = self.now + self.random.up_to(latency_max);
        if self.random.is(reset) {
            let arrival = if self.random.is(50) { Arrival::Reset } else { Arrival::GoingAway };
            self.arrivals.push(at, (id, arrival));
        }
        if !self.random.is(loss) {
            let is_forged = self.random.is(forgery);
            let message = if is_forged { forged(message, &mut self.random) } else { reply(message) };
            self.arrivals.push(at, (id, Arrival::Response(query, message)));
        }
    }

    /// Ends the stream of a query that the client has given up.
    fn forget(&mut self, query: QueryId) {
        for link in self.links.values_mut() {
            link.open.remove(&query);
        }
    }

    fn complete(&mut self, query: QueryId, outcome: Result<PoolReply, QueryError>) {
        let sent = self.sent.remove(&query).expect("a query completes once, and not after it was cancelled");
        assert!(self.now <= sent.deadline, "a query completes {:?} late", self.now.since(sent.deadline));
        self.forget(query);
        match &outcome {
            Ok(answered) => {
                assert_eq!(self.by_number[&number_of(answered.reply.bytes())], query, "a reply to another query");
                assert_eq!(sent.carriers.last(), Some(&answered.connection));
            }
            Err(QueryError::Timeout) => assert_eq!(self.now, sent.deadline),
            Err(_) => {}
        }
        self.outcomes.insert(query, outcome);
    }
}
