//! The hosts of a service mesh: what Istio's ServiceEntries say about names, with the workloads that they select.
//!
//! [`Mesh`] is what answers are made from, read without locks: names with the [`Claim`]s that entries lay to them, best
//! first, and the clients that are pods. The [`Reducer`] is its writer, inside a world: it remembers what entries and
//! workloads say, and brings up to date the names that a change is about.
//!
//! Which claim counts for whom is for those who answer to decide, by [`Entry::is_exported_to`]; what an answer is made of
//! stands in [`Claim`] and [`Entry`].

mod claim;
mod clients;
mod exports;
mod hosts;
mod kept;
mod note;
pub mod object;
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
pub(crate) use kept::{EntryKept, PodKept, WorkloadKept};
pub use note::Note;
use rcu::Seed;
pub(crate) use reducer::Reducer;
use wire::NameRef;

use crate::service;

/// The hosts of a mesh as answers see them.
pub struct Mesh {
    seed: Seed,
    hosts: Hosts,
    clients: Clients,
}

impl Mesh {
    pub(crate) fn new() -> Mesh {
        Mesh { seed: Seed::default(), hosts: Hosts::new(), clients: Clients::new() }
    }

    /// Shows the claims to a name (in lower case), and then those to the wildcards that hold it, the longest first, until
    /// `read` finds what it wants. A wildcard holds all names below its own, however many labels they have more.
    pub fn find<R>(&self, name: NameRef<'_>, read: impl FnMut(&[Claim]) -> Option<R>) -> Option<R> {
        self.hosts.find(name, read)
    }

    /// Whether there are hosts below a name (in lower case), so that it exists (RFC 8020).
    #[must_use]
    pub fn has_below(&self, name: NameRef<'_>) -> bool {
        self.hosts.has_below(name)
    }

    /// The pod that a client is, by its address; `None` if it is none that is known, or one of several.
    #[must_use]
    pub fn client(&self, address: IpAddr) -> Option<Client> {
        self.clients.at(address)
    }

    /// Hosts that entries have claimed.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts.claimed()
    }

    /// Reads what `exportTo` says; nothing in it means that the mesh's default holds.
    #[must_use]
    pub fn exports<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Option<Exports> {
        Exports::read(texts, |namespace| self.namespace(namespace))
    }

    /// The key of a namespace.
    pub(crate) fn namespace(&self, name: &str) -> u64 {
        service::key(&self.seed, b"", name.as_bytes())
    }
}
