//! Singleflight for upstream exchanges: identical queries that wait at the same time share one.
//!
//! It saves work when a popular name expires. It also prevents birthday attacks, in which an attacker sends many
//! identical queries to increase the chance that one forged reply matches (the class of CVE-2023-30464).
//!
//! The first query with a [`Key`] becomes the leader and does the exchange. Later ones become waiters and wait on a
//! channel. The table belongs to the generation, so queries of different workers share exchanges too. If the leader is
//! dropped before it has a reply, the channels close, and the first waiter to join again becomes the next leader.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::{Arc, Mutex};

use foldhash::fast::RandomState;
use futures_channel::oneshot::{Receiver, Sender, channel};
use hashbrown::HashMap;
use wire::{Name, NameRef, Type};

use crate::ids::BlockId;
use crate::label_values::LabelValues;
use crate::query::Query;
use crate::trail::Asked;
use crate::verdict::Resolved;
use host::Instant;
use host::invariant::{Expected as _, holds};
use host::planted::{Bug, is_planted};

/// Outcome of an exchange, and what was recorded while it ran.
pub(crate) struct SharedReply {
    pub(crate) resolved: Resolved,
    pub(crate) label_values: LabelValues,
    /// Upstreams that were asked.
    pub(crate) asked: Asked,
}

/// Everything that the reply of an upstream may depend on.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    block: BlockId,
    step: usize,
    name: Box<[u8]>,
    qtype: u16,
    qclass: u16,
    stream: bool,
    /// Limit for a UDP reply: a truncated reply for one client must not go to a client that accepts more.
    udp_size: u16,
    flags: u16,
    dnssec_ok: bool,
    onward: Vec<(u16, Box<[u8]>)>,
}

/// RD, AD and CD: the flags that are forwarded.
const FLAGS_THAT_MATTER: u16 = 0x0130;

impl Key {
    pub(crate) fn new(block: BlockId, step: usize, query: &Query) -> Key {
        let stream = query.peer.transport.is_stream();
        Key {
            block,
            step,
            name: query.key().as_bytes().into(),
            qtype: query.qtype.0,
            qclass: query.qclass.0,
            stream,
            // A client that accepts less than this server does shares the full reply. It is cut when it is sent.
            udp_size: if stream { 0 } else { query.onward_udp_size() },
            flags: query.flags().0 & FLAGS_THAT_MATTER,
            dnssec_ok: query.dnssec_ok,
            onward: query.onward_options().map(|(code, data)| (code.0, data.into())).collect(),
        }
    }

    fn name(&self) -> NameRef<'_> {
        NameRef::from_bytes(&self.name).ok().expected("the name of a query").unwrap_or(NameRef::ROOT)
    }
}

/// Exchange in flight.
struct InFlight {
    /// Arrival of the leader.
    since: Instant,
    /// Address of the leader's client.
    client: IpAddr,
    plugin: &'static str,
    /// Upstream that is being asked.
    upstream: Option<SocketAddr>,
    /// Channels of the queries that wait for the leader.
    waiters: Vec<Sender<Arc<SharedReply>>>,
}

/// Exchanges that are in flight at one moment.
pub struct ExchangesInFlight {
    /// Arrival of the query that caused each of them.
    pub started: Vec<Instant>,
    /// Oldest ones, oldest first.
    pub oldest: Vec<ExchangeInFlight>,
}

/// Exchange that is in flight at one moment.
pub struct ExchangeInFlight {
    /// Name in the query, in lower case.
    pub name: Name,
    /// Type in the query.
    pub qtype: Type,
    /// Plugin that does the exchange.
    pub plugin: &'static str,
    /// Arrival of the query that caused it.
    pub since: Instant,
    /// Address of the client that asked first.
    pub client: IpAddr,
    /// Upstream that is being asked, if there is one.
    pub upstream: Option<SocketAddr>,
    /// Number of queries that wait for it.
    pub queries: usize,
}

/// Exchanges in flight, of all workers.
pub(crate) struct Singleflight {
    waiting: Mutex<HashMap<Key, InFlight, RandomState>>,
}

impl Default for Singleflight {
    fn default() -> Self {
        Singleflight { waiting: Mutex::new(HashMap::with_hasher(RandomState::default())) }
    }
}

/// Role of a query in a shared exchange.
pub(crate) enum Join<'a> {
    /// First query with this key: it does the exchange and publishes the outcome.
    Leader(Leader<'a>),
    /// Later query: it waits for the leader's outcome.
    Waiter(Receiver<Arc<SharedReply>>),
}

/// Obligation to publish the outcome. Dropping it first closes the waiters' channels.
pub(crate) struct Leader<'a> {
    singleflight: &'a Singleflight,
    key: Option<Key>,
}

