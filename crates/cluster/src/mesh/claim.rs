//! What an entry says about one of its hosts.

use std::net::IpAddr;
use std::sync::Arc;

use wire::NameRef;

use super::{Client, Exports};

/// What an entry says about one of its hosts. Claims have an order: that of the oldest entry is the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The entry.
    pub entry: Arc<Entry>,
    /// The addresses that stand for the host as a whole: those of the entry or, if it has none, those that were allocated
    /// for this host. They mean something to clients whose traffic the mesh captures.
    pub addresses: Arc<[IpAddr]>,
}

/// A ServiceEntry.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub(crate) key: u64,
    pub(crate) age: Age,
    pub(crate) namespace: u64,
    pub(crate) exports: Option<Exports>,
    /// The addresses of its endpoints, and of the workloads that it selects, each once.
    pub endpoints: Box<[IpAddr]>,
    /// The names of its endpoints: wire form, in lower case.
    pub(crate) names: Box<[Box<[u8]>]>,
    /// Whether the name itself is looked up in DNS: resolution DNS without endpoints, or `DYNAMIC_DNS`.
    pub resolves_itself: bool,
}

/// By what entries are told apart where several claim a host: older ones count before younger ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Age {
    pub(crate) created: Box<str>,
    pub(crate) namespace: Box<str>,
    pub(crate) name: Box<str>,
}

impl Claim {
    pub(crate) fn age(&self) -> &Age {
        &self.entry.age
    }
}

impl Entry {
    /// The names of its endpoints, in lower case.
    pub fn names(&self) -> impl ExactSizeIterator<Item = NameRef<'_>> {
        self.names.iter().map(|name| NameRef::from_octets(name).unwrap_or(NameRef::ROOT))
    }

    /// Whether it is shown to a client; `default` holds if the entry says nothing. One of which nothing is known sees
    /// what is exported to all.
    #[must_use]
    pub fn is_exported_to(&self, client: Option<Client>, default: &Exports) -> bool {
        let exports = self.exports.as_ref().unwrap_or(default);
        exports.reach(self.namespace, client.map(|client| client.namespace))
    }

    /// Whether a client is in its namespace.
    #[must_use]
    pub fn is_beside(&self, client: Option<Client>) -> bool {
        client.is_some_and(|client| client.namespace == self.namespace)
    }
}
