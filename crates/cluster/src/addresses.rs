//! Tables from an IP address to its owners: Services by cluster IP, Services by endpoint, namespaces by pod. An entry
//! is the address and the key of its owner: 12 bytes for IPv4.

use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use rcu::{Entry, Seed, Shards};

/// Number of shards. A write copies 1/1024 of a table: 250 entries of 250,000 in 0.7 µs.
const SHARDS: usize = 1024;

/// Multiset of (address, owner key) pairs.
pub(crate) struct AddressTable {
    v4: Shards<Owned<Ipv4Addr>>,
    v6: Shards<Owned<Ipv6Addr>>,
}

impl AddressTable {
    pub(crate) fn new() -> Self {
        AddressTable { v4: Shards::new(SHARDS), v6: Shards::new(SHARDS) }
    }

    /// Adds a pair, even if it is already there.
    pub(crate) fn insert(&self, address: IpAddr, owner: u64) {
        match address {
            IpAddr::V4(v4) => self.v4.insert(Owned::new(v4, owner)),
            IpAddr::V6(v6) => self.v6.insert(Owned::new(v6, owner)),
        }
    }

    /// Adds a pair unless it is already there.
    pub(crate) fn insert_once(&self, address: IpAddr, owner: u64) {
        if !self.contains(address, owner) {
            self.insert(address, owner);
        }
    }

    /// Removes one such pair. Returns false if the table does not have it.
    pub(crate) fn remove(&self, address: IpAddr, owner: u64) -> bool {
        match address {
            IpAddr::V4(v4) => Owned::new(v4, owner).remove_from(&self.v4),
            IpAddr::V6(v6) => Owned::new(v6, owner).remove_from(&self.v6),
        }
    }

    /// Returns true if the pair is there.
    pub(crate) fn contains(&self, address: IpAddr, owner: u64) -> bool {
        match address {
            IpAddr::V4(v4) => Owned::new(v4, owner).is_in(&self.v4),
            IpAddr::V6(v6) => Owned::new(v6, owner).is_in(&self.v6),
        }
    }

    /// Calls `visit` for each owner of an address.
    pub(crate) fn owners(&self, address: IpAddr, visit: impl FnMut(u64)) {
        match address {
            IpAddr::V4(v4) => owners(&self.v4, v4, visit),
            IpAddr::V6(v6) => owners(&self.v6, v6, visit),
        }
    }
}

/// Address of one family. Both types have an alignment of 1, so an entry has no padding.
trait Family: Copy + Eq + std::hash::Hash {}
impl Family for Ipv4Addr {}
impl Family for Ipv6Addr {}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Owned<A> {
    address: A,
    owner: [u8; 8],
}

impl<A: Family> Owned<A> {
    fn new(address: A, owner: u64) -> Self {
        Owned { address, owner: owner.to_ne_bytes() }
    }

    fn is_in(self, table: &Shards<Self>) -> bool {
        table.read(table.hash(&self.address), |kept| *kept == self, |_| ()).is_some()
    }

    fn remove_from(self, table: &Shards<Self>) -> bool {
        table.remove(table.hash(&self.address), |kept| *kept == self).is_some()
    }
}

impl<A: Family> Entry for Owned<A> {
    fn hash(&self, seed: &Seed) -> u64 {
        seed.hash_one(self.address)
    }
}

fn owners<A: Family>(table: &Shards<Owned<A>>, address: A, mut visit: impl FnMut(u64)) {
    table.read_all(table.hash(&address), |kept| {
        if kept.address == address {
            visit(u64::from_ne_bytes(kept.owner));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_take_12_and_24_bytes() {
        assert_eq!((size_of::<Owned<Ipv4Addr>>(), size_of::<Owned<Ipv6Addr>>()), (12, 24));
    }

    #[test]
    fn inserts_and_removes_one_pair_at_a_time() {
        let table = AddressTable::new();
        for address in ["10.0.0.1", "fd00::1"] {
            let address: IpAddr = address.parse().unwrap();
            let owners = || {
                let mut owners = Vec::new();
                table.owners(address, |owner| owners.push(owner));
                owners.sort_unstable();
                owners
            };
            table.insert(address, 1);
            table.insert(address, 2);
            table.insert(address, 1);
            table.insert_once(address, 2);
            assert_eq!(owners(), [1, 1, 2]);
            table.remove(address, 1);
            table.remove(address, 3);
            assert_eq!(owners(), [1, 2]);
            assert!(table.contains(address, 1) && !table.contains(address, 3));
        }
    }
}
