//! Who asks: pods by their addresses.

use std::hash::BuildHasher;
use std::net::IpAddr;

use rcu::{Entry, Seed, Shards};

/// A write copies 1/1024 of the table: 100 entries of 100,000.
const SHARDS: usize = 1024;

/// A pod that asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    pub(crate) namespace: u64,
    /// Whether the mesh captures its traffic, so that addresses which stand for a host mean something to it.
    pub is_captured: bool,
}

/// Pods by their addresses.
pub(crate) struct Clients(Shards<At>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct At {
    address: IpAddr,
    client: Client,
}

impl Entry for At {
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash_one(self.address)
    }
}

impl Clients {
    pub(crate) fn new() -> Clients {
        Clients(Shards::new(SHARDS))
    }

    /// The pod at an address. Several that differ are none: an address can be given to another pod before the first one
    /// is known to be gone.
    pub(crate) fn at(&self, address: IpAddr) -> Option<Client> {
        let (mut found, mut is_one) = (None, true);
        self.0.read_all(self.0.hash(&address), |at| {
            if at.address == address {
                is_one &= found.is_none_or(|client| client == at.client);
                found = Some(at.client);
            }
        });
        found.filter(|_| is_one)
    }

    pub(crate) fn add(&self, address: IpAddr, client: Client) {
        self.0.insert(At { address, client });
    }

    pub(crate) fn remove(&self, address: IpAddr, client: Client) {
        let gone = At { address, client };
        self.0.remove(self.0.hash(&address), |at| *at == gone);
    }
}
