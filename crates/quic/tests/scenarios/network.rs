//! A network between clients and servers: delay, loss, repetition, reordering, and the repeatable chance for them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Datagram on its way.
#[derive(Clone, Debug)]
pub struct Datagram {
    pub arrives: Instant,
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
}

/// Network with its faults, each with a probability.
pub struct Network {
    pub delay: Duration,
    pub lost: f64,
    pub repeated: f64,
    pub reordered: f64,
    /// Bytes sent from each side, for checks of amplification.
    pub sent: std::collections::HashMap<SocketAddr, usize>,
    pub waiting: Vec<Datagram>,
    random: StdRng,
}

impl Network {
    pub fn new(seed: u64) -> Network {
        let (sent, waiting) = Default::default();
        let random = StdRng::seed_from_u64(seed);
        Network { delay: Duration::from_millis(5), lost: 0.0, repeated: 0.0, reordered: 0.0, sent, waiting, random }
    }

    pub fn send(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        *self.sent.entry(from).or_default() += bytes.len();
        let chance = |random: &mut StdRng, probability: f64| probability > 0.0 && random.random_bool(probability);
        if chance(&mut self.random, self.lost) {
            return;
        }
        let copies = 1 + usize::from(chance(&mut self.random, self.repeated));
        for _ in 0..copies {
            let late = if chance(&mut self.random, self.reordered) { self.random.random_range(1..10) } else { 0 };
            let arrives = now + self.delay + Duration::from_millis(late);
            self.waiting.push(Datagram { arrives, from, to, bytes: bytes.to_vec() });
        }
    }

    pub fn next_arrival(&self) -> Option<Instant> {
        self.waiting.iter().map(|datagram| datagram.arrives).min()
    }

    /// Removes the datagrams that have arrived, in the order of their arrival.
    pub fn arrived(&mut self, now: Instant) -> Vec<Datagram> {
        let (mut arrived, waiting): (Vec<_>, Vec<_>) =
            self.waiting.drain(..).partition(|datagram| datagram.arrives <= now);
        self.waiting = waiting;
        arrived.sort_by_key(|datagram| datagram.arrives);
        arrived
    }
}
