//! Fake I/O of a scenario: time, upstreams, websites, streams and the log.

use core::cell::RefCell;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use config::setup::{Page, PageContent};
use engine::log::{Event, Level, Source};
use engine::streams::{ByteListener, ByteStream, Dial, Listen};
use engine::{
    Clock, Exchange, ExchangeError, ExchangeReply, Fetch, FetchError, Instant, Io, LocalFuture, OnMessage, Transport,
};
use metrics::{Counters, Registry};
use wire::Reply;

use crate::byte_streams::{Peer, Peers};
use crate::upstream::{Came, Outcome};
use crate::{SplitMix64, Upstreams, VirtualTime};

/// Local address of UDP queries to upstreams, as shown in error messages.
pub const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 5353);

/// A website other than the server's own pages.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// HTTP status; `None` if the host refuses connections.
    pub status: Option<u16>,
    /// Delay of the response.
    pub delay: Duration,
}

/// Fake I/O in virtual time.
pub struct VirtualIo {
    /// Fake upstreams.
    pub upstreams: Upstreams,
    time: VirtualTime,
    counters: Counters,
    random: RefCell<SplitMix64>,
    log: RefCell<Vec<String>>,
    /// Pages that the server itself serves.
    pages: RefCell<Vec<Page>>,
    sites: RefCell<HashMap<(String, String), Site>>,
    peers: Peers,
    posted: RefCell<Vec<String>>,
    network: RefCell<Option<Rc<dyn Network>>>,
}

/// Network of a simulation, which carries exchanges in place of the fake upstreams.
pub trait Network {
    /// Sends a query to an upstream, as [`Io::exchange`] does.
    fn exchange<'a>(self: Rc<Self>, exchange: Exchange<'a>) -> LocalFuture<'a, Result<ExchangeReply, ExchangeError>>;
}

impl VirtualIo {
    /// Creates fake I/O without upstreams. `seed` determines the random numbers.
    #[must_use]
    pub fn new(time: VirtualTime, registry: &Registry, seed: u64) -> VirtualIo {
        VirtualIo {
            upstreams: Upstreams::default(),
            time,
            counters: registry.counters(),
            random: RefCell::new(SplitMix64::new(seed)),
            log: RefCell::default(),
            pages: RefCell::default(),
            sites: RefCell::default(),
            peers: Peers::default(),
            posted: RefCell::default(),
            network: RefCell::default(),
        }
    }

    /// Makes a network carry all exchanges from now on.
    pub fn set_network(&self, network: Rc<dyn Network>) {
        *self.network.borrow_mut() = Some(network);
    }

    /// Returns the log lines that have not been taken yet.
    #[must_use]
    pub fn log_lines(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// Removes the first log line that contains `text`. Returns true if there was one.
    pub fn take_log_line(&self, text: &str) -> bool {
        let mut log = self.log.borrow_mut();
        let found = log.iter().position(|line| line.contains(text));
        found.map(|at| log.remove(at)).is_some()
    }

    /// Keeps an event as the line that the server would write.
    pub(crate) fn log_event(&self, event: &Event<'_>) {
        self.log.borrow_mut().push(event.to_string());
    }

    /// Sets the pages that the server serves.
    pub(crate) fn set_pages(&self, pages: Vec<Page>) {
        *self.pages.borrow_mut() = pages;
    }

    /// Sets the website at an address and path, in place of the server's own page; `None` removes it.
    pub(crate) fn set_site(&self, address: &str, path: &str, site: Option<Site>) {
        let key = (address.to_owned(), path.to_owned());
        match site {
            Some(site) => self.sites.borrow_mut().insert(key, site),
            None => self.sites.borrow_mut().remove(&key),
        };
    }

    /// Takes the bodies posted to websites, in order.
    #[must_use]
    pub fn take_posted(&self) -> Vec<String> {
        self.posted.take()
    }

    /// Sets the peer that accepts streams at an address; `None` removes it.
    pub fn set_peer(&self, address: &str, peer: Option<Peer>) {
        self.peers.set(address, peer);
    }

    /// Returns a page of the server. The path may have a query string. If several pages have the same address and
    /// path, returns the first. Returns `None` if there is no page, or if it is not ready immediately.
    #[must_use]
    pub fn page(&self, address: &str, path: &str) -> Option<PageContent> {
        let (path, asked) = path.split_once('?').unwrap_or((path, ""));
        let pages = self.pages.borrow();
        let page = pages.iter().find(|page| page.address == address && page.path == path);
        match (page?.make)(asked).as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(content) => Some(content),
            Poll::Pending => None,
        }
    }

    /// Returns the website at an address and path.
    fn site(&self, address: &str, path: &str) -> Site {
        let made_up = self.sites.borrow().get(&(address.to_owned(), path.to_owned())).copied();
        made_up.unwrap_or_else(|| {
            let served = self.pages.borrow().iter().any(|page| page.address == address);
            let status = self.page(address, path).map(|page| page.status).or(served.then_some(404));
            Site { status, delay: Duration::ZERO }
        })
    }
}

