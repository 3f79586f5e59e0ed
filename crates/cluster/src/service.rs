//! Compact form of a Service: its names, addresses and ports, and the slices of its endpoints.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::Arc;

use host::invariant::holds;
use rcu::{Entry, Seed};

use crate::dashed;
use crate::not_ready::NotReadyEndpoint;
use crate::port::Port;
use crate::slice::{Endpoint, Slice};

/// A Service, or a set of slices that name a Service that does not exist (any more).
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) key: u64,
    /// Namespace: one label.
    pub namespace: Arc<str>,
    /// Name: one label.
    pub name: Box<str>,
    /// Resource version of the last event with this object, for people: answers do not depend on it. `None` if the
    /// source has no versions, after a restored snapshot, and without an object.
    pub resource_version: Option<NonZeroU64>,
    /// Addresses or target, by the type of the Service.
    pub kind: ServiceKind,
    /// Ports, at least one: a Service without ports has one without name, protocol and number. The ports of its
    /// endpoints are in the slices.
    pub ports: Arc<[Port]>,
    /// Slices with the endpoints, in the order in which the slices were first seen.
    pub slices: Box<[Arc<Slice>]>,
    /// External addresses, in the order of the object.
    pub external: Box<[External]>,
}

/// External address of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum External {
    /// An IP address.
    Ip(IpAddr),
    /// A host name, as written in the object.
    Host(Box<str>),
}

/// Type of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// Cluster IPs, in the order of the object. Empty until one is allocated.
    ClusterIp(Box<[IpAddr]>),
    /// Headless: reached at its endpoints.
    Headless,
    /// Alias for another name, as written in the object.
    ExternalName(Box<str>),
    /// No Service exists, but slices name it. A look-up by name does not find it.
    Undeclared,
}

impl Service {
    /// Returns the ready endpoints of all slices.
    pub fn endpoints(&self) -> impl Iterator<Item = Endpoint<'_>> {
        self.slices.iter().flat_map(|slice| slice.endpoints())
    }

    /// Returns the endpoints with this label, which must be in lower case.
    pub fn endpoints_called<'a>(&'a self, label: &'a [u8]) -> impl Iterator<Item = Endpoint<'a>> {
        let address = dashed::read_endpoint(label);
        self.slices.iter().flat_map(move |slice| slice.endpoints_called(label, address))
    }

    /// Returns the endpoints at an address: several if several slices contain it.
    pub fn endpoints_at(&self, address: IpAddr) -> impl Iterator<Item = Endpoint<'_>> {
        self.slices.iter().flat_map(move |slice| slice.endpoints_at(address))
    }

    /// Returns endpoints that are not ready. A slice keeps only the first of them.
    pub fn not_ready(&self) -> impl Iterator<Item = NotReadyEndpoint<'_>> {
        self.slices.iter().flat_map(|slice| slice.not_ready())
    }

    /// Returns the number of all endpoints that are not ready.
    #[must_use]
    pub fn not_ready_count(&self) -> usize {
        let lists = self.slices.iter().filter_map(|slice| slice.not_ready.as_deref());
        lists.map(|list| list.total as usize).sum()
    }

    /// Returns true if any endpoint is ready.
    #[must_use]
    pub fn has_endpoints(&self) -> bool {
        self.slices.iter().any(|slice| !slice.is_empty())
    }

    /// Returns the cluster IPs; empty for the other types.
    #[must_use]
    pub fn cluster_ips(&self) -> &[IpAddr] {
        if let ServiceKind::ClusterIp(ips) = &self.kind { ips } else { &[] }
    }

    /// Returns the external IP addresses.
    pub fn external_ips(&self) -> impl Iterator<Item = IpAddr> + Clone {
        self.external.iter().filter_map(|external| match external {
            External::Ip(ip) => Some(*ip),
            External::Host(_) => None,
        })
    }

    /// Returns true if the Service exists, and not only slices that name it.
    #[must_use]
    pub fn is_declared(&self) -> bool {
        self.kind != ServiceKind::Undeclared
    }

    /// Creates the entry of a Service that does not exist, to hold slices that name it.
    pub(crate) fn undeclared(key: u64, namespace: Arc<str>, name: &str, ports: Arc<[Port]>) -> Service {
        Service {
            key,
            namespace,
            name: name.into(),
            resource_version: None,
            kind: ServiceKind::Undeclared,
            ports,
            slices: Box::default(),
            external: Box::default(),
        }
    }

    pub(crate) fn slice(&self, key: u64) -> Option<&Arc<Slice>> {
        self.slices.iter().find(|slice| slice.key == key)
    }

    pub(crate) fn has_endpoint_at(&self, address: IpAddr) -> bool {
        self.slices.iter().any(|slice| slice.addresses.contains(address))
    }

    /// Returns a copy with a slice added, replaced or (with `None`) removed.
    pub(crate) fn with_slice(&self, key: u64, slice: Option<Arc<Slice>>) -> Service {
        let mut slices = self.slices.to_vec();
        holds(slice.as_ref().is_none_or(|slice| slice.key == key), "a slice replaces the one of its key");
        match (slices.iter().position(|known| known.key == key), slice) {
            (Some(at), Some(slice)) => slices[at] = slice,
            (Some(at), None) => drop(slices.remove(at)),
            (None, Some(slice)) => slices.push(slice),
            (None, None) => {}
        }
        debug_assert!(slices.iter().filter(|known| known.key == key).count() <= 1, "a Service has each slice once");
        holds(slices.len().abs_diff(self.slices.len()) <= 1, "one slice is added, replaced or removed");
        Service { slices: slices.into(), ..self.clone() }
    }
}

impl Entry for Service {
    fn hash(&self, _: &Seed) -> u64 {
        self.key
    }
}

/// Returns the key of an object within its kind: a 64-bit keyed hash of its names.
///
/// In a cluster of a million objects, two share a key with a probability of 1 in 37 million. The seed is secret, so
/// an attacker cannot choose such a pair.
pub(crate) fn key(seed: &Seed, namespace: &[u8], name: &[u8]) -> u64 {
    seed.hash_one((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_namespace_and_name_apart() {
        let seed = Seed::default();
        assert_ne!(key(&seed, b"ab", b"c"), key(&seed, b"a", b"bc"));
        assert_ne!(key(&seed, b"", b"a"), key(&seed, b"a", b""));
        assert_eq!(key(&seed, b"a", b"b"), key(&seed, b"a", b"b"));
    }
}