impl Singleflight {
    /// Joins the exchange of `plugin` for a query with this key, as its leader if no other query leads it.
    pub(crate) fn join(&self, key: Key, query: &Query, plugin: &'static str) -> Join<'_> {
        let Ok(mut waiting) = self.waiting.lock() else {
            return Join::Leader(Leader { singleflight: self, key: None });
        };
        if let Some(in_flight) = waiting.get_mut(&key) {
            let (sender, receiver) = channel();
            in_flight.waiters.push(sender);
            return Join::Waiter(receiver);
        }
        let client = query.peer.address.ip().to_canonical();
        let former = waiting.insert(
            key.clone(),
            InFlight { since: query.received, client, plugin, upstream: None, waiters: Vec::new() },
        );
        holds(former.is_none(), "one query leads an exchange");
        Join::Leader(Leader { singleflight: self, key: Some(key) })
    }

    /// Returns the exchanges in flight for names below `zone`, with details of the `oldest_max` oldest ones. Workers
    /// wait for the table meanwhile, so the details must be few.
    pub(crate) fn in_flight(&self, zone: NameRef<'_>, oldest_max: usize) -> ExchangesInFlight {
        let Ok(waiting) = self.waiting.lock() else {
            return ExchangesInFlight { started: Vec::new(), oldest: Vec::new() };
        };
        let is_below = |key: &Key| key.name().prefix_len(zone).is_some();
        let mut all: Vec<(&Key, &InFlight)> = waiting.iter().filter(|(key, _)| is_below(key)).collect();
        let started = all.iter().map(|(_, in_flight)| in_flight.since).collect();
        let by_age = |(_, in_flight): &(&Key, &InFlight)| in_flight.since;
        if all.len() > oldest_max {
            all.select_nth_unstable_by_key(oldest_max, by_age);
            all.truncate(oldest_max);
        }
        holds(all.len() <= oldest_max, "details are of a few exchanges");
        all.sort_unstable_by_key(by_age);
        ExchangesInFlight { started, oldest: all.into_iter().map(|(key, in_flight)| in_flight.shown(key)).collect() }
    }
}

impl InFlight {
    fn shown(&self, key: &Key) -> ExchangeInFlight {
        let InFlight { since, client, plugin, upstream, ref waiters } = *self;
        let name = key.name().to_name();
        ExchangeInFlight { name, qtype: Type(key.qtype), plugin, since, client, upstream, queries: waiters.len() + 1 }
    }
}

impl Leader<'_> {
    /// Does the exchange, and meanwhile writes to the table which upstream is being asked.
    pub(crate) async fn run<T>(&self, query: &Query, exchange: impl Future<Output = T>) -> T {
        let (mut exchange, mut shown) = (pin!(exchange), None);
        poll_fn(|context| {
            let polled = exchange.as_mut().poll(context);
            let upstream = query.trail.asked.get().last;
            // The table is locked when the upstream changes, not at each poll: all workers share the lock.
            if polled.is_pending() && upstream != shown {
                self.show(upstream);
                shown = upstream;
            }
            polled
        })
        .await
    }

    fn show(&self, upstream: Option<SocketAddr>) {
        // Without a key, the table is poisoned and each query does its own exchange.
        let Some(key) = &self.key else { return };
        if let Ok(mut waiting) = self.singleflight.waiting.lock()
            && let Some(in_flight) = waiting.get_mut(key).expected("the exchange of a leader")
        {
            in_flight.upstream = upstream;
        }
    }

    /// Publishes the outcome to the waiters.
    pub(crate) fn publish(mut self, resolved: &Resolved, query: &Query) {
        holds(self.key.is_some() || self.singleflight.waiting.is_poisoned(), "an outcome is published once");
        // The entry is removed first. A query that joined between sending and removing would wait for an outcome that
        // was sent already.
        let waiters = self.take_waiters();
        if is_planted(Bug::LostWakeUp) {
            return core::mem::forget(waiters);
        }
        if !waiters.is_empty() {
            let (resolved, label_values, asked) = (resolved.clone(), query.label_values(), query.trail.asked.get());
            let outcome = Arc::new(SharedReply { resolved, label_values, asked });
            for waiter in waiters {
                let _ = waiter.send(Arc::clone(&outcome));
            }
        }
    }

    fn take_waiters(&mut self) -> Vec<Sender<Arc<SharedReply>>> {
        let Some(key) = self.key.take() else { return Vec::new() };
        let Ok(mut waiting) = self.singleflight.waiting.lock() else { return Vec::new() };
        let in_flight = waiting.remove(&key).expected("the exchange of a leader");
        in_flight.map_or(Vec::new(), |in_flight| in_flight.waiters)
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        // The channels close. Waiters then join again, and the first of them leads. Without this, the cancellation of
        // one client would end the queries of all the others.
        drop(self.take_waiters());
    }
}