impl Io for VirtualIo {
    fn now(&self) -> Instant {
        self.time.now()
    }

    fn since_1970(&self) -> Duration {
        self.time.since_1970()
    }

    fn sleep_until(&self, at: Instant) -> LocalFuture<'_, ()> {
        Box::pin(self.time.sleep_until(at))
    }

    /// Returns the next number of a fixed sequence, so that every run is the same.
    fn random(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    fn log(&self, level: Level, source: Source<'_>, message: fmt::Arguments<'_>) {
        let message = message.to_string();
        let event = Event { time: self.time.since_1970(), level, source, message: message.as_bytes(), fields: &[] };
        self.log_event(&event);
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn fetch<'a>(&'a self, fetch: Fetch<'a>) -> LocalFuture<'a, Result<u16, FetchError>> {
        Box::pin(async move {
            let Site { status, delay } = self.site(fetch.address, fetch.path);
            let posted = fetch.post.map(|(_, body)| String::from_utf8_lossy(body).into_owned());
            self.posted.borrow_mut().extend(posted.filter(|_| status.is_some()));
            if !self.passes(delay, fetch.until).await {
                return Err(FetchError::Timeout);
            }
            status.ok_or_else(|| FetchError::Network("connection refused".to_owned()))
        })
    }

    fn exchange<'a>(&'a self, exchange: Exchange<'a>) -> LocalFuture<'a, Result<ExchangeReply, ExchangeError>> {
        if let Some(network) = &*self.network.borrow() {
            return Rc::clone(network).exchange(exchange);
        }
        let Exchange { over, until, .. } = exchange;
        let timeout = ExchangeError::Timeout { local: (over == Transport::Udp).then_some(LOCAL) };
        let during = if over.is_stream() { "dial" } else { "read" };
        Box::pin(async move {
            let (outcome, arrives) = self.send(exchange).await;
            self.time.sleep_until(arrives.min(until)).await;
            if arrives > until {
                return Err(timeout);
            }
            match outcome.what {
                Came::Reply(reply) => {
                    let reply = Reply::parse(reply).map_err(|_| ExchangeError::Unreadable)?;
                    Ok(ExchangeReply { reply, reused: outcome.reused, local: Some(LOCAL) })
                }
                Came::Refused => Err(ExchangeError::Network { during, error: "connection refused".to_owned() }),
                Came::Closed => Err(ExchangeError::Closed),
                Came::Status(code) => {
                    Err(ExchangeError::Status { code, reason: "status of a fake upstream".to_owned() })
                }
                Came::Nothing => Err(timeout),
            }
        })
    }

    /// Passes the single message of the fake upstream to `on_message`, however long it is.
    fn exchange_all<'a>(
        &'a self,
        exchange: Exchange<'a>,
        on_message: OnMessage<'a>,
    ) -> LocalFuture<'a, Result<(), ExchangeError>> {
        Box::pin(async move {
            let exchanged = self.exchange(Exchange { over: Transport::Tcp, ..exchange }).await?;
            if on_message(exchanged.reply.bytes()) { Err(ExchangeError::Closed) } else { Ok(()) }
        })
    }

    fn connect<'a>(&'a self, dial: Dial<'a>) -> LocalFuture<'a, io::Result<Box<dyn ByteStream>>> {
        Box::pin(core::future::ready(self.peers.connect(dial.to)))
    }

    /// Always fails: no fake peer connects to the server.
    fn listen(&self, _: Listen<'_>) -> io::Result<Box<dyn ByteListener>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl VirtualIo {
    /// Sends a query, and repeats it after `retransmit_after` if there is no response by then. Returns the response
    /// that arrives first, and its time.
    async fn send(&self, exchange: Exchange<'_>) -> (Outcome, Instant) {
        let Exchange { over, until, retransmit_after, .. } = exchange;
        let ask = || {
            let outcome = self.upstreams.ask(exchange, self.now());
            let delay = if let Came::Nothing = outcome.what { Duration::MAX } else { outcome.delay };
            (outcome, self.now() + delay)
        };
        let first = ask();
        let again = retransmit_after.filter(|_| over == Transport::Udp).map(|span| self.now() + span);
        let Some(again) = again.filter(|again| *again < first.1 && *again < until) else { return first };
        self.time.sleep_until(again).await;
        let second = ask();
        if second.1 < first.1 { second } else { first }
    }

    /// Waits for `delay`, but at most until `until`. Returns true if the whole delay has passed.
    async fn passes(&self, delay: Duration, until: Instant) -> bool {
        let at = self.now() + delay;
        self.time.sleep_until(at.min(until)).await;
        at <= until
    }
}
