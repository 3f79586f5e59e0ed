//! Virtual network between a client of this crate and an upstream: virtual time, and seeded latency, loss, reordering,
//! duplication and resets.
//!
//! The model is `Pair` of quinn-proto: both ends are state machines, and one loop moves bytes and time. A failing seed
//! can be repeated, and thousands of them run in seconds. The pairs check the rules that hold for all queries; the
//! tests say which queries are sent.

mod multiplex_pair;
mod stream_pair;
mod udp_pair;

use core::time::Duration;
use std::collections::btree_map::OccupiedEntry;
use std::collections::{BTreeMap, HashMap};

use host::Instant;
use upstream::{QueryId, Random};
use wire::{Class, Header, MessageBuf, Name, Rcode, Type};

pub(crate) use multiplex_pair::MultiplexPair;
pub(crate) use stream_pair::StreamPair;
pub(crate) use udp_pair::UdpPair;

/// What the network does to messages. Percentages are of all messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    pub(crate) latency_max: Duration,
    pub(crate) loss: u64,
    pub(crate) duplication: u64,
    /// Replies that are preceded by a forged one.
    pub(crate) forgery: u64,
    /// Datagrams that are answered with an ICMP error, and messages at which the upstream resets the connection.
    pub(crate) reset: u64,
    /// Sockets and connections that cannot be opened.
    pub(crate) unopened: u64,
    /// Queries that nobody waits for any more.
    pub(crate) cancelled: u64,
}

impl Conditions {
    pub(crate) const GOOD: Conditions = Conditions {
        latency_max: Duration::from_millis(20),
        loss: 0,
        duplication: 0,
        forgery: 0,
        reset: 0,
        unopened: 0,
        cancelled: 0,
    };

    /// Returns conditions that depend on a seed: some networks are perfect, most are not.
    pub(crate) fn random(random: &mut Generator) -> Conditions {
        let mut percent = |most: u64| random.below(3).min(1) * random.below(most);
        Conditions {
            loss: percent(60),
            duplication: percent(50),
            forgery: percent(50),
            reset: percent(20),
            unopened: percent(30),
            cancelled: percent(20),
            latency_max: Duration::from_millis(1 + random.below(900)),
        }
    }
}

/// Seeded random numbers (splitmix64).
#[derive(Clone)]
pub(crate) struct Generator(pub(crate) u64);

impl Generator {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub(crate) fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn up_to(&mut self, most: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(most.as_micros()).unwrap_or(u64::MAX) + 1))
    }

    /// Returns message IDs of a small range, so that collisions happen.
    pub(crate) fn message_ids(&mut self) -> Random {
        let mut own = Generator(self.next());
        Box::new(move || u16::try_from(own.below(256)).unwrap_or_default())
    }
}

/// Time after all events.
pub(crate) const END: Instant = Instant::from_nanos(u64::MAX);

/// Events in the order of their times.
pub(crate) struct Timeline<T> {
    events: BTreeMap<(Instant, u64), T>,
    entered: u64,
}

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Timeline { events: BTreeMap::new(), entered: 0 }
    }
}

impl<T> Timeline<T> {
    pub(crate) fn push(&mut self, at: Instant, event: T) {
        self.entered += 1;
        self.events.insert((at, self.entered), event);
    }

    fn next_at(&self) -> Option<Instant> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Moves `now` to the next event or to `timeout`, whichever is first, but not beyond `until`. Returns false if
    /// neither is left.
    pub(crate) fn advance(&self, now: &mut Instant, timeout: Option<Instant>, until: Instant) -> bool {
        let next = self.next_at().into_iter().chain(timeout).min();
        let Some(next) = next.filter(|next| *next <= until) else {
            *now = if until == END { *now } else { (*now).max(until) };
            return false;
        };
        *now = (*now).max(next);
        true
    }

    pub(crate) fn pop_until(&mut self, now: Instant) -> Option<T> {
        self.events.first_entry().filter(|first| first.key().0 <= now).map(OccupiedEntry::remove)
    }
}

/// Returns the queries in flight in the order in which they were started.
pub(crate) fn in_order<T>(sent: &HashMap<QueryId, T>) -> Vec<QueryId> {
    let mut pending: Vec<QueryId> = sent.keys().copied().collect();
    pending.sort_unstable();
    pending
}

/// Builds the query for the name `qNUMBER.test.`.
pub(crate) fn query(number: u64) -> Vec<u8> {
    let name = Name::from_text(&format!("q{number}.test.")).expect("a name");
    let mut message = MessageBuf::new();
    message.start(Header::default(), Some((name.as_ref(), Type::A, Class::IN)));
    message.finish(None, core::iter::empty()).to_vec()
}

/// Returns the number of a query or reply.
pub(crate) fn number_of(message: &[u8]) -> u64 {
    let length = usize::from(message[12]);
    let label = core::str::from_utf8(&message[13..13 + length]).expect("a label");
    label.trim_start_matches('q').parse().expect("a number")
}

pub(crate) fn id_of(message: &[u8]) -> u16 {
    Header::read(message).expect("a header").id
}

/// Returns the reply to a query.
pub(crate) fn reply(query: &[u8]) -> Vec<u8> {
    let mut reply = query.to_vec();
    reply[2] |= 0x80;
    reply
}

/// Returns a reply that must not be accepted: another ID, another question, another opcode, or no reply at all. It has
/// the response code REFUSED.
pub(crate) fn forged(query: &[u8], random: &mut Generator) -> Vec<u8> {
    let mut forged = reply(query);
    forged[3] |= 5;
    match random.below(5) {
        // No ID that is drawn is above 255.
        0 => forged[0] ^= 1,
        1 => forged[13] = b'r',
        2 => forged[2] ^= 4 << 3,
        3 => forged[2] &= 0x7f,
        _ => forged.truncate(forged.len() - 1),
    }
    forged
}

pub(crate) const FORGED: Rcode = Rcode::REFUSED;
