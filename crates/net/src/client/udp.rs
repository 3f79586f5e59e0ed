//! UDP sockets of the client for upstreams.
//!
//! No task belongs to a socket: a query that waits for its reply reads its socket, on behalf of all queries that share
//! it. So a reply costs one wake-up.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use engine::{Exchange, ExchangeError, ExchangeReply, Instant, UnwantedReplies};
use foldhash::fast::RandomState;
use host::invariant::holds;
use tokio::io::Interest;
use upstream::{QueryError, QueryId, Random, SocketId, UdpEvent, UdpQuery};
use wire::Reply;

use super::outcomes::Outcomes;
use super::replies::Replies;
use super::socket::{Socket, is_unreachable};
use super::timer::{Timed, Timer, arm};
use super::{count_unwanted, exchange_error, network, now, query_error};

/// Length of the longest datagram in bytes.
const DATAGRAM_MAX: usize = 65_535;

/// Datagrams that a query reads before other tasks run. A burst of replies would delay the answers to local names
/// otherwise.
const READS_IN_A_ROW: usize = 8;

/// Address of an upstream, and the source address if one is configured.
type Route = (SocketAddr, Option<IpAddr>);

/// UDP client of one worker.
pub(crate) struct UdpClient(Rc<Driver>);

/// State machine, and the sockets that it uses.
struct Driver {
    client: RefCell<upstream::UdpClient<Route>>,
    sockets: RefCell<HashMap<SocketId, Rc<Socket>, RandomState>>,
    outcomes: Outcomes<Result<Reply, QueryError>>,
    timer: Timer,
}

/// Query that is waited for. Dropping it ends the query.
struct Pending<'a> {
    driver: &'a Driver,
    query: QueryId,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.driver.outcomes.forget(self.query) {
            self.driver.client.borrow_mut().cancel(self.query);
            self.driver.process();
        }
    }
}

impl UdpClient {
    pub(crate) fn new(random: Random, replies: &Rc<Replies>) -> UdpClient {
        UdpClient(Rc::new(Driver {
            client: RefCell::new(upstream::UdpClient::new(random)),
            sockets: RefCell::default(),
            outcomes: Outcomes::new(replies),
            timer: Timer::default(),
        }))
    }

    /// Sends one query, once more if `retransmit_after` is set. The future returns the reply. It does not keep the
    /// exchange, to be small.
    pub(crate) fn exchange<'a>(
        &'a self,
        exchange: Exchange<'a>,
    ) -> impl Future<Output = Result<ExchangeReply, ExchangeError>> + use<'a> {
        let Exchange { to, query: message, until, connections, retransmit_after, unwanted, .. } = exchange;
        let (route, deadline) = ((to, connections.source), until);
        let query = UdpQuery { route: &route, message, deadline, retransmit_after };
        let driver = &self.0;
        let started = driver.client.borrow_mut().start(now(), &query).map(|started| {
            driver.outcomes.expect(started.query);
            (Pending { driver, query: started.query }, started.socket, started.is_reused)
        });
        let unwanted = unwanted.map(|counters| &**counters);
        async move {
            let (pending, id, reused) = started.map_err(|error| exchange_error(error, None))?;
            driver.process();
            arm(driver);
            let socket = driver.sockets.borrow().get(&id).map(Rc::clone);
            let outcome = match &socket {
                Some(socket) => pending.receive(id, socket, unwanted).await?,
                None => driver.outcomes.wait(pending.query).await,
            };
            let local = socket.and_then(|socket| socket.local);
            let reply = outcome.map_err(|error| exchange_error(error, local))?;
            Ok(ExchangeReply { reply, reused, local })
        }
    }
}

impl Pending<'_> {
    /// Reads the socket until this query has completed.
    async fn receive(
        &self,
        id: SocketId,
        socket: &Socket,
        unwanted: Option<&UnwantedReplies>,
    ) -> Result<Result<Reply, QueryError>, ExchangeError> {
        loop {
            let ready = tokio::select! {
                biased;
                outcome = self.driver.outcomes.wait(self.query) => return Ok(outcome),
                // A pending socket error alone sets neither readable nor writable.
                ready = socket.socket.ready(Interest::READABLE | Interest::ERROR) => ready,
            };
            if ready.map_err(|error| network("read", &error))?.is_error()
                && let Some(error) = socket.take_error()
            {
                // The queries on the socket fail: no reply will come.
                self.driver.client.borrow_mut().handle_error(now(), id, &query_error("read", &error));
            }
            let is_drained = self.driver.read(id, socket, unwanted);
            self.driver.process();
            if !is_drained {
                tokio::task::yield_now().await;
            }
        }
    }
}

impl Driver {
    /// Performs the actions that the client requests, and sends its datagrams.
    fn process(&self) {
        loop {
            let event = self.client.borrow_mut().poll_event();
            match event {
                Some(UdpEvent::Open(id, route)) => self.open(id, route),
                Some(UdpEvent::Close(id)) => drop(self.sockets.borrow_mut().remove(&id)),
                Some(UdpEvent::Completed(query, outcome)) => self.outcomes.complete(query, outcome),
                None if self.transmit() => {}
                None => return,
            }
        }
    }

    fn open(&self, id: SocketId, route: Route) {
        match Socket::open(route.0, route.1) {
            Ok(socket) => {
                let former = self.sockets.borrow_mut().insert(id, Rc::new(socket));
                holds(former.is_none(), "a socket is opened once");
            }
            Err(error) => self.client.borrow_mut().handle_open_error(id, &query_error("dial", &error)),
        }
    }

    /// Sends the next datagram. Returns false if there was nothing to send.
    fn transmit(&self) -> bool {
        let mut client = self.client.borrow_mut();
        let Some(transmit) = client.poll_transmit() else { return false };
        let query = transmit.query;
        let sent = self.sockets.borrow().get(&transmit.socket).map(|socket| socket.send(transmit.datagram));
        if let Some(Err(error)) = sent {
            client.handle_transmit_error(query, query_error("write", &error));
        }
        true
    }

    /// Reads the datagrams that have arrived, at most [`READS_IN_A_ROW`], and none while long replies wait. Returns
    /// true if there were no others. Otherwise, the socket stays ready for the queries that wait for its replies.
    fn read(&self, id: SocketId, socket: &Socket, unwanted: Option<&UnwantedReplies>) -> bool {
        thread_local! {
            static BUFFER: RefCell<Box<[u8]>> = RefCell::new(vec![0; DATAGRAM_MAX].into());
        }
        if self.outcomes.replies.must_wait() {
            return false;
        }
        let mut client = self.client.borrow_mut();
        BUFFER.with_borrow_mut(|buffer| {
            for _ in 0..READS_IN_A_ROW {
                match socket.socket.try_recv(buffer) {
                    Ok(length) => {
                        let ignored = client.handle_input(id, &buffer[..length]);
                        ignored.into_iter().for_each(|reason| count_unwanted(unwanted, reason));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                    // An ICMP error that arrived after `take_error`.
                    Err(error) if is_unreachable(&error) => {
                        client.handle_error(now(), id, &query_error("read", &error));
                    }
                    Err(_) => {}
                }
            }
            false
        })
    }
}

impl Timed for Driver {
    fn poll_timeout(&self) -> Option<Instant> {
        self.client.borrow().poll_timeout()
    }

    fn handle_timeout(self: &Rc<Self>) {
        self.client.borrow_mut().handle_timeout(now());
        self.process();
    }

    fn timer(&self) -> &Timer {
        &self.timer
    }
}
