//! Simulated network to the upstreams, driven by the clients of the crate `upstream` as in the server.

mod wires;

use core::cell::RefCell;
use core::future::poll_fn;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use engine::{
    Clock as _, Exchange, ExchangeError, ExchangeReply, Instant, LocalFuture, Transport, Unwanted, UnwantedReplies,
};
use testkit::VirtualTime;
use upstream::{Mismatch, PoolLimits, PoolQuery, QueryError, QueryId, StreamClient, UdpClient, UdpQuery};
use wire::Reply;

use crate::random::Generator;
pub(crate) use wires::Upstream;
use wires::{Wires, random_ids};

/// Query in flight: its transport and its key there.
type Flight = (bool, QueryId);

/// Network with the upstreams.
pub(crate) struct Net {
    time: VirtualTime,
    state: RefCell<State>,
}

struct State {
    udp: UdpClient<SocketAddr>,
    streams: StreamClient<SocketAddr>,
    wires: Wires,
    flights: BTreeMap<Flight, FlightState>,
}

struct FlightState {
    waker: Option<Waker>,
    outcome: Option<Result<Reply, QueryError>>,
    unwanted: Option<Arc<UnwantedReplies>>,
}

/// Query that is waited for. Dropping it ends the query.
struct Pending {
    net: Rc<Net>,
    flight: Flight,
}

impl Drop for Pending {
    fn drop(&mut self) {
        let now = self.net.time.now();
        let state = &mut *self.net.state.borrow_mut();
        let is_over = state.flights.remove(&self.flight).is_none_or(|flight| flight.outcome.is_some());
        match self.flight {
            _ if is_over => {}
            (true, query) => state.udp.cancel(query),
            (false, query) => state.streams.cancel(now, query),
        }
        state.process(now);
    }
}

impl Net {
    pub(crate) fn new(time: &VirtualTime, random: &mut Generator) -> Rc<Net> {
        let mut ids = || random_ids(random.fork());
        let (udp, streams) = (UdpClient::new(ids()), StreamClient::new(ids()));
        let state = State { udp, streams, wires: Wires::new(random.fork()), flights: BTreeMap::new() };
        Rc::new(Net { time: time.clone(), state: RefCell::new(state) })
    }

    /// Changes what an upstream does.
    pub(crate) fn set(&self, address: SocketAddr, upstream: Upstream) {
        self.state.borrow_mut().wires.set(address, upstream);
    }

    /// Breaks all connections to upstreams.
    pub(crate) fn disconnect(&self) {
        let now = self.time.now();
        self.state.borrow_mut().wires.break_links(now);
    }

    /// Returns the number of queries in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.state.borrow().flights.len()
    }

    fn start(&self, exchange: &Exchange<'_>) -> Result<Flight, QueryError> {
        let now = self.time.now();
        let Exchange { to, over, query: message, until, connections, retransmit_after, unwanted, .. } = *exchange;
        let state = &mut *self.state.borrow_mut();
        state.advance(now);
        let flight = if over == Transport::Udp {
            let query = UdpQuery { route: &to, message, deadline: until, retransmit_after };
            (true, state.udp.start(now, &query)?.query)
        } else {
            let engine::Connections { idle_max, age_max, kept_max, .. } = connections;
            let limits = PoolLimits { idle_max, age_max, kept_max };
            (false, state.streams.start(now, &PoolQuery { route: &to, message, deadline: until, limits })?)
        };
        let known = FlightState { waker: None, outcome: None, unwanted: unwanted.cloned() };
        assert!(state.flights.insert(flight, known).is_none(), "a query key is used twice");
        state.process(now);
        Ok(flight)
    }

    fn poll(&self, flight: Flight, context: &Context<'_>) -> Poll<Result<Reply, QueryError>> {
        let state = &mut *self.state.borrow_mut();
        state.advance(self.time.now());
        let known = state.flights.get_mut(&flight).expect("a query in flight");
        known.waker = Some(context.waker().clone());
        known.outcome.take().map_or(Poll::Pending, |outcome| {
            state.flights.remove(&flight);
            Poll::Ready(outcome)
        })
    }

    fn next(&self) -> Instant {
        let state = self.state.borrow();
        let times = [state.udp.poll_timeout(), state.streams.poll_timeout(), state.wires.next()];
        times.into_iter().flatten().min().unwrap_or(Instant::from_nanos(u64::MAX))
    }
}

impl State {
    /// Processes what has happened until now.
    fn advance(&mut self, now: Instant) {
        let mut has_advanced = false;
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        loop {
            let State { udp, streams, wires, .. } = self;
            if let Some(mismatches) = wires.arrive(now, udp, streams) {
                mismatches.into_iter().for_each(|mismatch| self.count(mismatch));
            } else if is_due(udp.poll_timeout()) || is_due(streams.poll_timeout()) {
                udp.handle_timeout(now);
                streams.handle_timeout(now);
            } else {
                break;
            }
            self.process(now);
            has_advanced = true;
        }
        if has_advanced {
            // The timers of all queries may be others now.
            self.flights.values_mut().filter_map(|flight| flight.waker.take()).for_each(Waker::wake);
        }
    }

    fn process(&mut self, now: Instant) {
        let State { udp, streams, wires, flights } = self;
        wires.process(now, udp, streams, &mut |flight, outcome| {
            let Some(known) = flights.get_mut(&flight) else { return };
            assert!(known.outcome.replace(outcome).is_none(), "a query completes once");
            known.waker.take().into_iter().for_each(Waker::wake);
        });
    }

    /// Counts a reply that was ignored, as the server does: for one of the queries in flight.
    fn count(&self, mismatch: Mismatch) {
        let counters = self.flights.values().find_map(|flight| flight.unwanted.as_ref());
        let reason = match mismatch {
            Mismatch::Late => Unwanted::Late,
            Mismatch::Id => Unwanted::Id,
            Mismatch::Question => Unwanted::Question,
        };
        counters.into_iter().for_each(|counters| counters.add(reason));
    }
}

impl testkit::Network for Net {
    fn exchange<'a>(self: Rc<Self>, exchange: Exchange<'a>) -> LocalFuture<'a, Result<ExchangeReply, ExchangeError>> {
        Box::pin(async move {
            let flight = self.start(&exchange).map_err(error)?;
            let pending = Pending { net: self, flight };
            let net = &pending.net;
            let mut timer: Pin<Box<dyn Future<Output = ()>>> = Box::pin(core::future::pending());
            let outcome = poll_fn(|context| {
                loop {
                    if let Poll::Ready(outcome) = net.poll(flight, context) {
                        return Poll::Ready(outcome);
                    }
                    timer = Box::pin(net.time.sleep_until(net.next()));
                    if timer.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                }
            });
            let reply = outcome.await.map_err(error)?;
            Ok(ExchangeReply { reply, reused: false, local: None })
        })
    }
}

/// Converts the error of a query, as the server does.
fn error(error: QueryError) -> ExchangeError {
    match error {
        QueryError::Timeout => ExchangeError::Timeout { local: None },
        QueryError::Unconnected => ExchangeError::Network { during: "dial", error: "i/o timeout".to_owned() },
        QueryError::Network { during, error } => ExchangeError::Network { during, error },
        QueryError::Closed => ExchangeError::Closed,
        QueryError::Malformed => ExchangeError::Unreadable,
        QueryError::Exhausted => ExchangeError::Exhausted,
    }
}
