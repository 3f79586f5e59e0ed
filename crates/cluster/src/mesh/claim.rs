//! Claim of an entry to one of its hosts.

use std::net::IpAddr;
use std::sync::Arc;

use host::invariant::Expected as _;
use wire::NameRef;

use super::{Client, Exports};

/// Claim of an entry to one of its hosts. Claims are ordered by the age of the entry, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Entry that makes the claim.
    pub entry: Arc<Entry>,
    /// Addresses of the whole host: those of the entry or, if it has none, those allocated for this host. Only
    /// clients whose traffic the mesh captures can use them.
    pub addresses: Arc<[IpAddr]>,
}

/// A ServiceEntry.
#[derive(Debug, PartialEq, Eq)]
pub struct Entry {
    pub(crate) key: u64,
    pub(crate) age: Age,
    pub(crate) namespace: u64,
    pub(crate) exports: Option<Exports>,
    /// Addresses of its endpoints and of the workloads that it selects, without duplicates.
    pub endpoints: Box<[IpAddr]>,
    /// Names of its endpoints, in wire format and lower case.
    pub(crate) names: Box<[Box<[u8]>]>,
    /// True if the queried name itself is to be resolved in DNS: resolution `DNS` without endpoints, or
    /// `DYNAMIC_DNS`.
    pub resolves_itself: bool,
}

/// Sort key of entries that claim the same host: oldest first, then by namespace and name.
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
    /// Returns the names of its endpoints, in lower case.
    pub fn names(&self) -> impl ExactSizeIterator<Item = NameRef<'_>> {
        let name = |name| NameRef::from_bytes(name).ok().expected("a name that was parsed").unwrap_or(NameRef::ROOT);
        self.names.iter().map(move |bytes| name(bytes))
    }

    /// Returns true if the entry is exported to a client. `default` applies if the entry has no `exportTo`. An
    /// unknown client sees entries that are exported to all namespaces.
    #[must_use]
    pub fn is_exported_to(&self, client: Option<Client>, default: &Exports) -> bool {
        let exports = self.exports.as_ref().unwrap_or(default);
        exports.reach(self.namespace, client.map(|client| client.namespace))
    }

    /// Returns true if the client is in the namespace of the entry.
    #[must_use]
    pub fn is_beside(&self, client: Option<Client>) -> bool {
        client.is_some_and(|client| client.namespace == self.namespace)
    }
}
