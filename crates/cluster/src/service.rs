//! A Service as answers see it: its names, how it is reached, its ports, and the slices of its endpoints.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::Arc;

use rcu::{Entry, Seed};

use crate::dashed;
use crate::port::Port;
use crate::slice::{Endpoint, Slice};

/// A Service, or what slices say about one that does not exist (any more).
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) key: u64,
    /// The namespace it is in: one label.
    pub namespace: Arc<str>,
    /// Its name: one label.
    pub name: Box<str>,
    /// How it is reached.
    pub kind: ServiceKind,
    /// Its ports, never none: a Service without ports has one without name, protocol and number. Those of its
    /// endpoints stand in the slices.
    pub ports: Arc<[Port]>,
    /// Its endpoints, in the order in which the slices were first seen.
    pub slices: Box<[Arc<Slice>]>,
    /// How it is reached from outside the cluster, in the order of the object.
    pub external: Box<[External]>,
}

/// How a Service is reached from outside the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum External {
    /// At this address.
    Ip(IpAddr),
    /// At the addresses of this host, a text as in the object.
    Host(Box<str>),
}

/// How a Service is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceKind {
    /// At these addresses, in the order of the object; none while none is allocated.
    ClusterIp(Box<[IpAddr]>),
    /// At its endpoints.
    Headless,
    /// It is another name for this one, a text as in the object.
    ExternalName(Box<str>),
    /// There is no such Service, only slices that name it. Looking it up by name does not find it.
    Undeclared,
}

impl Service {
    /// The endpoints of all slices.
    pub fn endpoints(&self) -> impl Iterator<Item = Endpoint<'_>> {
        self.slices.iter().flat_map(|slice| slice.endpoints())
    }

    /// The endpoints that are called so; the label is in lower case.
    pub fn endpoints_called<'a>(&'a self, label: &'a [u8]) -> impl Iterator<Item = Endpoint<'a>> {
        let address = dashed::read_endpoint(label);
        self.slices.iter().flat_map(move |slice| slice.endpoints_called(label, address))
    }

    /// The endpoints at an address: several if several slices have it.
    pub fn endpoints_at(&self, address: IpAddr) -> impl Iterator<Item = Endpoint<'_>> {
        self.slices.iter().flat_map(move |slice| slice.endpoints_at(address))
    }

    /// Whether any endpoint is ready.
    #[must_use]
    pub fn has_endpoints(&self) -> bool {
        self.slices.iter().any(|slice| !slice.is_empty())
    }

    /// Its cluster IPs; none if it has another kind.
    #[must_use]
    pub fn cluster_ips(&self) -> &[IpAddr] {
        if let ServiceKind::ClusterIp(ips) = &self.kind { ips } else { &[] }
    }

    /// The IP addresses at which it is reached from outside the cluster.
    pub fn external_ips(&self) -> impl Iterator<Item = IpAddr> + Clone {
        self.external.iter().filter_map(|external| match external {
            External::Ip(ip) => Some(*ip),
            External::Host(_) => None,
        })
    }

    /// Whether there is such a Service.
    #[must_use]
    pub fn is_declared(&self) -> bool {
        self.kind != ServiceKind::Undeclared
    }

    /// What slices say about a Service that does not exist.
    pub(crate) fn undeclared(key: u64, namespace: Arc<str>, name: &str, ports: Arc<[Port]>) -> Service {
        Service {
            key,
            namespace,
            name: name.into(),
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

    /// This Service with one slice more, another, or one less.
    pub(crate) fn with_slice(&self, key: u64, slice: Option<Arc<Slice>>) -> Service {
        let mut slices = self.slices.to_vec();
        match (slices.iter().position(|kept| kept.key == key), slice) {
            (Some(at), Some(slice)) => slices[at] = slice,
            (Some(at), None) => drop(slices.remove(at)),
            (None, Some(slice)) => slices.push(slice),
            (None, None) => {}
        }
        Service { slices: slices.into(), ..self.clone() }
    }
}

impl Entry for Service {
    fn hash(&self, _: &Seed) -> u64 {
        self.key
    }
}

/// The key of an object among those of its kind: 64 bits that stand for its names. Two objects of a cluster of a million
/// share one with a probability of 1 in 37 million; the seed is secret, so nobody can choose such a pair.
pub(crate) fn key(seed: &Seed, namespace: &[u8], name: &[u8]) -> u64 {
    seed.hash_one((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_knows_where_the_namespace_ends() {
        let seed = Seed::default();
        assert_ne!(key(&seed, b"ab", b"c"), key(&seed, b"a", b"bc"));
        assert_ne!(key(&seed, b"", b"a"), key(&seed, b"a", b""));
        assert_eq!(key(&seed, b"a", b"b"), key(&seed, b"a", b"b"));
    }
}
