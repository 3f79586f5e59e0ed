//! Clients of the mesh: pods by address.

use std::hash::BuildHasher;
use std::net::IpAddr;

use host::invariant::holds;
use rcu::{Entry, Seed, Shards};

/// Number of shards. A write copies 1/1024 of the table: 100 entries of 100,000.
const SHARDS: usize = 1024;

/// Pod that sends queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    pub(crate) namespace: u64,
    /// True if the mesh captures its traffic, so that it can use the address of a host.
    pub is_captured: bool,
}

/// Pods by address.
pub(crate) struct Clients(Shards<ClientEntry>);

#[derive(Clone, Copy, PartialEq, Eq)]
struct ClientEntry {
    address: IpAddr,
    client: Client,
}

impl Entry for ClientEntry {
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash_one(self.address)
    }
}

impl Clients {
    pub(crate) fn new() -> Clients {
        Clients(Shards::new(SHARDS))
    }

    /// Returns the pod at an address. Returns `None` if several pods that differ have it, because an address can be
    /// reassigned before the deletion of its first pod is known.
    pub(crate) fn at(&self, address: IpAddr) -> Option<Client> {
        let (mut found, mut is_one) = (None, true);
        self.0.read_all(self.0.hash(&address), |entry| {
            if entry.address == address {
                is_one &= found.is_none_or(|client| client == entry.client);
                found = Some(entry.client);
            }
        });
        found.filter(|_| is_one)
    }

    pub(crate) fn add(&self, address: IpAddr, client: Client) {
        self.0.insert(ClientEntry { address, client });
    }

    pub(crate) fn remove(&self, address: IpAddr, client: Client) {
        let gone = ClientEntry { address, client };
        let removed = self.0.remove(self.0.hash(&address), |entry| *entry == gone);
        holds(removed.is_some(), "a client that is removed was added");
    }
}
