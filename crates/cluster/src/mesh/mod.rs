//! Hosts of a service mesh: Istio ServiceEntries and the workloads that they select.
//!
//! [`Mesh`] is read by the workers without locks. It maps each host name to the [`Claim`]s of entries on it, best
//! first, and client addresses to pods. The [`MeshReducer`] is its single writer. It stores what entries and workloads
//! say, and updates the names that an event affects.
//!
//! The caller decides which claim applies to a client, with [`Entry::is_exported_to`]. [`Claim`] and [`Entry`] hold
//! the data for the answer.

mod claim;
mod clients;
mod exports;
mod hosts;
mod note;
#[cfg(test)]
mod random_tests;
mod read;
mod reducer;
#[cfg(any(test, feature = "scenario"))]
pub(crate) mod scenario;
#[cfg(test)]
mod tests;
mod workload;

use std::net::IpAddr;

pub use claim::{Claim, Entry};
pub use clients::Client;
use clients::Clients;
pub use exports::Exports;
use hosts::Hosts;
pub use note::Note;
use rcu::Seed;
pub(crate) use reducer::MeshReducer;
use wire::NameRef;

pub use crate::object::mesh as object;
use crate::service;

/// Lock-free view of the hosts of a mesh.
pub struct Mesh {
    seed: Seed,
    hosts: Hosts,
    clients: Clients,
}

impl Mesh {
    pub(crate) fn new() -> Mesh {
        Mesh { seed: Seed::default(), hosts: Hosts::new(), clients: Clients::new() }
    }

    /// Calls `read` with the claims to a name, then with those to each matching wildcard, longest first, until `read`
    /// returns `Some`. The name must be in lower case. A wildcard matches names at any depth below its parent.
    pub fn find<R>(&self, name: NameRef<'_>, read: impl FnMut(&[Claim]) -> Option<R>) -> Option<R> {
        self.hosts.find(name, read)
    }

    /// Returns true if hosts exist below a name, so that the name itself exists (RFC 8020). The name must be in lower
    /// case.
    #[must_use]
    pub fn has_below(&self, name: NameRef<'_>) -> bool {
        self.hosts.has_below(name)
    }

    /// Returns the pod with this address. Returns `None` if no known pod has it, or several that differ.
    #[must_use]
    pub fn client(&self, address: IpAddr) -> Option<Client> {
        self.clients.at(address)
    }

    /// Returns the number of hosts with a claim.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts.claimed()
    }

    /// Parses `exportTo`. Returns `None` for an empty list, which means the default of the mesh.
    #[must_use]
    pub fn exports<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Option<Exports> {
        Exports::read(texts, |namespace| self.namespace(namespace))
    }

    /// Returns the key of a namespace.
    pub(crate) fn namespace(&self, name: &str) -> u64 {
        service::key(&self.seed, b"", name.as_bytes())
    }
}
