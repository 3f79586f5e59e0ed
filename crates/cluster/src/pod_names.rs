//! Pods by their address, with their names, for people and metadata. Answers do not need the names. The table is
//! filled only if [`Spec`](crate::Spec) requests it.
//!
//! The pods of a ReplicaSet, a DaemonSet, a StatefulSet or a Job share everything but the end of their name, most
//! labels included. They share one [`PodGroup`], and an entry has a pointer to it and the end: 24 bytes for IPv4. A
//! pod with two addresses has two entries.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use host::invariant::Expected as _;
use rcu::{Keyed, Packed};

/// Number of shards, as for other tables by address. A write copies one of them: 3.5 KiB with 150,000 pods.
const SHARDS: usize = 1024;
/// Maximum length of the end of a name: five random characters, or the number of a pod in a StatefulSet.
const END_MAX: usize = 7;

/// Pods that share everything but the end of their name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PodGroup {
    pub(crate) namespace: Arc<str>,
    /// Name up to its last hyphen and with it; the whole name if its end is long.
    pub(crate) start: Box<str>,
    pub(crate) host_network: bool,
    /// Values of the labels that are kept.
    pub(crate) labels: Box<[Arc<str>]>,
}

/// Pod at an address.
#[derive(Clone, Copy, Debug)]
pub struct NamedPod<'a> {
    group: &'a PodGroup,
    end: &'a str,
}

impl NamedPod<'_> {
    /// Returns the namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.group.namespace
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> String {
        [&self.group.start, self.end].concat()
    }

    /// Returns true if the name is `name`.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        name.strip_prefix(&*self.group.start) == Some(self.end)
    }

    /// Returns the value of a label that is kept, by its position among the keys in [`Spec`](crate::Spec). Empty if the
    /// pod does not have it.
    #[must_use]
    pub fn label(&self, at: usize) -> &str {
        self.group.labels.get(at).map_or("", |value| value)
    }

    /// Returns true if the pod uses the network of its node, so that its address is that of the node.
    #[must_use]
    pub const fn uses_host_network(&self) -> bool {
        self.group.host_network
    }
}

/// Splits the name of a pod into the part that it shares with others and its end.
pub(crate) fn split(name: &str) -> (&str, &str) {
    let at = name.rfind('-').map_or(0, |hyphen| hyphen + 1);
    let (start, end) = name.split_at(at);
    if start.is_empty() || end.len() > END_MAX { (name, "") } else { (start, end) }
}

/// Table of pods by address.
pub(crate) struct PodNames {
    v4: Packed<Placed<Ipv4Addr>>,
    v6: Packed<Placed<Ipv6Addr>>,
}

impl PodNames {
    pub(crate) fn new() -> PodNames {
        PodNames { v4: Packed::new(SHARDS), v6: Packed::new(SHARDS) }
    }

    /// Adds a pod, or changes the group of a pod with the same name at the same address.
    pub(crate) fn put(&self, address: IpAddr, group: &Arc<PodGroup>, end: &str) {
        let group = Arc::clone(group);
        match address {
            IpAddr::V4(v4) => put(&self.v4, Placed { address: v4, end: End::new(end), group }),
            IpAddr::V6(v6) => put(&self.v6, Placed { address: v6, end: End::new(end), group }),
        }
    }

    /// Removes the pod at an address that `is_it` selects.
    pub(crate) fn remove(&self, address: IpAddr, is_it: impl Fn(NamedPod<'_>) -> bool) {
        match address {
            IpAddr::V4(v4) => remove(&self.v4, v4, is_it),
            IpAddr::V6(v6) => remove(&self.v6, v6, is_it),
        }
    }

    /// Calls `visit` for each pod at an address.
    pub(crate) fn at(&self, address: IpAddr, visit: impl FnMut(NamedPod<'_>)) {
        match address {
            IpAddr::V4(v4) => at(&self.v4, v4, visit),
            IpAddr::V6(v6) => at(&self.v6, v6, visit),
        }
    }

    /// Calls `visit` for each pod with its address.
    pub(crate) fn for_each(&self, mut visit: impl FnMut(IpAddr, NamedPod<'_>)) {
        self.v4.for_each(|placed| visit(placed.address.into(), placed.pod()));
        self.v6.for_each(|placed| visit(placed.address.into(), placed.pod()));
    }
}

/// End of a name. Unused bytes are zero, which no name contains.
#[derive(Clone, Copy, PartialEq, Eq)]
struct End([u8; END_MAX]);

impl End {
    fn new(text: &str) -> End {
        let mut bytes = [0; END_MAX];
        if let Some(start) = bytes.get_mut(..text.len()).expected("room for the end of a name") {
            start.copy_from_slice(text.as_bytes());
        }
        End(bytes)
    }

    fn text(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(END_MAX);
        core::str::from_utf8(&self.0[..length]).ok().expected("an end that was copied from text").unwrap_or_default()
    }
}

#[derive(Clone)]
struct Placed<A> {
    group: Arc<PodGroup>,
    end: End,
    address: A,
}

trait Family: Copy + Ord + std::hash::Hash {}
impl Family for Ipv4Addr {}
impl Family for Ipv6Addr {}

impl<A: Family> Placed<A> {
    fn pod(&self) -> NamedPod<'_> {
        NamedPod { group: &self.group, end: self.end.text() }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.end == other.end && self.group.start == other.group.start && self.group.namespace == other.group.namespace
    }
}

impl<A: Family> Keyed for Placed<A> {
    type Key = A;

    fn key(&self) -> A {
        self.address
    }
}

fn put<A: Family>(table: &Packed<Placed<A>>, placed: Placed<A>) {
    let same = placed.clone();
    table.put(placed, |known| known.is_same(&same));
}

fn remove<A: Family>(table: &Packed<Placed<A>>, address: A, is_it: impl Fn(NamedPod<'_>) -> bool) {
    table.remove(address, |known| is_it(known.pod()));
}

fn at<A: Family>(table: &Packed<Placed<A>>, address: A, mut visit: impl FnMut(NamedPod<'_>)) {
    table.at(address, |known| visit(known.pod()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_take_24_and_32_bytes() {
        assert_eq!((size_of::<Placed<Ipv4Addr>>(), size_of::<Placed<Ipv6Addr>>()), (24, 32));
    }

    #[test]
    fn pods_of_a_controller_share_the_start_of_their_names() {
        for (name, start, end) in [
            ("web-7d9f8b6c5-x2k8p", "web-7d9f8b6c5-", "x2k8p"),
            ("db-0", "db-", "0"),
            ("kube-apiserver-node-name-of-a-cloud", "kube-apiserver-node-name-of-a-", "cloud"),
            ("job-with-a-long-end-12345678", "job-with-a-long-end-12345678", ""),
            ("alone", "alone", ""),
            ("a-", "a-", ""),
            ("", "", ""),
        ] {
            assert_eq!(split(name), (start, end));
            assert_eq!([start, End::new(end).text()].concat(), name);
        }
    }
}
